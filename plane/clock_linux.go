package plane

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity names this process's monotonic clock. It is empty if it can't be read, and then shares with none.
func identity() Identity {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}
	}
	id := Identity{Boot: strings.TrimSpace(string(boot))}
	info, err := os.Stat("/proc/self/ns/time")
	if errors.Is(err, fs.ErrNotExist) {
		return id // a kernel before 5.6: it has one clock for all
	}
	if err != nil {
		return Identity{}
	}
	id.Namespace = info.Sys().(*syscall.Stat_t).Ino
	return id
}

// rawMonotonic reads CLOCK_MONOTONIC, which Go's clock is counted from, in ns.
func rawMonotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("plane: no monotonic clock: " + err.Error())
	}
	return ts.Nano()
}
