// Package faults is what goes wrong, and the journal that undoes it. What a fault needs of its target is a small interface;
// a topology supports a fault by satisfying it.
//
//	scenario's line          Directory              Fault
//	do: pause      ──────►   "worker" → w1, w2  ──► Supports(w1): is it Pausable?
//	on: worker                                      journal ─ Inject ─ event ┐
//	when: holding  ──────►   Traps: w1/c3 waits ◄── release when in force    │ for: 700ms
//	for: 700ms                                      event ─ undo ────────────┘
//
// A new fault is a file with one Fault in it (pause.go is the smallest), a line in the table of kinds.go and, if its targets
// must be able to do something new, an interface below.
package faults

import (
	"context"
	"time"
)

// Fault is one thing that can be done. One file each, and one line in the table of kinds.
type Fault struct {
	Name    string // "pause"
	Summary string
	// Needs says in words what a target must be able to do, for refusals: "be paused" makes "valkey/0 cannot be paused".
	Needs string
	// Supports reports whether the target can take it. Target values come from a Directory.
	Supports func(target Target) bool
	// Options gives a pointer to a fresh struct of the fault's options with defaults, or is nil. Its fields have yaml tags. If
	// it satisfies Fitting, a target must fit it too.
	Options func() any
	// Momentary: without a "for" it is undone as soon as it is in force. Other faults then last until load ends.
	Momentary bool
	// Inject does it and returns when it has been seen to be in force. undo ends it and returns when that has been seen; it
	// may be called once. A fault that is over at once (a kill that nothing restarts) has a nil undo. If Inject fails it has
	// taken back what it began.
	Inject func(ctx context.Context, target Target, order Order) (undo func(context.Context) error, err error)
	// Heal undoes it from what the journal kept, in another process than the one that injected it. It does nothing if there
	// is nothing left to undo. Nil: what the fault did ends with the processes it was done to.
	Heal func(Record) error
}

// Fitting are options that not every target of the fault can take.
type Fitting interface {
	// Fit is an error in one sentence if the target can't take them.
	Fit(Target) error
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

// Keeper is a store node that may keep what it stored when it is killed and started again.
type Keeper interface {
	Keeps() bool
}

// Mortal is a target that may have died, whoever killed it. Targets that don't say are taken to live.
type Mortal interface {
	Alive() bool
}

// Placed is a target that has a place in the history.
type Placed interface {
	// Place gives the index into Names.Workers of the worker's present incarnation, or the number of the store node; -1 for
	// what it is not.
	Place() (process, node int)
}

// Local is a target whose process runs on this machine, so that it can be found again by its number.
type Local interface {
	PID() int // 0: none runs
}

// Choosy is a target that refuses faults for a reason of its own: a store that isn't ours to break.
type Choosy interface {
	// Refuse is an error in one sentence if the fault must not, or can't, be done to it; nil leaves it to Fault.Supports.
	Refuse(fault Fault) error
}

// Directory resolves the names that scenarios and the chaos command use to targets.
type Directory interface {
	// Resolve gives the targets that a name stands for: "worker" is all of them, "worker/w1" one, "valkey/primary" the one
	// that is primary now. None is an error that lists what there is.
	Resolve(ctx context.Context, name string) ([]Target, error)
}
