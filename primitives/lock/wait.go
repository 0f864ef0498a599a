package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Acquirer is a lock that can be tried: Valkey and Fenced.
type Acquirer interface {
	Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error)
}

// Wait tries until the lock is taken.
//
//  1. The first try is made at once.
//  2. When a try finds the lock held, the next comes after a random time between half of every and one and a half of it: so
//     those who were refused together do not come back together.
//  3. Any error but ErrNotAcquired ends it, and is returned: after it nobody knows whether the lock was taken, and another
//     try could be refused by the success of this one.
//  4. When ctx ends it returns an error that is both ctx.Err() and, if a try was refused, ErrNotAcquired.
//  5. There is no queue: whoever tries first after the lock is free has it. The lease runs from the try that succeeded.
//
// every must be positive: a loop without a pause would load the server for nothing.
func Wait(ctx context.Context, lock Acquirer, key string, ttl, every time.Duration) (Lease, error) {
	if every <= 0 {
		return Lease{}, fmt.Errorf("lock: wait for %q: the time between tries is %v, and must be positive", key, every)
	}
	timer := time.NewTimer(0) // fires at once: the first try
	defer timer.Stop()
	var last error
	for {
		select {
		case <-ctx.Done():
			return Lease{}, fmt.Errorf("lock: wait for %q: %w", key, errors.Join(ctx.Err(), last))
		case <-timer.C:
		}
		lease, err := lock.Acquire(ctx, key, ttl)
		if err == nil || !errors.Is(err, ErrNotAcquired) {
			return lease, err
		}
		last = err
		timer.Reset(every/2 + rand.N(every))
	}
}
