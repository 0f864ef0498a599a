package history

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// preallocate reserves blocks without writing them. errors.ErrUnsupported: this file system can't.
func preallocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EOPNOTSUPP || err == unix.ENOSYS:
			return errors.ErrUnsupported
		case err != nil:
			return os.NewSyscallError("fallocate", err)
		}
		return nil
	}
}
