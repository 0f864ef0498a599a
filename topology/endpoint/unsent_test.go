package endpoint

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/internal/valkeytest"
)

// Each case breaks a real connection at one point and says whether the command that suffers it was sent.
func TestWhatWasNotSentIsMarked(t *testing.T) {
	server := valkeytest.Start(t)
	type broken struct {
		proxy *valkeytest.Proxy
		c     redis.UniversalClient
		warm  func() // has a connection made, so that the break meets the command itself
	}
	long := strings.Repeat("v", 32<<20) // more than socket buffers hold
	set := func(c redis.UniversalClient) error { return c.Set(context.Background(), "k", "v", 0).Err() }
	for _, test := range []struct {
		name string
		do   func(b broken) error
		want string // the stage, or either of two; "": it may have been sent
	}{
		{"nobody listens", func(b broken) error {
			b.proxy.Close()
			return set(b.c)
		}, "connect"},
		{"cut as soon as accepted", func(b broken) error {
			b.proxy.Set(valkeytest.Connect, valkeytest.RST)
			return set(b.c)
		}, "connect|handshake"}, // the reset may be there before connect has returned
		{"cut in the handshake", func(b broken) error {
			b.proxy.Set(valkeytest.Handshake, valkeytest.FIN)
			return set(b.c)
		}, "handshake"},
		{"no answer to the handshake", func(b broken) error {
			b.proxy.Set(valkeytest.Handshake, valkeytest.Silence)
			return set(b.c)
		}, "handshake"},
		{"a pipeline's handshake is cut", func(b broken) error {
			b.proxy.Set(valkeytest.Handshake, valkeytest.FIN)
			p := b.c.Pipeline()
			first := p.Set(context.Background(), "k", "v", 0)
			_, _ = p.Exec(context.Background())
			return first.Err()
		}, "handshake"},
		{"the context was done before", func(b broken) error {
			b.warm()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return b.c.Set(ctx, "k", "v", 0).Err()
		}, "wait for a connection"},
		{"the client was closed before", func(b broken) error {
			_ = b.c.Close()
			return set(b.c)
		}, "wait for a connection"},
		{"a long command can't be written", func(b broken) error {
			b.warm()
			b.proxy.Set(valkeytest.Unread, valkeytest.Silence)
			return b.c.Set(context.Background(), "k", long, 0).Err()
		}, "write"},
		{"reset while a long command is written", func(b broken) error {
			b.warm()
			b.proxy.Set(valkeytest.Unread, valkeytest.RST)
			return b.c.Set(context.Background(), "k", long, 0).Err()
		}, "write"},
		{"a pipeline that can't be written whole", func(b broken) error {
			b.warm()
			b.proxy.Set(valkeytest.Unread, valkeytest.RST)
			p := b.c.Pipeline()
			first := p.Set(context.Background(), "k", "v", 0)
			p.Set(context.Background(), "k2", long, 0)
			_, _ = p.Exec(context.Background())
			return first.Err()
		}, ""},
		{"cut before it reached the server", func(b broken) error {
			b.warm()
			b.proxy.Set(valkeytest.Before, valkeytest.RST)
			return set(b.c)
		}, ""},
		{"answered, and the answer lost", func(b broken) error {
			b.warm()
			b.proxy.Set(valkeytest.Unanswered, valkeytest.FIN)
			return set(b.c)
		}, ""},
		{"the deadline passes while it waits for the reply", func(b broken) error {
			b.warm()
			b.proxy.Set(valkeytest.Unanswered, valkeytest.Silence)
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			return b.c.Set(ctx, "k", "v", 0).Err()
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := broken{proxy: valkeytest.NewProxy(t, server.Address)}
			b.c = client(t, Endpoint{Addresses: []string{b.proxy.Address}}, WaitReply(time.Second))
			b.warm = func() {
				if err := b.c.Ping(context.Background()).Err(); err != nil {
					t.Fatal(err)
				}
				// Pipelines have connections of their own.
				p := b.c.Pipeline()
				p.Ping(context.Background())
				if _, err := p.Exec(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			server.Direct.FlushAll(context.Background())
			err := test.do(b)
			if err == nil {
				t.Fatal("no error")
			}
			stage := ""
			if e := (*NotSentError)(nil); errors.As(err, &e) {
				stage = e.Stage
			}
			if !slices.Contains(strings.Split(test.want, "|"), stage) {
				t.Errorf("stage %q of %q, want %q", stage, err, test.want)
			}
			b.proxy.Drop()
			server.Alone()
			if stage != "" && server.Direct.Exists(context.Background(), "k").Val() != 0 {
				t.Errorf("%q, and the server has it", err)
			}
		})
	}
}

// The pool's own timeout: every connection is busy.
func TestWaitingForAConnectionIsNotSent(t *testing.T) {
	server := valkeytest.Start(t)
	proxy := valkeytest.NewProxy(t, server.Address)
	c := redis.NewClient(&redis.Options{Addr: proxy.Address, PoolSize: 1, PoolTimeout: 100 * time.Millisecond, MaxRetries: -1, Protocol: 2})
	defer c.Close()
	c.AddHook(notSent{})
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	before := server.Calls("set")
	proxy.Set(valkeytest.Before, valkeytest.Silence)
	busy := make(chan error)
	go func() { busy <- c.Get(context.Background(), "k").Err() }()
	for c.PoolStats().IdleConns != 0 {
		time.Sleep(time.Millisecond)
	}
	err := c.Set(t.Context(), "k", "v", 0).Err()
	if e := (*NotSentError)(nil); !errors.As(err, &e) || !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("error %v, want a pool timeout that is marked as not sent", err)
	}
	proxy.Drop()
	<-busy
	if sent := server.Calls("set") - before; sent != 0 {
		t.Errorf("the server counted %d SETs", sent)
	}
}

// A server that has too many clients says so and closes. go-redis takes the reply for that of an old server, which doesn't know
// HELLO, and would go on to write the command.
func TestTooManyClientsIsNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		// It reads what comes, so that no reset tells the client before its command is written.
		lines := bufio.NewReader(conn)
		if _, err := lines.ReadString('\n'); err == nil {
			_, _ = conn.Write([]byte("-ERR max number of clients reached\r\n"))
			for err == nil {
				var line string
				if line, err = lines.ReadString('\n'); strings.EqualFold(line, "set\r\n") {
					t.Error("the command was sent")
					return
				}
			}
		}
	}()
	c := client(t, Endpoint{Addresses: []string{l.Addr().String()}})
	err = c.Set(t.Context(), "k", "v", 0).Err()
	if !isNotSent(err) || !strings.Contains(err.Error(), "max number of clients") {
		t.Errorf("error %v, want the server's, marked as not sent", err)
	}
	_ = c.Close()
	_ = l.Close()
	<-served
}
