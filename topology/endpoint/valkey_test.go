package endpoint

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/internal/valkeytest"
)

// client makes a client of a standalone endpoint that is closed when the test ends.
func client(t *testing.T, e Endpoint, options ...Option) redis.UniversalClient {
	t.Helper()
	e.Kind = "standalone"
	c, err := e.Valkey(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// One lost reply, one command counted at the server: whatever becomes of the reply, the reference client does not send the
// command again. A client with the library's own retries does, which shows that the count would tell.
func TestACommandIsSentOnce(t *testing.T) {
	server := valkeytest.Start(t)
	for _, end := range []valkeytest.End{valkeytest.FIN, valkeytest.RST, valkeytest.Silence} {
		for _, where := range []valkeytest.Break{valkeytest.Unanswered, valkeytest.MidReply} {
			for _, retries := range []int{0, 2} {
				t.Run(fmt.Sprintf("%s/%s/retries=%d", where, end, retries), func(t *testing.T) {
					proxy := valkeytest.NewProxy(t, server.Address)
					c := client(t, Endpoint{Addresses: []string{proxy.Address}}, Retries(retries), WaitReply(500*time.Millisecond))
					if err := c.Ping(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
					proxy.Set(where, end)
					before := server.Calls("set")
					if err := c.Set(t.Context(), "k", "v", 0).Err(); err == nil {
						t.Fatal("the reply was lost, and there is no error")
					}
					proxy.Drop()
					server.Alone()
					if sent := server.Calls("set") - before; sent != 1+retries {
						t.Errorf("the server counted %d SETs, want %d", sent, 1+retries)
					}
				})
			}
		}
	}
}

func TestAWorkerDialsFromItsOwnAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	server := valkeytest.Start(t)
	e := Endpoint{Addresses: []string{server.Address}, Sources: map[string]string{"w1": "127.0.0.7", "w2": "nonsense"}}
	for worker, want := range map[string]string{"w1": " addr=127.0.0.7:", "w9": " addr=127.0.0.1:"} {
		c := client(t, e, From(worker))
		info, err := c.Do(t.Context(), "CLIENT", "INFO").Text()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(info, want) {
			t.Errorf("%s: %q is not in %q", worker, want, info)
		}
	}
	e.Kind = "standalone"
	if _, err := e.Valkey(From("w2")); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a source that is no address: %v", err)
	}
}

func TestAnEndpointThatCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		e    Endpoint
		want string
	}{
		"kind":    {Endpoint{Kind: "ring", Addresses: []string{"a:1"}}, `no client for Valkey of kind "ring"; there are standalone`},
		"address": {Endpoint{Kind: "standalone"}, "no address"},
		"ca": {
			Endpoint{Kind: "standalone", Addresses: []string{"a:1"}, TLS: &TLS{CAFile: "/nonexistent/ca.pem"}},
			"certificate authority",
		},
		"half a certificate": {
			Endpoint{Kind: "standalone", Addresses: []string{"a:1"}, TLS: &TLS{CertFile: "c.pem"}},
			"both its certificate and its key",
		},
	} {
		if _, err := test.e.Valkey(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, test.want)
		}
	}
}

// A deadline that is shorter than the read timeout is honoured; the settings themselves are what the constants say.
func TestTheContextsDeadlineIsHonoured(t *testing.T) {
	server := valkeytest.Start(t)
	proxy := valkeytest.NewProxy(t, server.Address)
	c := client(t, Endpoint{Addresses: []string{proxy.Address}})
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Set(valkeytest.Before, valkeytest.Silence)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := c.Get(ctx, "k").Err()
	if took := time.Since(began); err == nil || took > ReadTimeout-100*time.Millisecond {
		t.Errorf("a deadline of 50ms: %v after %v", err, took)
	}
	o := c.(*redis.Client).Options()
	if o.MaxRetries != 0 || o.DialTimeout != DialTimeout || o.ReadTimeout != ReadTimeout || o.WriteTimeout != WriteTimeout || o.PoolSize != PoolSize {
		t.Errorf("settings differ from those stated: %+v", *o)
	}
}
