package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// NotSentError says that a command certainly had no effect, because no server ever had the whole of it. An error of the
// reference client that is no NotSentError, and no error that the server replied with, leaves that open.
type NotSentError struct {
	Stage string // "wait for a connection", "connect", "handshake", "write"
	err   error
}

func (e *NotSentError) Error() string { return fmt.Sprintf("not sent (%s): %v", e.Stage, e.err) }

// Unwrap gives a list so that errors.Unwrap, by which go-redis strips one layer from what a handshake returns, leaves this
// one on. errors.Is and errors.As see through it all the same.
func (e *NotSentError) Unwrap() []error { return []error{e.err} }

// notSent is the hook that tells errors before a command was sent from those after. It is right only for a client that
// makes one attempt: with retries, the last attempt's error says nothing of the first.
//
// A single command goes through these stages (go-redis v9, baseClient._process), and each is recognized by:
//
//	wait for a connection   the pool's own errors; a context error. (Once there is a connection the context only sets
//	                        deadlines on it: then a timeout is a net.Error, never a context error.)
//	connect                 our dialer says so
//	handshake               HELLO, AUTH and SELECT pass through this hook too, called from within the command's own call
//	write                   net.OpError says "write". The kernel did not take the whole of the command, and a server
//	                        does not execute a part of one. Not so for a pipeline, whose first commands may have gone.
//	read                    everything else: unknown
type notSent struct{}

// within marks the context of a command in progress, so that commands of a handshake can be told from it.
type within struct{}

func (notSent) DialHook(next redis.DialHook) redis.DialHook { return next }

func (notSent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(within{}) != nil {
			return handshake(next(ctx, cmd))
		}
		err := next(context.WithValue(ctx, within{}, true), cmd)
		if err == nil {
			return nil
		}
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "write" && !isNotSent(err) {
			return &NotSentError{Stage: "write", err: err}
		}
		return waiting(err)
	}
}

func (notSent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if ctx.Value(within{}) != nil {
			return handshake(next(ctx, cmds))
		}
		err := next(context.WithValue(ctx, within{}, true), cmds)
		if err == nil {
			return nil
		}
		// The commands carry the same error; callers look there.
		for _, cmd := range cmds {
			if cmd.Err() != nil {
				cmd.SetErr(waiting(cmd.Err()))
			}
		}
		return waiting(err)
	}
}

// handshake marks what a command of the handshake returns. go-redis takes an error reply to HELLO for an old server and goes
// on without it. That must not be where the server has closed the connection with its reply, as it does when it has too many
// clients: then the command would be written to a closed connection, and be unknown. So there the reply loses its type.
func handshake(err error) error {
	if err == nil || isNotSent(err) {
		return err
	}
	if redis.IsMaxClientsError(err) {
		err = errors.New(err.Error())
	}
	return &NotSentError{Stage: "handshake", err: err}
}

// waiting marks what only the wait for a connection returns.
func waiting(err error) error {
	if isNotSent(err) {
		return err
	}
	for _, cause := range []error{
		redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, cause) {
			return &NotSentError{Stage: "wait for a connection", err: err}
		}
	}
	return err
}

func isNotSent(err error) bool {
	var e *NotSentError
	return errors.As(err, &e)
}
