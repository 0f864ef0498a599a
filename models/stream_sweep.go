package models

import (
	"context"
	"hash/maphash"
	"reflect"
	"slices"

	"fencepost.dev/history"
)

// sweep goes through the calls and returns of one object's operations in the order of time and keeps the set of
// configurations that can be true. Intervals are closed: of what happens at one instant, calls come before returns.
//
// An operation is linearized "just in time": when some operation must return, and then only so far as that one needs it.
//
// Proof that this loses nothing. Let L be a linearization, and consider the returns in the order of time. At the return of x,
// if x has no effect yet, let everything in L up to x take effect. Each y of it was called by then: were y called after x
// returned, it could not come before x in L. So every prefix of L that ends with the latest of what has returned is reached,
// and search finds it, since it tries every order of pending operations that ends with x.
type sweep[S comparable, M bits] struct {
	ctx  context.Context
	spec Spec[S]

	slots  []slot
	free   []int32 // slots
	groups []group[M]
	spare  []int32 // groups
	// readers and writers are the groups that have members; readers hold the read-only operations, of an untimed spec.
	readers, writers []int32
	due              queue[deadline]

	rules     rules[S, M]
	now, next *set[S, M]
	seen      set[S, M]
	paths     []path[S, M]
	memory    int64 // bytes that the sets may take
	steps     int64
	clock     int64 // the instant of the last call or return
	state     decision
	stopped   bool
}

// slot is a pending operation.
type slot struct {
	op    history.Operation
	group int32
}

// group is the pending operations of one class, of which at any time only the first unspent one needs to be tried. Optional
// and mandatory operations are never in one group. An operation unlike any other has a group to itself.
type group[M bits] struct {
	class          uint64
	optional, read bool
	// members are slots: by Return in an untimed spec, by Call in a timed one.
	members []int32
	// slots is the set of members.
	slots M
	// open are the true intervals of a timed optional group, since its slots don't keep them.
	open []pendingInterval
}

type pendingInterval struct{ call, ret int64 }

// deadline is when an operation returns: that in a slot, or, in a timed spec, some member of a group.
type deadline struct {
	slot int32 // untimed
	// group and call are for timed specs.
	group int32
	call  int64
}

func newSweep[S comparable, M bits](ctx context.Context, spec Spec[S], b budget) *sweep[S, M] {
	seed := maphash.MakeSeed()
	w := &sweep[S, M]{
		ctx: ctx, spec: spec, memory: b.memory,
		rules: rules[S, M]{dominates: spec.Dominates},
		now:   &set[S, M]{seed: seed}, next: &set[S, M]{seed: seed}, seen: set[S, M]{seed: seed},
	}
	w.limit()
	w.now.items = append(w.now.items, configuration[S, M]{state: spec.Init()})
	return w
}

// limit shares the memory among three sets, each with a table of at most eight entries an item. A set may double, and then its
// old half is there too.
func (w *sweep[S, M]) limit() {
	const tableShare = 8 * 4
	size := int64(reflect.TypeFor[configuration[S, M]]().Size()) + tableShare
	most := max(int(w.memory/(3*2*size)), 4)
	w.now.most, w.next.most, w.seen.most = most, most, most
}

func (w *sweep[S, M]) outcome() decision { return w.state }

func (w *sweep[S, M]) stop(d decision) bool {
	w.state, w.stopped = d, true
	return false
}

// call makes op pending.
func (w *sweep[S, M]) call(op *history.Operation) bool {
	read := w.spec.ReadOnly != nil && w.spec.ReadOnly(op)
	optional := op.Flags&history.Optional != 0
	if read && optional {
		// It changes nothing and may be left out: whatever linearizes with it does without it.
		return true
	}
	i, ok := w.take()
	if !ok {
		return false
	}
	w.clock = op.Call
	s := &w.slots[i]
	s.op = *op
	s.group = w.groupFor(op, read, optional)
	g := &w.groups[s.group]
	include(&g.slots, i)
	if optional {
		include(&w.rules.optional, i)
	}
	if w.spec.Timed {
		w.joinTimed(g, i)
	} else {
		w.joinUntimed(g, i)
	}
	if op.Return != never {
		w.due.push(op.Return, deadline{slot: i, group: s.group, call: op.Call})
	}
	if read {
		w.readNow(g, i)
	}
	return true
}

// noSlot is none.
const noSlot = -1

// take finds a free slot.
func (w *sweep[S, M]) take() (int32, bool) {
	if n := len(w.free); n > 0 {
		i := w.free[n-1]
		w.free = w.free[:n-1]
		return i, true
	}
	var m M
	if len(w.slots) == 64*len(m) {
		return noSlot, false
	}
	w.slots = append(w.slots, slot{})
	return int32(len(w.slots) - 1), true
}

// groupFor finds the group that op belongs to, or makes one.
func (w *sweep[S, M]) groupFor(op *history.Operation, read, optional bool) int32 {
	list := &w.writers
	if read && !w.spec.Timed {
		list = &w.readers
	}
	var class uint64
	if w.spec.Class != nil {
		class = w.spec.Class(op)
	}
	if class != 0 {
		for _, i := range *list {
			if g := &w.groups[i]; g.class == class && g.optional == optional {
				return i
			}
		}
	}
	var i int32
	if n := len(w.spare); n > 0 {
		i = w.spare[n-1]
		w.spare = w.spare[:n-1]
	} else {
		i = int32(len(w.groups))
		w.groups = append(w.groups, group[M]{})
	}
	g := &w.groups[i]
	g.class, g.optional, g.read = class, optional, read
	*list = append(*list, i)
	return i
}

func (w *sweep[S, M]) joinUntimed(g *group[M], i int32) {
	ret := w.slots[i].op.Return
	at := len(g.members)
	for at > 0 && w.slots[g.members[at-1]].op.Return > ret {
		at--
	}
	g.members = slices.Insert(g.members, at, i)
}

// returnsBefore handles the returns before t.
func (w *sweep[S, M]) returnsBefore(t int64) bool {
	for !w.stopped && w.due.before(t) {
		at, d := w.due.pop()
		w.clock = at
		i := d.slot
		if w.spec.Timed {
			i = w.groups[d.group].members[0]
		}
		if !w.returned(i) {
			return false
		}
		if w.spec.Timed {
			w.leaveTimed(at, d)
		}
		w.leave(i)
	}
	return !w.stopped
}

// leave gives a slot back.
func (w *sweep[S, M]) leave(i int32) {
	at := w.slots[i].group
	g := &w.groups[at]
	if n := slices.Index(g.members, i); n >= 0 {
		g.members = slices.Delete(g.members, n, n+1)
	}
	exclude(&g.slots, i)
	exclude(&w.rules.optional, i)
	w.free = append(w.free, i)
	if len(g.members) > 0 {
		return
	}
	list := &w.writers
	if g.read && !w.spec.Timed {
		list = &w.readers
	}
	n := slices.Index(*list, at)
	(*list)[n] = (*list)[len(*list)-1]
	*list = (*list)[:len(*list)-1]
	w.spare = append(w.spare, at)
}

func (w *sweep[S, M]) wider() sweeper[S] {
	var m M
	switch len(m) {
	case 1:
		return wider[S, M, [4]uint64](w)
	case 4:
		return wider[S, M, [16]uint64](w)
	case 16:
		return wider[S, M, [64]uint64](w)
	}
	return nil
}

func wider[S comparable, M, N bits](w *sweep[S, M]) *sweep[S, N] {
	n := newSweep[S, N](w.ctx, w.spec, budget{w.memory})
	n.slots, n.free, n.spare, n.readers, n.writers, n.due = w.slots, w.free, w.spare, w.readers, w.writers, w.due
	for i := range w.groups {
		g := &w.groups[i]
		n.groups = append(n.groups, group[N]{g.class, g.optional, g.read, g.members, widened[M, N](&g.slots), g.open})
	}
	n.rules.optional = widened[M, N](&w.rules.optional)
	n.now.items = n.now.items[:0]
	for i := range w.now.items {
		c := &w.now.items[i]
		n.now.items = append(n.now.items, configuration[S, N]{c.state, widened[M, N](&c.spent)})
	}
	n.steps, n.clock = w.steps, w.clock
	return n
}
