package lock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/primitives/lock"
)

// ClientRetry is the right lock, taken through a client library that repeats commands by itself.
//
// What is wrong: SET NX is not idempotent, and the library does not know it. When the reply to the first try is late or lost,
// it sends the same command again; the first has taken the lock, so the second is answered "taken", and the caller is told
// that somebody else holds it.
//
// How it hurts: the lock is held by nobody who knows it, for a whole time-to-live, and every client is refused, the first one
// by itself.
//
// Seen in: go-redis (github.com/redis/go-redis issue 2985), whose default is 3 retries; other libraries retry as well.
//
// Only Acquire goes through the retrying client, so that this is the one thing wrong.
type ClientRetry struct {
	*lock.Valkey
	retrying *lock.Valkey
}

// Settings of the retrying client, and what they mean for whoever wants to catch it.
//
// A store that stops answering for P catches every acquire that was sent to it, and not answered, when it stopped, if
//
//	RetryAfter < P < (Retries+1) × RetryAfter
//
// The first try waits in the stopped server's socket, where the client's closing of the connection does not take it away; the
// server executes it as soon as it goes on, before it reads what arrived later. An acquire that begins later in the pause is
// caught if more than RetryAfter of it is left. P between one and two RetryAfters needs one retry only.
//
// RetryAfter is much longer than a machine under load stalls, so that without the pause nothing is repeated.
const (
	Retries    = 3 // the library's default
	RetryAfter = 1 * time.Second
)

// NewClientRetry makes the lock. retrying repeats commands; client does not.
func NewClientRetry(retrying, client redis.Cmdable, options ...lock.Option) *ClientRetry {
	return &ClientRetry{Valkey: lock.NewValkey(client, options...), retrying: lock.NewValkey(retrying, options...)}
}

// Acquire tries once, as far as it knows.
func (l *ClientRetry) Acquire(ctx context.Context, key string, ttl time.Duration) (lock.Lease, error) {
	return l.retrying.Acquire(ctx, key, ttl)
}
