package history

import (
	"errors"
	"fmt"
)

// What can be wrong with recorded files. Errors that wrap one of these name the file and say what to do about it.
var (
	// ErrTruncated: the end of a file is missing.
	ErrTruncated = errors.New("truncated")
	// ErrCorrupt: a file holds what no recorder wrote.
	ErrCorrupt = errors.New("corrupt")
	// ErrMissing: a file that must be there is not: a part of a numbered sequence, the names that a segment refers to.
	ErrMissing = errors.New("missing")
	// ErrInUse: a process is still recording into these files.
	ErrInUse = errors.New("in use")
	// ErrClosed: the recorder or log has been closed.
	ErrClosed = errors.New("closed")
	// ErrOutOfOrder: a batch was received before the one that precedes it.
	ErrOutOfOrder = errors.New("out of order")
)

// ofAnotherRun tells of a file that was mixed in.
func ofAnotherRun(what, run, others string) error {
	return fmt.Errorf("history: %s is %w: it is of the run %q, and what is beside it of the run %q; copy the results directory whole",
		what, ErrCorrupt, run, others)
}

// damaged tells what is wrong with a file, and what to do.
func damaged(path string, kind error, format string, args ...any) error {
	return fmt.Errorf("history: %s is %w: %s; restore the file from a copy, or run again: nothing is decided from a part of a history",
		path, kind, fmt.Sprintf(format, args...))
}
