package faults

import (
	"context"

	"fencepost.dev/history"
)

// Traps lets a schedule wait until a client reaches a point of its workload. The harness implements it over the plane.
type Traps interface {
	// Arm waits until a client of one of the workers (all, if none is named) announces that it has reached the point, and
	// returns the first. That client stays blocked until Release, at most a second. Arm disarms before it returns, also when
	// ctx ends.
	Arm(ctx context.Context, point string, workers []string) (Sprung, error)
}

// Sprung is a client caught at its point.
type Sprung struct {
	Worker  string // "w1"
	Process int    // index into Names.Workers
	Client  string // "w1/c3"
	Grant   history.GrantID
	At      int64 // when it announced itself
	// Release lets the client go on. It is called once, when the fault is in force or has failed. It reports whether the
	// client was still waiting; a false is a missed trap.
	Release func() bool
}

// Journal is where a fault is written before it is injected, with what undoes it.
type Journal interface {
	// Begin writes an entry that the guard and chaos heal can undo by its kind and data, and returns what marks it undone.
	Begin(kind string, data any) (done func() error, err error)
}
