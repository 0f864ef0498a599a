// Package faults is what goes wrong, and the journal that undoes it. What a fault needs of its target is a small interface;
// a topology supports a fault by satisfying it.
package faults

import (
	"context"
	"time"
)

// Fault is one thing that can be done. One file each, and one line in the table of kinds.
type Fault struct {
	Name    string // "pause"
	Summary string
	// Needs says in words what a target must be able to do, for refusals ("cannot be paused").
	Needs string
	// Supports reports whether the target can take it. Target values come from a Directory.
	Supports func(target Target) bool
	// Options gives a pointer to a fresh struct of the fault's options with defaults, or is nil.
	Options func() any
	// Inject does it and returns when it has been seen to be in force. undo ends it and returns when that has been seen; it
	// may be called once. A fault that is over at once (a kill that nothing restarts) has a nil undo.
	Inject func(ctx context.Context, target Target, order Order) (undo func(context.Context) error, err error)
}

// Order is what exactly is to be done.
type Order struct {
	For     time.Duration
	Options any
}

// Target is something that faults can be done to: a worker's process or a store's node. It satisfies the interfaces below
// that fit it.
type Target interface {
	// Name is how events and reports call it: "w1", "valkey/0".
	Name() string
}

// Pausable can be stopped whole and set going again (SIGSTOP, SIGCONT).
type Pausable interface {
	Pause(context.Context) error  // returns when it has stopped
	Resume(context.Context) error // returns when it runs
}

// Killable can be ended without warning (SIGKILL) and started again.
type Killable interface {
	Kill(context.Context) error // returns when it has ended
	// Start starts it again: a store node with what it kept, a worker as a new incarnation. It returns when it is ready.
	Start(context.Context) error
}

// Forgetful is a store node that can be started again without what it had stored.
type Forgetful interface {
	StartEmpty(context.Context) error
}

// Directory resolves the names that scenarios and the chaos command use to targets.
type Directory interface {
	// Resolve gives the targets that a name stands for: "worker" is all of them, "worker/w1" one, "valkey/primary" the one
	// that is primary now. None is an error that lists what there is.
	Resolve(ctx context.Context, name string) ([]Target, error)
}
