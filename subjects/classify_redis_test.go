package subjects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/history"
	"fencepost.dev/internal/valkeytest"
	"fencepost.dev/primitives/lock"
	"fencepost.dev/topology/endpoint"
)

func reference(t *testing.T, address string, options ...endpoint.Option) redis.UniversalClient {
	t.Helper()
	c, err := endpoint.Endpoint{Kind: "standalone", Addresses: []string{address}}.Valkey(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// taking are the commands by which a lock is taken; each is classified, and then looked for at the server.
var taking = map[string]func(ctx context.Context, c redis.UniversalClient) error{
	"SET NX": func(ctx context.Context, c redis.UniversalClient) error {
		_, err := lock.NewValkey(c).Acquire(ctx, "k", time.Minute)
		return err
	},
	"EVALSHA": func(ctx context.Context, c redis.UniversalClient) error {
		_, err := lock.NewFenced(c).Acquire(ctx, "k", time.Minute)
		return err
	},
}

// Connections are really broken, before, during and after a command, in order, by reset and by silence. What is called failed
// has had no effect, and what is called ok has; and each is called just what the table says.
func TestClassificationOfBrokenConnections(t *testing.T) {
	server := valkeytest.Start(t)
	ctx := context.Background()
	for _, test := range []struct {
		where  valkeytest.Break
		want   history.Outcome
		effect bool
	}{
		{valkeytest.Nowhere, history.OK, true},
		{valkeytest.Connect, history.Failed, false},
		{valkeytest.Handshake, history.Failed, false},
		{valkeytest.Before, history.Unknown, false},
		{valkeytest.MidRequest, history.Unknown, false},
		{valkeytest.Unanswered, history.Unknown, true},
		{valkeytest.MidReply, history.Unknown, true},
	} {
		for _, how := range []valkeytest.End{valkeytest.FIN, valkeytest.RST, valkeytest.Silence} {
			for name, take := range taking {
				t.Run(fmt.Sprintf("%s/%s/%s", test.where, how, name), func(t *testing.T) {
					proxy := valkeytest.NewProxy(t, server.Address)
					c := reference(t, proxy.Address, endpoint.WaitReply(500*time.Millisecond))
					server.Direct.FlushAll(ctx)
					// The script is there, and so is a connection, so that the break meets the command.
					if err := take(ctx, server.Direct); err != nil {
						t.Fatal(err)
					}
					server.Direct.FlushAll(ctx)
					if test.where != valkeytest.Connect && test.where != valkeytest.Handshake {
						if err := c.Ping(ctx).Err(); err != nil {
							t.Fatal(err)
						}
					}
					proxy.Set(test.where, how)
					err := take(ctx, c)
					if got := ClassifyRedis(err); got != test.want {
						t.Errorf("%v (%v), want %v", got, err, test.want)
					}
					proxy.Drop()
					server.Alone()
					if effect := server.Direct.Exists(ctx, "k").Val() == 1; effect != test.effect {
						t.Errorf("at the server it is %v, want %v", effect, test.effect)
					}
				})
			}
		}
	}
}

// What happens without the proxy: nobody there, a server that is stopped or killed, a context that ends.
func TestClassificationOfAbsentServers(t *testing.T) {
	ctx := context.Background()
	for name, take := range taking {
		t.Run(name, func(t *testing.T) {
			server := valkeytest.Start(t)
			if err := take(ctx, server.Direct); err != nil { // loads the script
				t.Fatal(err)
			}
			server.Direct.FlushAll(ctx)
			is := func(what string, err error, want history.Outcome, effect bool) {
				t.Helper()
				if got := ClassifyRedis(err); got != want {
					t.Errorf("%s: %v (%v), want %v", what, got, err, want)
				}
				if got := server.Direct.Exists(ctx, "k").Val() == 1; got != effect {
					t.Errorf("%s: at the server it is %v, want %v", what, got, effect)
				}
				server.Direct.FlushAll(ctx)
			}
			is("refused", take(ctx, reference(t, valkeytest.Unused(t))), history.Failed, false)

			c := reference(t, server.Address, endpoint.WaitReply(500*time.Millisecond))
			is("the first", take(ctx, c), history.OK, true)
			ended, cancel := context.WithCancel(ctx)
			cancel()
			is("cancelled before", take(ended, c), history.Failed, false)
			passed, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
			defer cancel()
			is("deadline before", take(passed, c), history.Failed, false)

			// Stopped: a command on an open connection is taken by the kernel, and executed when the server goes on, though
			// its client has left. One that needs a new connection gets no further than its handshake.
			server.Pause()
			late := take(ctx, c)
			fresh := take(ctx, reference(t, server.Address, endpoint.WaitReply(500*time.Millisecond)))
			server.Resume()
			server.Alone()
			is("stopped", late, history.Unknown, true)
			is("stopped, on a new connection", fresh, history.Failed, false)

			// Cancelled while it waits for the reply: the wait goes on to its own end, and the answer is known.
			long := reference(t, server.Address)
			if err := long.Ping(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			waiting, cancel := context.WithCancel(ctx)
			server.Pause()
			time.AfterFunc(100*time.Millisecond, cancel)
			time.AfterFunc(300*time.Millisecond, server.Resume)
			is("cancelled while waiting", take(waiting, long), history.OK, true)
		})
	}
}

// Servers that refuse, for real.
func TestClassificationOfErrorReplies(t *testing.T) {
	ctx := context.Background()
	primary := valkeytest.Start(t)
	for _, test := range []struct {
		name   string
		server func(t *testing.T) *valkeytest.Server
		text   string
	}{
		{"full", func(t *testing.T) *valkeytest.Server { return valkeytest.Start(t, "--maxmemory", "1") }, "OOM "},
		{"replica", func(t *testing.T) *valkeytest.Server {
			host, port, _ := strings.Cut(primary.Address, ":")
			return valkeytest.Start(t, "--replicaof", host+" "+port)
		}, "READONLY "},
		{"replica that has lost its primary", func(t *testing.T) *valkeytest.Server {
			return valkeytest.Start(t, "--replicaof", "127.0.0.1 1", "--replica-serve-stale-data", "no", "--replica-read-only", "no")
		}, "MASTERDOWN "},
		{"too few replicas", func(t *testing.T) *valkeytest.Server {
			return valkeytest.Start(t, "--min-replicas-to-write", "1")
		}, "NOREPLICAS "},
		{"cluster without slots", func(t *testing.T) *valkeytest.Server {
			return valkeytest.Start(t, "--cluster-enabled", "yes")
		}, "CLUSTERDOWN "},
		{"password", func(t *testing.T) *valkeytest.Server {
			return valkeytest.StartWith(t, redis.Options{Password: "x"}, "--requirepass", "x")
		}, "NOAUTH "},
		{"no more clients", func(t *testing.T) *valkeytest.Server { return valkeytest.Start(t, "--maxclients", "1") },
			""}, // the reply, or the reset that comes with it
		{"may not", func(t *testing.T) *valkeytest.Server {
			return valkeytest.StartWith(t, redis.Options{Username: "looker", Password: "x"},
				"--user", "looker", "on", ">x", "~*", "+@all", "--user", "default", "on", "nopass", "~other", "+@all")
		}, "NOPERM "},
		{"busy with a script", func(t *testing.T) *valkeytest.Server {
			s := valkeytest.Start(t, "--busy-reply-threshold", "1")
			spinner := redis.NewClient(&redis.Options{Addr: s.Address, MaxRetries: -1, ReadTimeout: time.Minute})
			over := make(chan struct{})
			go func() {
				defer close(over)
				spinner.Eval(ctx, "while true do end", nil)
			}()
			t.Cleanup(func() {
				s.Direct.ScriptKill(ctx)
				<-over
				_ = spinner.Close()
			})
			for !redis.HasErrorPrefix(s.Direct.Ping(ctx).Err(), "BUSY") {
				time.Sleep(5 * time.Millisecond)
			}
			return s
		}, "BUSY "},
		{"loading", loading, "LOADING "},
	} {
		for name, take := range taking {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				server := test.server(t)
				err := take(ctx, reference(t, server.Address))
				if err == nil || !strings.Contains(err.Error(), test.text) {
					t.Fatalf("error %v, want %s", err, test.text)
				}
				if got := ClassifyRedis(err); got != history.Failed {
					t.Errorf("%v: %v, want failed", err, got)
				}
				if test.text == "BUSY " {
					server.Direct.ScriptKill(ctx)
				}
				for test.text == "LOADING " && server.Direct.Ping(ctx).Err() != nil {
					time.Sleep(5 * time.Millisecond)
				}
				there, err := server.Direct.Exists(ctx, "k").Result()
				if err != nil { // it doesn't say; but it does say how much it has
					there = int64(strings.Count(server.Direct.Info(ctx, "keyspace").Val(), "db0:"))
				}
				if there != 0 {
					t.Error("it is there")
				}
			})
		}
	}
}

// loading starts a server that takes a while to read what it has.
func loading(t *testing.T) *valkeytest.Server {
	dir := t.TempDir()
	var aof strings.Builder
	for range 8000 {
		aof.WriteString("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\ny\r\n")
	}
	if err := os.MkdirAll(filepath.Join(dir, "appendonlydir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"appendonly.aof.manifest":   "file appendonly.aof.1.incr.aof seq 1 type i\n",
		"appendonly.aof.1.incr.aof": aof.String(),
	} {
		if err := os.WriteFile(filepath.Join(dir, "appendonlydir", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// 300 microseconds to a command, and clients are answered after each 1024.
	return valkeytest.Start(t, "--dir", dir, "--appendonly", "yes", "--key-load-delay", "300")
}

// Replies that are answers, mistakes, or that come from within a script.
func TestClassificationOfReplies(t *testing.T) {
	server := valkeytest.Start(t)
	c := reference(t, server.Address)
	ctx := context.Background()
	server.Direct.RPush(ctx, "list", "x")
	for name, test := range map[string]struct {
		err  error
		want history.Outcome
	}{
		"nothing":                    {c.Set(ctx, "a", "1", 0).Err(), history.OK},
		"a condition that isn't met": {c.SetArgs(ctx, "a", "2", redis.SetArgs{Mode: "NX"}).Err(), history.Refused},
		"no such key":                {c.Get(ctx, "none").Err(), history.Refused},
		"a wrong type":               {c.Incr(ctx, "list").Err(), history.Failed},
		"no number":                  {errors.Join(c.Set(ctx, "b", "x", 0).Err(), c.Incr(ctx, "b").Err()), history.Failed},
		"no such command":            {c.Do(ctx, "NONSENSE").Err(), history.Failed},
		"wrong arguments":            {c.Do(ctx, "GET").Err(), history.Failed},
		"syntax":                     {c.Do(ctx, "SET", "a", "b", "QX").Err(), history.Failed},
		"expiry":                     {c.Do(ctx, "SET", "a", "b", "PX", "0").Err(), history.Failed},
		"a script that isn't there":  {c.EvalSha(ctx, strings.Repeat("0", 40), nil).Err(), history.Failed},
		"a script that isn't Lua":    {c.Eval(ctx, "nonsense", nil).Err(), history.Failed},
		"a script that failed after it wrote": {
			c.Eval(ctx, "redis.call('SET', 'half', '1') return redis.call('INCR', 'list')", nil).Err(), history.Unknown,
		},
		"a script that raised an error of its own": {c.Eval(ctx, "return redis.error_reply('MINE own')", nil).Err(), history.Unknown},
		"anything":        {errors.New("?"), history.Unknown},
		"wrapped refusal": {fmt.Errorf("lock: %w", redis.Nil), history.Refused},
	} {
		if got := ClassifyRedis(test.err); got != test.want {
			t.Errorf("%s: %v (%v), want %v", name, got, test.err, test.want)
		}
	}
	if server.Direct.Exists(ctx, "half").Val() != 1 {
		t.Error("the script did not write before it failed: the case shows nothing")
	}
}
