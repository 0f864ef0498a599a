//go:build !linux

package endpoint

import (
	"syscall"
	"time"
)

// userTimeout does nothing: this system has no TCP_USER_TIMEOUT.
func userTimeout(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
