package harness

import "errors"

// ErrUnproven: the run began and could not be brought to a decision, or its record can't be read: exit status 3. Other errors
// of Run and Check mean that nothing was run: exit status 2.
var ErrUnproven = errors.New("nothing is proven")

// CannotError says what this machine, topology or provider can't do. Verify skips the scenario, with this as the reason;
// alone it is a configuration error.
type CannotError struct{ Err error }

func (e *CannotError) Error() string { return e.Err.Error() }
func (e *CannotError) Unwrap() error { return e.Err }

// unproven marks an error as one that came after the barrier.
type unproven struct{ error }

func (e unproven) Unwrap() []error { return []error{e.error, ErrUnproven} }
