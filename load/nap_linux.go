package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for about d, in the kernel: Go's own timers overshoot by a millisecond where clock_nanosleep does by some 60 µs
// (measured). It may return early, when a signal comes.
func nap(d time.Duration) {
	length := unix.NsecToTimespec(int64(d))
	// An interrupted sleep is not an error: whoever calls looks at the clock again.
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &length, nil)
}
