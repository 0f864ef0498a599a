//go:build !linux

package history

import (
	"errors"
	"os"
)

// preallocate is left to writing zeros.
func preallocate(*os.File, int64) error { return errors.ErrUnsupported }
