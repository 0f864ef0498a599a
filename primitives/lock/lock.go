// Package lock is a lock with a time-to-live, kept in one Valkey or Redis server. Two kinds: Valkey, and Fenced, whose
// grants carry an increasing token that the protected resource can check.
//
// # What it promises
//
// As long as the server keeps what it acknowledged and its clock neither jumps nor drifts much, at most one owner is in the
// store at a time, and only the owner can extend or release. A holder that dies is replaced when its time-to-live has run
// out.
//
// # What it does not promise
//
//   - That only one client acts. A holder that is paused (garbage collection, a stopped virtual machine, a slow network)
//     past its time-to-live does not know that its lock has expired, and goes on writing when it wakes. Looking at the clock
//     before each write narrows the window and does not close it. Only a resource that refuses lower tokens than it has seen
//     closes it: use Fenced, and check the token there. (Kleppmann, "How to do distributed locking", 2016.)
//   - That a grant survives the loss of its server. Replication is asynchronous: a failover can forget a grant that was
//     acknowledged, and so can a restart without persistence or with fsync every second, an eviction, a flush. The same
//     events set Fenced's counter back. (Valkey and Redis documentation, "Distributed locks", on why a replica does not make
//     it safe.) WAIT narrows this and does not close it.
//   - Fairness or order among those who wait.
//   - That an error means "not taken". After a lost reply the lock may be held by an owner that nobody knows; it frees
//     itself when its time-to-live ends.
//
// Times-to-live are whole milliseconds at the server: fractions are cut off, and what is left of less than one is an error.
//
// The client must not repeat commands by itself (go-redis: MaxRetries -1). A repeated SET NX whose first try succeeded is
// answered "taken" by its own success.
//
// The algorithm is the one that the SET command's documentation describes: SET NX PX with a random value, released by a
// script that compares the value.
package lock

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrNotAcquired: somebody else holds the lock.
	ErrNotAcquired = errors.New("lock: not acquired")
	// ErrNotHeld: the lock is no longer the caller's: it expired, and perhaps somebody else has it.
	ErrNotHeld = errors.New("lock: not held")
)

// Client is what a lock needs of a go-redis client: *redis.Client, *redis.ClusterClient and *redis.Ring satisfy it.
type Client interface {
	redis.Scripter
	SetArgs(ctx context.Context, key string, value any, args redis.SetArgs) *redis.StatusCmd
}

// Lease is a lock that was granted. It is a value: copies are the same lease.
type Lease struct {
	Key string
	// Owner is the random value that stands for this grant in the store. It is a secret of the holder.
	Owner string
	// Token is the fencing token, from 1; 0 if the lock gives none.
	Token int64
	// Until is when the lease ends by the clock of this process, counted from before the request was sent, so that the
	// server's ends later unless its clock is faster. After it, assume nothing; before it, see the package's promises.
	Until time.Time
}

// Option changes a setting of a lock.
type Option func(*options)

type options struct{ now func() time.Time }

// Now sets the clock that Until is counted on. The default is time.Now, whose readings are monotonic.
func Now(now func() time.Time) Option { return func(o *options) { o.now = now } }

func settings(list []Option) options {
	o := options{now: time.Now}
	for _, option := range list {
		option(&o)
	}
	return o
}

var (
	//go:embed release.lua
	releaseSource string
	//go:embed extend.lua
	extendSource string

	// Run sends EVALSHA, and EVAL if the server answers NOSCRIPT. That is no second try of something that may have had its
	// effect: NOSCRIPT says that nothing was run.
	releaseScript = redis.NewScript(releaseSource)
	extendScript  = redis.NewScript(extendSource)
)

// held extends and releases: the same for every kind of lock, as both compare the owner and nothing else.
type held struct {
	client redis.Scripter
	now    func() time.Time
}

// Extend makes the lease's time-to-live run anew from now, and returns the lease with its new Until. ErrNotHeld if it was
// not the holder any more; the lock is then untouched, as an expired lease does not come back. After any other error the
// extension may have happened or not: the old Until stands.
func (h held) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	ttl, err := whole(ttl)
	if err != nil {
		return lease, fmt.Errorf("lock: extend %q: %w", lease.Key, err)
	}
	asked := h.now()
	extended, err := extendScript.Run(ctx, h.client, []string{lease.Key}, lease.Owner, ttl.Milliseconds()).Int64()
	if err != nil {
		return lease, fmt.Errorf("lock: extend %q: %w", lease.Key, err)
	}
	if extended == 0 {
		return lease, ErrNotHeld
	}
	lease.Until = asked.Add(ttl)
	return lease, nil
}

// Release frees the lock. ErrNotHeld if it was not the holder any more; whoever holds it now keeps it. After any other error
// the lock may be free or not; it frees itself when its time-to-live ends.
func (h held) Release(ctx context.Context, lease Lease) error {
	deleted, err := releaseScript.Run(ctx, h.client, []string{lease.Key}, lease.Owner).Int64()
	if err != nil {
		return fmt.Errorf("lock: release %q: %w", lease.Key, err)
	}
	if deleted == 0 {
		return ErrNotHeld
	}
	return nil
}

// whole cuts a time-to-live to the milliseconds that the server counts in.
func whole(ttl time.Duration) (time.Duration, error) {
	if ttl < time.Millisecond {
		return 0, fmt.Errorf("a time-to-live of %v is less than the millisecond that the server counts in", ttl)
	}
	return ttl.Truncate(time.Millisecond), nil
}

// newOwner is at least 128 random bits: no two grants share one.
func newOwner() string { return rand.Text() }
