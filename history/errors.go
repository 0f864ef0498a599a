package history

import "errors"

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
)
