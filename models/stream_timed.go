package models

import "slices"

// In a timed spec an operation's interval matters to its effect, so the exchange of search fails where one interval lies
// within another. A group of mandatory operations becomes a counter instead, a sound relaxation:
//
//	The k-th of a class to take effect does so not before the class's k-th smallest call, for k of them have, each not before
//	its own call. Nor after its k-th smallest return: all but k-1 of the class take effect then or later, so that many
//	returns are not before it, and the k-th smallest is among them.
//
// So every true linearization satisfies that the k-th has the interval from the k-th smallest call to the k-th smallest return,
// and nothing is accused falsely. Calls come in order: the k-th member of a group has the k-th call; it is given the k-th
// return among those known so far, which is never less than that among all. A return of the group is that of its first
// member: by then as many must have had their effect as have returned.
//
// In a group of optional ones, passing a return spends a skip: the first member goes, spent or not. Let n be pending in a true
// linearization, and q of them placed; let e be spent here. Then e ≤ q: both grow with each placement, and when one returns
// that was placed, q falls and e falls unless it is 0; if it was not placed, e only falls. So as many are left as truly are. But
// the ones passed over may have been called after those that are left, so nothing is known of which calls are left but that
// they are pending: each member has the interval from the smallest call to the largest return that truly is.

// joinTimed adds a slot to its group and gives the members their intervals.
func (w *sweep[S, M]) joinTimed(g *group[M], i int32) {
	g.members = append(g.members, i)
	op := &w.slots[i].op
	if g.optional {
		g.open = append(g.open, pendingInterval{op.Call, op.Return})
		w.spread(g)
		return
	}
	// Move greater returns one member on.
	for at := len(g.members) - 1; at > 0; at-- {
		before, here := &w.slots[g.members[at-1]].op, &w.slots[g.members[at]].op
		if before.Return <= here.Return {
			break
		}
		before.Return, here.Return = here.Return, before.Return
	}
}

// leaveTimed takes the true interval of what has returned out of its group. Of a mandatory group, the first member has both
// the smallest call and the smallest return.
func (w *sweep[S, M]) leaveTimed(ret int64, d deadline) {
	g := &w.groups[d.group]
	if !g.optional {
		return
	}
	at := slices.Index(g.open, pendingInterval{d.call, ret})
	g.open = slices.Delete(g.open, at, at+1)
	w.spread(g)
}

// spread gives each member of an optional group the interval in which any of them can take effect.
func (w *sweep[S, M]) spread(g *group[M]) {
	if len(g.open) == 0 {
		return
	}
	all := g.open[0]
	for _, i := range g.open[1:] {
		all.call, all.ret = min(all.call, i.call), max(all.ret, i.ret)
	}
	for _, i := range g.members {
		w.slots[i].op.Call, w.slots[i].op.Return = all.call, all.ret
	}
}

// observe lets read-only operations of a group take effect at once if that changes nothing at all: not even what is known of
// the time. Then it is as for an untimed spec: a linearization that places one later does so in a state that it can only narrow,
// and without it what follows is as legal as before. Others of the group are later calls: where one tells something, so do they.
func (w *sweep[S, M]) observe(g *group[M], c *configuration[S, M]) {
	for _, y := range g.members[spentOf(g, &c.spent):] {
		if s, ok := w.stepBy(w.clock, c.state, y); !ok || s != c.state {
			return
		}
		include(&c.spent, y)
	}
}

// spentOf is how many of a timed group's members are spent: always the first ones.
func spentOf[M bits](g *group[M], spent *M) int {
	low, high := 0, len(g.members)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if has(spent, g.members[middle]) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
