package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/primitives/lock"
)

// ExtendExpired extends by setting the key again.
//
// What is wrong: SET does not ask whether the lock is still the caller's, or whether it is there at all.
//
// How it hurts: an expired hold comes back. A client that slept through its time-to-live extends when it wakes and is told
// that it holds the lock, as if it had never lost it, though others may have come and gone meanwhile; and if somebody holds
// it now, that lock is overwritten and both go on.
//
// Seen in: redlock-rb, whose extend took an expired lock for a held one (github.com/leandromoreira/redlock-rb issue 36);
// single-beat, whose refresh does not look (github.com/ybrs/single-beat issue 55).
type ExtendExpired struct {
	*lock.Valkey
	client redis.Cmdable
	now    func() time.Time
}

// NewExtendExpired makes the lock on a client that does not repeat commands by itself.
func NewExtendExpired(client redis.Cmdable, now func() time.Time) *ExtendExpired {
	return &ExtendExpired{Valkey: lock.NewValkey(client, lock.Now(now)), client: client, now: now}
}

// Extend sets the key to the lease's owner for ttl from now, whoever holds it.
func (l *ExtendExpired) Extend(ctx context.Context, lease lock.Lease, ttl time.Duration) (lock.Lease, error) {
	ttl = ttl.Truncate(time.Millisecond)
	asked := l.now()
	if err := l.client.Set(ctx, lease.Key, lease.Owner, ttl).Err(); err != nil {
		return lease, fmt.Errorf("extend %q: %w", lease.Key, err)
	}
	lease.Until = asked.Add(ttl)
	return lease, nil
}
