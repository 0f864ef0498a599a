package models

import (
	"context"
	"fmt"

	"fencepost.dev/history"
)

// decideStream decides by just-in-time linearization: Lowe, "Testing for linearizability" (Concurrency and Computation:
// Practice and Experience 29(4), 2017), section 4, which goes back to Wing & Gong, "Testing and verifying concurrent objects"
// (1993).
func decideStream[S comparable](ctx context.Context, spec Spec[S], ops []history.Operation, b budget) decision {
	s := newStream(ctx, spec, b)
	for i := range ops {
		if !s.feed(&ops[i]) {
			break
		}
	}
	return s.finish()
}

// stream decides whether the operations of one object linearize while they are fed to it, in order of Call. What it keeps is
// the operations that are pending at one instant, and the configurations that can be true then: its memory follows the
// concurrency of a history, not its length. It is used by one goroutine at a time.
//
// It works in the narrowest set representation that holds what is pending, and changes to a wider one when it must.
type stream[S comparable] struct {
	sweep    sweeper[S]
	fedUntil int64
	decision decision
	decided  bool
}

// sweeper is a sweep, whatever the width of its sets.
type sweeper[S comparable] interface {
	// call makes an operation pending; false: there is no slot left.
	call(*history.Operation) bool
	// returnsBefore lets everything take effect that must have before t. False: it can't go on; outcome says why.
	returnsBefore(t int64) bool
	// outcome is the decision so far: a pass may still become something else.
	outcome() decision
	// wider continues the sweep with more slots; nil: there is no wider representation.
	wider() sweeper[S]
}

func newStream[S comparable](ctx context.Context, spec Spec[S], b budget) *stream[S] {
	return &stream[S]{sweep: newSweep[S, [1]uint64](ctx, spec, b), fedUntil: -never}
}

// feed adds one operation. Whoever feeds it knows its answer: an operation that is still open holds back all that were called
// after it. False: the decision is made and nothing more is needed.
func (s *stream[S]) feed(op *history.Operation) bool {
	if op.Call < s.fedUntil {
		panic(fmt.Sprintf("models: an operation called at %d was fed after one called at %d", op.Call, s.fedUntil))
	}
	s.fedUntil = op.Call
	if !s.advance(op.Call) {
		return false
	}
	for {
		if s.sweep.call(op) {
			return true
		}
		wide := s.sweep.wider()
		if wide == nil {
			s.decide(undecided("more than %d operations are pending at once, most of them unknown: give the subject a bound on abandoned requests", maxPending))
			return false
		}
		s.sweep = wide
	}
}

// advance promises that nothing will be fed that was called before t. False: the decision is made.
func (s *stream[S]) advance(t int64) bool {
	if s.decided {
		return false
	}
	if !s.sweep.returnsBefore(t) {
		s.decide(s.sweep.outcome())
	}
	return !s.decided
}

// finish is the decision once everything has been fed.
func (s *stream[S]) finish() decision {
	if s.advance(never) {
		s.decide(s.sweep.outcome())
	}
	return s.decision
}

func (s *stream[S]) decide(d decision) {
	s.decision, s.decided = d, true
	s.sweep = nil
}
