package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Valkey is a lock without fencing tokens. It is safe to use concurrently, for any number of keys.
type Valkey struct {
	held
	client Client
}

// NewValkey makes a lock on a client that does not repeat commands by itself.
func NewValkey(client Client, list ...Option) *Valkey {
	o := settings(list)
	return &Valkey{held: held{client: client, now: o.now}, client: client}
}

// Acquire tries once to take the lock for ttl. ErrNotAcquired if somebody holds it. After any other error the lock may have
// been taken, by an owner that nobody knows.
func (l *Valkey) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	ttl, err := whole(ttl)
	if err != nil {
		return Lease{}, fmt.Errorf("lock: acquire %q: %w", key, err)
	}
	lease := Lease{Key: key, Owner: newOwner(), Until: l.now().Add(ttl)}
	err = l.client.SetArgs(ctx, key, lease.Owner, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return Lease{}, ErrNotAcquired
	}
	if err != nil {
		return Lease{}, fmt.Errorf("lock: acquire %q: %w", key, err)
	}
	return lease, nil
}
