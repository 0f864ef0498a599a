package subjects

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	flawed "fencepost.dev/flawed/lock"
	"fencepost.dev/history"
	"fencepost.dev/internal/valkeytest"
	"fencepost.dev/models"
	"fencepost.dev/primitives/lock"
	"fencepost.dev/topology/endpoint"
)

const (
	minute    = time.Minute // longer than any stall of the machine
	namespace = "run7:"
	stored    = namespace + "{k}" // what the workload calls k
)

// build makes a subject of the catalogue in a worker of its own on a server of its own.
func build(t *testing.T, name string, change ...func(*Env)) (Lock, *valkeytest.Server) {
	t.Helper()
	server := valkeytest.Start(t)
	return buildOn(t, name, server, change...), server
}

func buildOn(t *testing.T, name string, server *valkeytest.Server, change ...func(*Env)) Lock {
	t.Helper()
	s, found := Find(name)
	if !found {
		t.Fatalf("no subject %q", name)
	}
	env := Env{
		Worker:    "w1",
		Endpoints: endpoint.Set{"valkey": {Kind: "standalone", Addresses: []string{server.Address}, Namespace: namespace}},
		Now:       time.Now, Point: func(context.Context, string) {}, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&env)
	}
	built, err := s.New(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = built.(io.Closer).Close() })
	return built.(Lock)
}

func want(t *testing.T, what string, a Answer, outcome history.Outcome) {
	t.Helper()
	if a.Outcome != outcome || (a.Err == nil) != (outcome == history.OK) {
		t.Errorf("%s: %v (%v), want %v", what, a.Outcome, a.Err, outcome)
	}
	if a.Node != 0 {
		t.Errorf("%s: node %d, want 0", what, a.Node)
	}
}

// expire makes the time-to-live of k run out.
func expire(t *testing.T, server *valkeytest.Server) {
	t.Helper()
	server.Direct.PExpire(t.Context(), stored, time.Millisecond)
	for server.Direct.Exists(t.Context(), stored).Val() != 0 {
		time.Sleep(time.Millisecond)
	}
}

// What every lock of the catalogue does right, the flawed ones too: their flaws need an occasion.
func TestLocks(t *testing.T) {
	for _, s := range All() {
		if s.Primitive != "lock" || len(s.Stores) != 1 || s.Stores[0] != "valkey" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			l, server := build(t, s.Name)
			ctx := t.Context()
			a, answer := l.Acquire(ctx, 0, "k", minute)
			want(t, "acquire", answer, history.OK)
			_, answer = l.Acquire(ctx, 1, "k", minute)
			want(t, "acquire what is held", answer, history.Refused)
			if left := server.Direct.PTTL(ctx, stored).Val(); left > minute || left < minute-30*time.Second {
				t.Errorf("time-to-live at the server: %v, want about %v", left, minute)
			}
			want(t, "extend", l.Extend(ctx, 0, "k", a, 2*minute), history.OK)
			if left := server.Direct.PTTL(ctx, stored).Val(); left > 2*minute || left < minute {
				t.Errorf("time-to-live at the server after extension: %v, want about %v", left, 2*minute)
			}
			want(t, "release", l.Release(ctx, 0, "k", a), history.OK)
			want(t, "second release", l.Release(ctx, 0, "k", a), history.Refused)
			b, answer := l.Acquire(ctx, 1, "k", minute)
			want(t, "acquire what was released", answer, history.OK)
			expire(t, server)
			want(t, "release what has expired", l.Release(ctx, 1, "k", b), history.Refused)
			c, answer := l.Acquire(ctx, 2, "k", minute)
			want(t, "acquire what has expired", answer, history.OK)
			if s.Contract.Tokens != (a.Token == 1 && b.Token == 2 && c.Token == 3) || !s.Contract.Tokens && a.Token+b.Token+c.Token != 0 {
				t.Errorf("tokens %d, %d, %d of a subject whose contract says %v", a.Token, b.Token, c.Token, s.Contract.Tokens)
			}
			for _, key := range server.Direct.Keys(ctx, "*").Val() {
				if !strings.HasPrefix(key, stored) {
					t.Errorf("it touched %q, outside of its namespace", key)
				}
			}
			want(t, "release by the last", l.Release(ctx, 2, "k", c), history.OK)
		})
	}
}

// The right ones: who has lost a lock neither extends nor frees the next holder's.
func TestALostLockStaysLost(t *testing.T) {
	for _, name := range []string{"lock/valkey", "lock/valkey-fenced"} {
		t.Run(name, func(t *testing.T) {
			l, server := build(t, name)
			ctx := t.Context()
			a, answer := l.Acquire(ctx, 0, "k", minute)
			want(t, "acquire", answer, history.OK)
			expire(t, server)
			want(t, "extend what has expired", l.Extend(ctx, 0, "k", a, minute), history.Refused)
			b, answer := l.Acquire(ctx, 1, "k", minute)
			want(t, "acquire what has expired", answer, history.OK)
			want(t, "extend what another holds", l.Extend(ctx, 0, "k", a, minute), history.Refused)
			want(t, "release what another holds", l.Release(ctx, 0, "k", a), history.Refused)
			want(t, "release by the holder", l.Release(ctx, 1, "k", b), history.OK)
		})
	}
}

func TestDeleteWithoutOwnerFreesAnothersLock(t *testing.T) {
	l, server := build(t, "flawed/lock/delete-without-owner")
	ctx := t.Context()
	a, _ := l.Acquire(ctx, 0, "k", minute)
	expire(t, server)
	_, answer := l.Acquire(ctx, 1, "k", minute)
	want(t, "acquire what has expired", answer, history.OK)
	want(t, "release what another holds", l.Release(ctx, 0, "k", a), history.OK)
	_, answer = l.Acquire(ctx, 2, "k", minute)
	want(t, "acquire beside the holder", answer, history.OK)
}

func TestSetNXThenExpireLeavesALockForEver(t *testing.T) {
	ctx, kill := context.WithCancel(t.Context())
	var at []string
	l, server := build(t, "flawed/lock/setnx-then-expire", func(env *Env) {
		env.Point = func(got context.Context, name string) {
			at = append(at, name)
			if got != ctx {
				t.Error("the point is called with another context than the acquire")
			}
			kill() // what follows is never sent, as if the process had ended here
		}
	})
	_, answer := l.Acquire(ctx, 0, "k", minute)
	// The lock was taken: what was never sent is only its expiry.
	want(t, "acquire", answer, history.Unknown)
	if len(at) != 1 || at[0] != flawed.BetweenCommands {
		t.Errorf("points %q, want %q", at, flawed.BetweenCommands)
	}
	if left := server.Direct.PTTL(t.Context(), stored).Val(); left != -1 {
		t.Errorf("time-to-live %v, want none", left)
	}
	s, _ := Find("flawed/lock/setnx-then-expire")
	if len(s.Points) != 1 || s.Points[0] != flawed.BetweenCommands {
		t.Errorf("the catalogue lists the points %q", s.Points)
	}
}

func TestExtendExpiredBringsALockBack(t *testing.T) {
	l, server := build(t, "flawed/lock/extend-expired")
	ctx := t.Context()
	a, _ := l.Acquire(ctx, 0, "k", minute)
	expire(t, server)
	want(t, "extend what has expired", l.Extend(ctx, 0, "k", a, minute), history.OK)
	_, answer := l.Acquire(ctx, 1, "k", minute)
	want(t, "acquire what came back", answer, history.Refused)

	expire(t, server)
	b, answer := l.Acquire(ctx, 1, "k", minute)
	want(t, "acquire what has expired", answer, history.OK)
	want(t, "extend what another holds", l.Extend(ctx, 0, "k", a, minute), history.OK)
	want(t, "extend by the one it was taken from", l.Release(ctx, 1, "k", b), history.Refused)
}

// A store that stops for longer than one wait for a reply and shorter than two makes every client block itself; the right lock
// under the same pause is answered, late.
func TestClientRetryBlocksItself(t *testing.T) {
	const clients = 8
	server := valkeytest.Start(t)
	several := func(env *Env) { env.Clients = clients }
	wrong := buildOn(t, "flawed/lock/client-retry", server, several)
	right := buildOn(t, "lock/valkey", server, several)
	server.Pause()
	time.AfterFunc(flawed.RetryAfter*3/2, server.Resume)
	var wait sync.WaitGroup
	for client := range clients {
		key := fmt.Sprint("wrong", client)
		wait.Go(func() {
			_, answer := wrong.Acquire(t.Context(), client, key, minute)
			want(t, "acquire of a lock that nobody holds", answer, history.Refused)
		})
		wait.Go(func() {
			_, answer := right.Acquire(t.Context(), client, "right"+key, minute)
			want(t, "the same without retries", answer, history.OK)
		})
	}
	wait.Wait()
	for client := range clients {
		if server.Direct.Exists(t.Context(), fmt.Sprintf("%s{wrong%d}", namespace, client)).Val() == 0 {
			t.Errorf("nobody holds lock %d: it was refused for another reason", client)
		}
	}
	if sent := server.Calls("set"); sent != 3*clients {
		t.Errorf("the server counted %d SETs, want %d: one of each right lock, and two of each wrong one", sent, 3*clients)
	}
	if got := classifyRetried(lock.ErrNotHeld); got != history.Unknown {
		t.Errorf("an error of a client that retries is %v", got)
	}
}

// The connections of a worker's clients are there before the run begins.
func TestConnectionsAreMadeReady(t *testing.T) {
	server := valkeytest.Start(t)
	buildOn(t, "lock/valkey", server, func(env *Env) { env.Clients = 5 })
	if n := strings.Count(server.Direct.ClientList(t.Context()).Val(), "\n"); n != 6 {
		t.Errorf("%d clients are connected, want 5 and the test's own", n)
	}
}

func TestASubjectWithoutItsStore(t *testing.T) {
	for _, s := range All() {
		if s.Primitive != "lock" {
			continue
		}
		env := Env{Now: time.Now}
		if _, err := s.New(t.Context(), env); err == nil || !strings.Contains(err.Error(), "no valkey store") {
			t.Errorf("%s without a store: %v", s.Name, err)
		}
		address := valkeytest.Unused(t)
		env.Endpoints = endpoint.Set{"valkey": {Kind: "standalone", Addresses: []string{address}, Password: "hush"}}
		_, err := s.New(t.Context(), env)
		if err == nil || !strings.Contains(err.Error(), address) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s with an absent server: %v", s.Name, err)
		}
	}
}

func TestAGrantOfAnotherLock(t *testing.T) {
	l, _ := build(t, "lock/valkey")
	for what, a := range map[string]Answer{
		"extend": l.Extend(t.Context(), 0, "k", Grant{}, minute), "release": l.Release(t.Context(), 0, "k", Grant{Handle: 7}),
	} {
		if a.Outcome != history.Failed || a.Err == nil {
			t.Errorf("%s: %v (%v), want failed", what, a.Outcome, a.Err)
		}
	}
}

func TestTheCatalogueOfLocks(t *testing.T) {
	for name, flaw := range map[string]bool{
		"lock/valkey": false, "lock/valkey-fenced": false,
		"flawed/lock/delete-without-owner": true, "flawed/lock/setnx-then-expire": true,
		"flawed/lock/client-retry": true, "flawed/lock/extend-expired": true,
	} {
		s, found := Find(name)
		if !found || s.Flawed != flaw || s.Primitive != "lock" || s.Summary == "" {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Contract.AfterExpiry != models.Gone || s.Contract.Refusals != models.Exact || s.Contract.Renews != models.RenewsClient {
			t.Errorf("%s: contract %+v", name, s.Contract)
		}
	}
}
