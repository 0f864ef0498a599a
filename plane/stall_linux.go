package plane

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// preciseSleep gives a sleep that the kernel times, on a thread that the calling goroutine keeps until done.
func preciseSleep() (sleep func(time.Duration), done func()) {
	runtime.LockOSThread()
	return func(d time.Duration) {
		rest := unix.NsecToTimespec(int64(d))
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &rest, &rest) == unix.EINTR {
			// Signals that Go sends to its threads cut it short: sleep the rest.
		}
	}, runtime.UnlockOSThread
}
