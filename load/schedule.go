package load

import "time"

// Schedule says when turns are due.
type Schedule interface {
	// Next gives the next arrival, as the time since load started; it does not decrease. ok is false when there are no more.
	Next() (due time.Duration, ok bool)
}
