package subjects

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/history"
	"fencepost.dev/topology/endpoint"
)

// ClassifyRedis says what an error of the reference client (endpoint.Valkey) means for the command that it answers. Calling
// an unknown failed hides bugs; calling a failed unknown weakens checks. So it is a table, and what is not in it is unknown:
//
//	none                                       ok       the server answered
//	redis.Nil                                  refused  a condition (NX, XX) was not met
//	not sent: no connection, refused, pool     failed   the server never had it
//	  timeout, context done before, handshake
//	  (HELLO, AUTH) failed, write cut short
//	an error reply of the first list below     failed   the server says that it did not execute it
//	an error reply of the second list,         failed   the command itself was wrong
//	  not from within a script
//	the same from within a script              unknown  what the script did before it stays done: scripts don't roll back
//	any other error reply                      unknown
//	end of file, reset, broken reply, timeout  unknown  sent, and not answered
//	  after it was sent
//
// It is not for a client that repeats commands by itself: there the last answer says nothing of the tries before it.
func ClassifyRedis(err error) history.Outcome {
	var unsent *endpoint.NotSentError
	var reply redis.Error
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, redis.Nil):
		return history.Refused
	case errors.As(err, &unsent):
		return history.Failed
	case errors.As(err, &reply):
		return classifyReply(reply.Error())
	}
	return history.Unknown
}

// notExecuted are the replies by which a server says that it did not execute the command. They may come from within a script
// too: a server checks for them at the script's first write only, and so they mean that it has written nothing (valkey,
// src/script.c, scriptVerifyWriteCommandAllow and scriptVerifyOOM). A script that catches errors and goes on would break
// this; ours don't.
var notExecuted = []string{
	"OOM ",                                                   // above maxmemory, with nothing to evict
	"READONLY ",                                              // a replica
	"LOADING ",                                               // reading its data after a start
	"CLUSTERDOWN ",                                           // the cluster can't serve the slot
	"MASTERDOWN ",                                            // a replica that lost its primary and may not serve stale data
	"MISCONF ",                                               // it can't save, and is told to refuse writes then
	"NOREPLICAS ",                                            // fewer replicas than min-replicas-to-write
	"NOSCRIPT ",                                              // EVALSHA of a script that it doesn't have
	"BUSY ",                                                  // a script has been running for too long
	"MOVED ", "ASK ", "TRYAGAIN ", "CROSSSLOT ", "REDIRECT ", // another node's business
	"NOAUTH ", "WRONGPASS ", // who are you
	"EXECABORT ", // a transaction that was given up when it was to be executed
	"ERR max number of clients reached",
}

// mistaken are replies to a command that was wrong in itself, or not allowed. Of a plain command they mean that nothing was
// done.
var mistaken = []string{
	"WRONGTYPE ",
	"NOPERM ",
	"ERR unknown command",
	"ERR unknown subcommand",
	"ERR wrong number of arguments",
	"ERR syntax error",
	"ERR invalid expire time",
	"ERR value is not an integer or out of range",
	"ERR increment or decrement would overflow",
	"ERR Error compiling script",
}

func classifyReply(text string) history.Outcome {
	for _, prefix := range notExecuted {
		if strings.HasPrefix(text, prefix) {
			return history.Failed
		}
	}
	// A server adds "script: <digest>" to an error that a command raised within a script.
	if strings.Contains(text, "script: ") {
		return history.Unknown
	}
	for _, prefix := range mistaken {
		if strings.HasPrefix(text, prefix) {
			return history.Failed
		}
	}
	return history.Unknown
}
