// Package sleep waits in a way that can be cut short.
package sleep

import (
	"context"
	"time"
)

// For waits for d and reports whether all of it went by. It did not if ctx ended first, or if something came from wakes or it
// was closed; nil never wakes anybody. If d is not positive, For only looks whether ctx has ended.
func For(ctx context.Context, d time.Duration, wakes <-chan struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-wakes:
		return false
	}
}
