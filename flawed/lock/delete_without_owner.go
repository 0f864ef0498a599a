package lock

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/primitives/lock"
)

// DeleteWithoutOwner releases with a plain DEL.
//
// What is wrong: DEL does not look whose lock it is. Writing a random owner into the key, which this does too, is no use if
// nobody compares it.
//
// How it hurts: a holder whose time-to-live ran out during its work releases at the end of it, and deletes the lock of
// whoever took it meanwhile. A third client then gets in beside the second, and the second's release lets in a fourth: one
// slow client is enough to keep two in the critical section.
//
// Seen in: ShedLock's Redis provider (github.com/lukas-krecan/ShedLock issue 2583); warned of in the documentation of the
// SET command.
type DeleteWithoutOwner struct {
	*lock.Valkey
	client redis.Cmdable
}

// NewDeleteWithoutOwner makes the lock on a client that does not repeat commands by itself.
func NewDeleteWithoutOwner(client redis.Cmdable, options ...lock.Option) *DeleteWithoutOwner {
	return &DeleteWithoutOwner{Valkey: lock.NewValkey(client, options...), client: client}
}

// Release deletes the key, whoever holds it. lock.ErrNotHeld if there was none.
func (l *DeleteWithoutOwner) Release(ctx context.Context, lease lock.Lease) error {
	deleted, err := l.client.Del(ctx, lease.Key).Result()
	if err != nil {
		return fmt.Errorf("release %q: %w", lease.Key, err)
	}
	if deleted == 0 {
		return lock.ErrNotHeld
	}
	return nil
}
