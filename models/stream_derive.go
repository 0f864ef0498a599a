package models

import (
	"slices"

	"fencepost.dev/history"
)

// derivation turns the recorded operations of one object, which it is given by Call, into all that an engine must see, by Call.
// It gives an operation when everything that may come before it has been given.
type derivation interface {
	// add takes a recorded operation; advance promises that none that was called before t will be added any more.
	add(op *history.Operation, to func(*history.Operation))
	advance(t int64, to func(*history.Operation))
}

// whole is the derivation of a spec that must see all of a partition at once. It keeps them all: memory follows the length.
type whole[S comparable] struct {
	object object[S]
	ops    []history.Operation
}

func (w *whole[S]) add(op *history.Operation, _ func(*history.Operation)) { w.ops = append(w.ops, *op) }

func (w *whole[S]) advance(t int64, to func(*history.Operation)) {
	if t != never {
		return
	}
	derived := w.object.spec.Derive(w.ops)
	w.ops = slices.DeleteFunc(w.ops, func(op history.Operation) bool { return !w.object.takesPart(&op) })
	w.ops = append(w.ops, derived...)
	slices.SortStableFunc(w.ops, byCall)
	for i := range w.ops {
		to(&w.ops[i])
	}
	w.ops = nil
}

// lockDerivation derives the expiries of one lock as its operations come. What lockExpiry.derive reads for an expiry is called
// before that expiry's Call: its start, and what may have settled it. So it is known when that instant is passed, and only the
// grants in flight are kept. That does not hold for a subject that renews itself, where the end runs from a release or a death
// at any later time: see whole.
type lockDerivation struct {
	expiry  lockExpiry
	grants  map[history.GrantID]*lockInFlight
	spare   []*lockInFlight
	waiting queue[lockDue]
	derived []history.Operation
}

// lockInFlight is what is known of a grant whose expiries are not all derived.
type lockInFlight struct {
	starts, settlers []history.Operation
	story            grantStory
	due              int // starts still waiting
}

// lockDue is what happens at an instant to come: a start's expiry begins, or one that is known already does.
type lockDue struct {
	grant history.GrantID
	start int
	known *history.Operation
}

func newLockDerivation(x lockExpiry) *lockDerivation {
	return &lockDerivation{expiry: x, grants: map[history.GrantID]*lockInFlight{}}
}

func (d *lockDerivation) add(op *history.Operation, to func(*history.Operation)) {
	d.advance(op.Call, to)
	g := d.grants[op.Grant()]
	if startsTTL(op) {
		if g == nil {
			g = d.flying(op.Grant())
		}
		d.waiting.push(d.expiry.earliest(op), lockDue{grant: op.Grant(), start: len(g.starts)})
		g.starts = append(g.starts, *op)
		g.due++
	}
	if g != nil && maySettle(op) {
		g.settlers = append(g.settlers, *op)
	}
	if isLockOperation(op) {
		to(op)
	}
}

func (d *lockDerivation) flying(grant history.GrantID) *lockInFlight {
	g := &lockInFlight{}
	if n := len(d.spare); n > 0 {
		g = d.spare[n-1]
		d.spare = d.spare[:n-1]
	}
	d.grants[grant] = g
	return g
}

func (d *lockDerivation) advance(t int64, to func(*history.Operation)) {
	for d.waiting.before(t) {
		_, w := d.waiting.pop()
		if w.known != nil {
			to(w.known)
			continue
		}
		g := d.grants[w.grant]
		g.story = grantStory{settlers: g.story.settlers[:0], stop: never}
		for i := range g.settlers {
			g.story.settlers = append(g.story.settlers, &g.settlers[i])
		}
		d.derived = d.expiry.expiriesOf(d.derived[:0], &g.story, &g.starts[w.start])
		for i := range d.derived {
			if op := d.derived[i]; i == 0 {
				to(&d.derived[i])
			} else { // told as two: the second comes at the end of the first
				d.waiting.push(op.Call, lockDue{known: &op})
			}
		}
		if g.due--; g.due == 0 {
			delete(d.grants, w.grant)
			g.starts, g.settlers = g.starts[:0], g.settlers[:0]
			d.spare = append(d.spare, g)
		}
	}
}
