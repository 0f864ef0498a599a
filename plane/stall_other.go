//go:build !linux

package plane

import "time"

// preciseSleep falls back on Go's timers, which come up to a millisecond late.
func preciseSleep() (sleep func(time.Duration), done func()) { return time.Sleep, func() {} }
