package subjects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/primitives/lock"
)

// locker is what the locks that keep one key in one Valkey have in common.
type locker interface {
	Acquire(ctx context.Context, key string, ttl time.Duration) (lock.Lease, error)
	Extend(ctx context.Context, lease lock.Lease, ttl time.Duration) (lock.Lease, error)
	Release(ctx context.Context, lease lock.Lease) error
}

// valkeyLock makes a Lock of a locker. A Grant's Handle is the lock.Lease.
type valkeyLock struct {
	locker
	store valkey
	// acquired classifies what Acquire returned; extend and release are always classified by ClassifyRedis.
	acquired func(error) history.Outcome
	closers  []io.Closer
}

func newValkeyLock(store valkey, l locker, closers ...io.Closer) *valkeyLock {
	return &valkeyLock{locker: l, store: store, acquired: ClassifyRedis, closers: append(closers, store)}
}

// onValkey is a Subject's New for a lock that needs no more than one client.
func onValkey(lockIn func(store valkey, env Env) locker) func(context.Context, Env) (any, error) {
	return func(ctx context.Context, env Env) (any, error) {
		store, err := openValkey(ctx, env)
		if err != nil {
			return nil, err
		}
		return newValkeyLock(store, lockIn(store, env)), nil
	}
}

func (l *valkeyLock) Acquire(ctx context.Context, _ int, key string, ttl time.Duration) (Grant, Answer) {
	lease, err := l.locker.Acquire(ctx, l.store.key(key), ttl)
	return Grant{Token: lease.Token, Handle: lease}, lockAnswer(err, l.acquired)
}

func (l *valkeyLock) Extend(ctx context.Context, _ int, _ string, g Grant, ttl time.Duration) Answer {
	lease, ok := g.Handle.(lock.Lease)
	if !ok {
		return noLease(g)
	}
	_, err := l.locker.Extend(ctx, lease, ttl)
	return lockAnswer(err, ClassifyRedis)
}

func (l *valkeyLock) Release(ctx context.Context, _ int, _ string, g Grant) Answer {
	lease, ok := g.Handle.(lock.Lease)
	if !ok {
		return noLease(g)
	}
	return lockAnswer(l.locker.Release(ctx, lease), ClassifyRedis)
}

func (l *valkeyLock) Close() error {
	var errs []error
	for _, c := range l.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// lockAnswer puts the lock's own refusals before what the store said.
func lockAnswer(err error, classify func(error) history.Outcome) Answer {
	const node = 0 // there is one
	if errors.Is(err, lock.ErrNotAcquired) || errors.Is(err, lock.ErrNotHeld) {
		return Answer{Outcome: history.Refused, Err: err, Node: node}
	}
	return Answer{Outcome: classify(err), Err: err, Node: node}
}

// noLease answers a grant that this subject did not give: nothing was sent.
func noLease(g Grant) Answer {
	return Answer{Outcome: history.Failed, Err: fmt.Errorf("subjects: %T is no lease of this lock", g.Handle), Node: history.NoNode}
}
