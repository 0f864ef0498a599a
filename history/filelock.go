package history

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the lock of a names file, which goes away with the process that holds it, however that ends.
func lock(f *os.File) error {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return fmt.Errorf("history: %s is %w: end the process that records into it first", f.Name(), ErrInUse)
		default:
			return fmt.Errorf("history: locking %s: %w", f.Name(), err)
		}
	}
}
