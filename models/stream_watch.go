package models

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"fencepost.dev/history"
)

// Watch is the check "linearizable" while a run goes: it is given operations as they are answered and says when a violation is
// certain. The whole record may show more, and is what decides. It is used by one goroutine at a time.
//
// What an unknown operation can still do is not known before its bound is, and the bound moves with every fault and every
// node that answers again. So the operations are decided twice. One sweep takes unknown operations to have no bound: it
// accuses as soon as the known ones can't be explained by anything that the unknown ones may do, ever. The other waits at each
// unknown operation until its bound has passed and can't move any more (see settled), and accuses of what needs the bound,
// such as a lock that a killed client's acquire left for ever.
type Watch struct {
	in    *Input
	names *history.Names

	eager, patient *follower
	unsettled      []history.Operation // unknown ones, as recorded
	events         map[int]history.Event
	bounds         *bounds                // of the events so far; nil: to be made
	answered       map[uint16]*answeredBy // by node

	widest int64
	gaveUp error
}

// watchMargin is by how much the bound on a clock's error may grow while a run goes, beyond twice what it was.
const watchMargin = int64(1e6)

// NewWatch begins to watch a run: h has its names and no operations yet. Violations below the severity are not told of, if it
// is Safety.
func NewWatch(ctx context.Context, h *history.History, o PrepareOptions, least Severity) (*Watch, error) {
	names := h.Names
	in, err := Prepare(&history.History{Names: names}, o)
	if err != nil {
		return nil, err
	}
	in.Names, in.End = &names, never
	w := &Watch{in: in, names: &names, events: map[int]history.Event{}, answered: map[uint16]*answeredBy{}}
	switch in.Primitive {
	case "lock", "lease":
		if in.Contract.Renews == RenewsItself {
			return nil, fmt.Errorf("a %s that renews itself can't be decided while it runs: when its holds end is known afterwards only", in.Primitive)
		}
		x := newLockExpiry(in)
		derive := func() derivation { return newLockDerivation(x) }
		w.eager = follow(ctx, lockObject(in), in.Limit.memory()/2, least, derive)
		w.patient = follow(ctx, lockObject(in), in.Limit.memory()/2, least, derive)
		return w, nil
	}
	return nil, fmt.Errorf("there is no specification of a %s by which it could be decided while it runs", in.Primitive)
}

// Know gives the names that operations refer to from now on; numbers given before stay as they are.
func (w *Watch) Know(names history.Names) {
	*w.names = names
	w.bounds = nil
}

// Happened gives an event, or its end.
func (w *Watch) Happened(e history.Event) {
	w.events[e.ID] = e
	w.bounds = nil
}

// GaveUp says why the watch will not say anything any more, if it won't.
func (w *Watch) GaveUp() error { return w.gaveUp }

// Add takes an operation as it was recorded, once its answer is known or its client has given up, in any order. Its process
// must be among the names. One of a process that died has Commit Invoked if its answer was never known: it must be added after
// the event that tells of the death.
func (w *Watch) Add(op history.Operation) {
	if w.gaveUp != nil {
		return
	}
	if op.Outcome == history.OK || op.Outcome == history.Refused {
		if w.answered[op.Node] == nil {
			w.answered[op.Node] = &answeredBy{call: -never, next: op}
		} else if p := w.answered[op.Node]; p.next.Call <= p.call {
			p.next = op
		}
	}
	eager := op
	if op.Outcome == history.Unknown {
		w.unsettled = append(w.unsettled, op)
		optional(&eager, never)
		w.follow(w.eager, eager)
		return
	}
	w.follow(w.eager, op)
	w.follow(w.patient, op)
}

// follow gives a follower an operation with the interval that its clock's error leaves.
func (w *Watch) follow(f *follower, op history.Operation) {
	e := w.names.Workers[op.Worker].ClockError
	w.widest = max(w.widest, e)
	widen(&op, e)
	if op.Call < f.reached {
		w.gaveUp = fmt.Errorf("an operation of %s came after others that were called later: the bound on its clock's error grew", w.names.ClientName(&op))
	}
	f.waiting.push(op.Call, op)
}

// Advance promises that every operation that was called before t, in recorded time, has been added, and every event that
// began before events: t is the least, over all clients, of the Call of the operation that is open, or of the time of the
// report. It reports a violation that is certain: the index of its key, and the instant of the answer that made it so.
func (w *Watch) Advance(t, events int64) (key uint32, at int64, broken bool) {
	defer func() {
		if p := recover(); p != nil {
			w.gaveUp, broken = fmt.Errorf("%s", crashed(p)), false
		}
	}()
	for _, p := range w.names.Workers {
		w.widest = max(w.widest, p.ClockError)
	}
	held := t
	if w.bounds == nil {
		w.in.Events = slices.Collect(maps.Values(w.events))
		w.bounds = newBounds(w.in)
	}
	for _, p := range w.answered {
		if p.next.Return < events {
			p.call = max(p.call, p.next.Call)
		}
	}
	w.unsettled = slices.DeleteFunc(w.unsettled, func(op history.Operation) bool {
		bound, ok := w.settled(&op, events)
		if !ok {
			held = min(held, op.Call)
			return false
		}
		optional(&op, bound)
		w.follow(w.patient, op)
		return true
	})
	if w.gaveUp != nil {
		return 0, 0, false
	}
	margin := plus(w.widest, w.widest+watchMargin)
	if key, at, broken = w.eager.advance(plus(t, -margin)); broken {
		return key, at, true
	}
	return w.patient.advance(plus(held, -margin))
}

// answeredBy is what a node is known to have answered.
type answeredBy struct {
	call int64             // the latest call of what it answered so long ago that all events from before are known
	next history.Operation // what is to become that; call is as late: none
}

// settled gives the bound of an unknown operation when it can't move any more: all events that could move it are known, and
// the node that was asked has answered something that was asked after the bound, so no silence that is not over, and so not
// known, began before it.
func (w *Watch) settled(op *history.Operation, events int64) (int64, bool) {
	bound := w.bounds.of(op)
	if w.bounds.stated != 0 {
		return bound, true
	}
	if bound == never || bound >= events {
		return bound, events == never
	}
	for node, p := range w.answered {
		if p.call > bound && (op.Node == history.NoNode || op.Node == node) {
			return bound, true
		}
	}
	return bound, events == never
}

// follower decides the objects of a run while it is fed, not always in order.
type follower struct {
	waiting queue[history.Operation] // operations whose turn has not come
	reached int64
	add     func(*history.Operation)
	decide  func(t int64) (key uint32, at int64, broken bool)
}

func follow[S comparable](ctx context.Context, o object[S], memory int64, least Severity, derive func() derivation) *follower {
	f := &follower{reached: -never}
	onlySafety := least == Safety && o.spec.Relax != nil
	objects := map[uint32]*watched[S]{}
	f.add = func(op *history.Operation) {
		key := partitionOf(o.spec, op)
		if objects[key] == nil {
			objects[key] = newWatched(ctx, o, derive(), budget{memory}, !onlySafety, onlySafety)
		}
		objects[key].add(op)
	}
	f.decide = func(t int64) (key uint32, at int64, broken bool) {
		for _, object := range objects {
			object.advance(t)
			if d, is := object.broken(); is && (!broken || d.failedAt < at) {
				key, at, broken = object.key, d.failedAt, true
			}
		}
		return key, at, broken
	}
	return f
}

// advance decides what was called before t.
func (f *follower) advance(t int64) (key uint32, at int64, broken bool) {
	if t < f.reached {
		return 0, 0, false
	}
	f.reached = t
	for f.waiting.before(t) {
		_, op := f.waiting.pop()
		f.add(&op)
	}
	return f.decide(t)
}
