package lock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/internal/valkeytest"
)

// kind is what both kinds of lock do.
type kind interface {
	Acquirer
	Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error)
	Release(ctx context.Context, lease Lease) error
}

// each runs a test on both kinds, each with a server of its own.
func each(t *testing.T, test func(t *testing.T, l kind, store *redis.Client), options ...Option) {
	t.Run("Valkey", func(t *testing.T) {
		server := valkeytest.Start(t)
		test(t, NewValkey(server.Direct, options...), server.Direct)
	})
	t.Run("Fenced", func(t *testing.T) {
		server := valkeytest.Start(t)
		test(t, NewFenced(server.Direct, options...), server.Direct)
	})
}

// minute is longer than any stall of the machine: within it nothing expires by accident.
const minute = time.Minute

func acquire(t *testing.T, l Acquirer, key string, ttl time.Duration) Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), key, ttl)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lease
}

// expire makes the server take the lock's time-to-live for run out.
func expire(t *testing.T, store *redis.Client, key string) {
	t.Helper()
	store.PExpire(t.Context(), key, time.Millisecond)
	for store.Exists(t.Context(), key).Val() != 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestOneHolderAtATime(t *testing.T) {
	each(t, func(t *testing.T, l kind, _ *redis.Client) {
		a := acquire(t, l, "k", minute)
		if _, err := l.Acquire(t.Context(), "k", minute); !errors.Is(err, ErrNotAcquired) {
			t.Errorf("second acquire: %v, want ErrNotAcquired", err)
		}
		acquire(t, l, "other", minute)
		if err := l.Release(t.Context(), a); err != nil {
			t.Errorf("release: %v", err)
		}
		b := acquire(t, l, "k", minute)
		if b.Owner == a.Owner || len(b.Owner) < 22 {
			t.Errorf("owners %q and %q", a.Owner, b.Owner)
		}
	})
}

func TestOnlyTheHolderExtendsAndReleases(t *testing.T) {
	each(t, func(t *testing.T, l kind, store *redis.Client) {
		a := acquire(t, l, "k", minute)
		expire(t, store, "k")
		b := acquire(t, l, "k", minute)
		if _, err := l.Extend(t.Context(), a, 2*minute); !errors.Is(err, ErrNotHeld) {
			t.Errorf("extend by the one before: %v", err)
		}
		if err := l.Release(t.Context(), a); !errors.Is(err, ErrNotHeld) {
			t.Errorf("release by the one before: %v", err)
		}
		if left := store.PTTL(t.Context(), "k").Val(); left > minute {
			t.Errorf("the one before extended the holder's lock to %v", left)
		}
		if owner := store.Get(t.Context(), "k").Val(); owner != b.Owner {
			t.Errorf("the lock is %q's, want %q", owner, b.Owner)
		}
		if err := l.Release(t.Context(), b); err != nil {
			t.Errorf("release by the holder: %v", err)
		}
		if err := l.Release(t.Context(), b); !errors.Is(err, ErrNotHeld) {
			t.Errorf("second release: %v", err)
		}
	})
}

func TestAnExpiredLockDoesNotComeBack(t *testing.T) {
	each(t, func(t *testing.T, l kind, store *redis.Client) {
		a := acquire(t, l, "k", 20*time.Millisecond)
		for store.Exists(t.Context(), "k").Val() != 0 {
			time.Sleep(5 * time.Millisecond)
		}
		if _, err := l.Extend(t.Context(), a, minute); !errors.Is(err, ErrNotHeld) {
			t.Errorf("extend: %v, want ErrNotHeld", err)
		}
		if store.Exists(t.Context(), "k").Val() != 0 {
			t.Error("the extension brought the lock back")
		}
		acquire(t, l, "k", minute)
	})
}

func TestTimeToLive(t *testing.T) {
	now := time.Unix(1000, 0)
	each(t, func(t *testing.T, l kind, store *redis.Client) {
		// Fractions of a millisecond are cut off, for the server and for Until alike.
		a := acquire(t, l, "k", minute+900*time.Microsecond)
		if want := now.Add(minute); !a.Until.Equal(want) {
			t.Errorf("until %v, want %v", a.Until, want)
		}
		if left := store.PTTL(t.Context(), "k").Val(); left > minute || left < minute-20*time.Second {
			t.Errorf("the server has it for %v, want about %v", left, minute)
		}
		b, err := l.Extend(t.Context(), a, 3*minute)
		if err != nil || !b.Until.Equal(now.Add(3*minute)) || b.Owner != a.Owner || b.Token != a.Token {
			t.Errorf("extended: %+v, %v", b, err)
		}
		if left := store.PTTL(t.Context(), "k").Val(); left > 3*minute || left < 2*minute {
			t.Errorf("the server has it for %v, want about %v", left, 3*minute)
		}
		for _, ttl := range []time.Duration{-time.Second, 0, time.Millisecond - 1} {
			if _, err := l.Acquire(t.Context(), "free", ttl); err == nil || errors.Is(err, ErrNotAcquired) {
				t.Errorf("acquire for %v: %v", ttl, err)
			}
			if _, err := l.Extend(t.Context(), b, ttl); err == nil || errors.Is(err, ErrNotHeld) {
				t.Errorf("extend by %v: %v", ttl, err)
			}
		}
		if store.Exists(t.Context(), "free").Val() != 0 {
			t.Error("a time-to-live that is an error took the lock")
		}
		if lease, err := l.Acquire(t.Context(), "short", time.Millisecond); err != nil || lease.Until.Sub(now) != time.Millisecond {
			t.Errorf("the shortest: %+v, %v", lease, err)
		}
	}, Now(func() time.Time { return now }))
}

// A server that forgot its scripts runs them all the same, each once.
func TestScriptsAreLoadedWhenTheyAreMissing(t *testing.T) {
	server := valkeytest.Start(t)
	l := NewFenced(server.Direct)
	for i := range int64(2) {
		if err := server.Direct.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		lease := acquire(t, l, "k", minute)
		if lease.Token != i+1 {
			t.Errorf("token %d, want %d: it was run more than once", lease.Token, i+1)
		}
		if err := l.Release(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
}

func TestErrorsSayWhatWasDone(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: valkeytest.Unused(t), MaxRetries: -1, DialerRetries: 1})
	defer client.Close()
	for name, l := range map[string]kind{"Valkey": NewValkey(client), "Fenced": NewFenced(client)} {
		_, acquired := l.Acquire(t.Context(), "k", minute)
		_, extended := l.Extend(t.Context(), Lease{Key: "k"}, minute)
		released := l.Release(t.Context(), Lease{Key: "k"})
		for verb, err := range map[string]error{"acquire": acquired, "extend": extended, "release": released} {
			if err == nil || errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrNotHeld) ||
				!strings.HasPrefix(err.Error(), "lock: "+verb+` "k": `) {
				t.Errorf("%s: %s without a server: %v", name, verb, err)
			}
		}
	}
}

// Clients that contend for a lock never overlap in the store's own order, and their tokens count the grants.
func TestTokensCountTheGrants(t *testing.T) {
	server := valkeytest.Start(t)
	l := NewFenced(server.Direct)
	const clients, grants = 8, 40
	var (
		mu     sync.Mutex
		tokens []int64
		inside bool
		wait   sync.WaitGroup
	)
	for range clients {
		wait.Go(func() {
			for range grants {
				lease, err := Wait(t.Context(), l, "k", minute, time.Millisecond)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if inside {
					t.Error("two holders at once")
				}
				inside = true
				tokens = append(tokens, lease.Token)
				mu.Unlock()
				mu.Lock()
				inside = false
				mu.Unlock()
				if err := l.Release(t.Context(), lease); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	for i, token := range tokens {
		if token != int64(i+1) {
			t.Fatalf("grant %d has token %d: %v", i+1, token, tokens)
		}
	}
	if len(tokens) != clients*grants {
		t.Errorf("%d grants, want %d", len(tokens), clients*grants)
	}
	if left := server.Direct.PTTL(t.Context(), "{k}"+counterSuffix).Val(); left != -1 {
		t.Errorf("the counter's time-to-live is %v, want none", left)
	}
}
