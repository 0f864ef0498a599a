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
// A store that stops answering catches an acquire if the stop lasts for longer than one RetryAfter and shorter than two,
// counted from when the acquire was sent. The first try waits in the stopped server's socket, where the client's closing of
// the connection does not take it away, and is executed as soon as the server goes on. The second try begins 10 to 30 ms after
// the first has timed out (go-redis's backoff), on a new connection, whose handshake waits for the server too; if that times
// out as well, it is not repeated, whatever Retries says, and the caller gets an error instead of a refusal.
//
// So a pause of 1.5 RetryAfters catches every acquire of its first third that is sent on an open connection, and leaves half
// a RetryAfter for stalls on either side. (Measured on valkey 8.0 with 16 acquires each: a pause of 0.9 s catches none, of
// 1.1 to 1.6 s all that had a connection, of 2.4 s none.)
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
