package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/primitives/lock"
)

// SetNXThenExpire takes the lock with SETNX and gives it its time-to-live with a second command.
//
// What is wrong: between the two commands the lock has no time-to-live.
//
// How it hurts: a process that dies there, or whose second command is lost, leaves a lock that never expires. Nobody gets it
// again until a person deletes the key.
//
// Seen in: redis-py before 3.0 (github.com/redis/redis-py issue 818), Laravel Horizon (github.com/laravel/horizon issue
// 1738), ShedLock (github.com/lukas-krecan/ShedLock issue 65). SET with NX and PX has done both in one step since Redis
// 2.6.12.
type SetNXThenExpire struct {
	*lock.Valkey
	client redis.Cmdable
	point  func(ctx context.Context, name string)
	now    func() time.Time
}

// BetweenCommands is the point at which a client has taken the lock and not yet given it a time-to-live.
const BetweenCommands = "between-commands"

// NewSetNXThenExpire makes the lock. point is called at BetweenCommands with the context of the Acquire.
func NewSetNXThenExpire(client redis.Cmdable, point func(context.Context, string), now func() time.Time) *SetNXThenExpire {
	return &SetNXThenExpire{Valkey: lock.NewValkey(client, lock.Now(now)), client: client, point: point, now: now}
}

// Acquire takes the lock, and then gives it its time-to-live. lock.ErrNotAcquired if somebody holds it.
func (l *SetNXThenExpire) Acquire(ctx context.Context, key string, ttl time.Duration) (lock.Lease, error) {
	ttl = ttl.Truncate(time.Millisecond)
	lease := lock.Lease{Key: key, Owner: rand.Text(), Until: l.now().Add(ttl)}
	// SET NX without a time-to-live is what SETNX means, and what go-redis sends for it.
	err := l.client.SetArgs(ctx, key, lease.Owner, redis.SetArgs{Mode: "NX"}).Err()
	if errors.Is(err, redis.Nil) {
		return lock.Lease{}, lock.ErrNotAcquired
	}
	if err != nil {
		return lock.Lease{}, fmt.Errorf("acquire %q: %w", key, err)
	}
	l.point(ctx, BetweenCommands)
	// The lock is taken by now. So an error of the second command says nothing of the whole, even where that command was
	// certainly never sent, and it is not wrapped: nobody shall find a cause in it that says "no effect".
	expires, err := l.client.PExpire(ctx, key, ttl).Result()
	if err != nil {
		return lock.Lease{}, fmt.Errorf("acquire %q: taken, but without a time-to-live: %v", key, err)
	}
	if !expires {
		return lock.Lease{}, fmt.Errorf("acquire %q: the key was gone before it had a time-to-live", key)
	}
	return lease, nil
}
