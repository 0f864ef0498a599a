package models

// returned keeps, when the operation in slot x returns, the configurations in which it can have had its effect, and forgets
// the operation in them. If it is optional its bound has passed: those without it are kept too, and from now on it can't have
// it any more.
func (w *sweep[S, M]) returned(x int32) bool {
	optional := has(&w.rules.optional, x)
	if !optional && w.allSpent(x) {
		for i := range w.now.items {
			exclude(&w.now.items[i].spent, x) // all had it, so no two become equal
		}
		return true
	}
	w.next.clear()
	w.seen.clear()
	w.paths = w.paths[:0]
	for i := range w.now.items {
		c := w.now.items[i]
		spent := has(&c.spent, x)
		if !spent {
			w.seen.items = append(w.seen.items, c)
			w.paths = append(w.paths, path[S, M]{parent: -1})
		}
		if spent || optional {
			exclude(&c.spent, x)
			w.next.add(&w.rules, &c, true)
		}
	}
	if !w.search(x) {
		return false
	}
	w.now, w.next = w.next, w.now
	if len(w.now.items) == 0 {
		return w.stop(decision{verdict: Violation, failedAt: w.clock})
	}
	return true
}

func (w *sweep[S, M]) allSpent(x int32) bool {
	for i := range w.now.items {
		if !has(&w.now.items[i].spent, x) {
			return false
		}
	}
	return true
}

// search tries, from the configurations in seen, all orders of pending operations that end with x, and puts what comes out
// into next.
//
// Of each group only the first unspent member is tried. For mandatory operations of an untimed spec this is exact (Lowe calls
// for the same pruning of equal operations by hand):
//
//	Let a and b be pending operations of one class, a returning first, and let a linearization place b here and a later. Both
//	are called by now. Exchange them: a stands here, and b where a stood, which is not after a's return, so not after b's. Both
//	places are within both intervals, and effect and answer are the same, so everything in between is as legal as before.
//
// For optional ones of an untimed spec too: if the linearization leaves a out, put a in b's place and leave out b. The group is
// ordered by bounds, so what is kept for later is what lasts longest. For timed specs see joinTimed.
func (w *sweep[S, M]) search(x int32) bool {
	for i := 0; i < len(w.seen.items); i++ {
		for _, g := range w.writers {
			from := &w.seen.items[i]
			y := w.firstUnspent(&w.groups[g], &from.spent)
			if y == noSlot {
				continue
			}
			if !w.mayStep() {
				return false
			}
			state, ok := w.spec.Step(from.state, &w.slots[y].op)
			if !ok {
				continue
			}
			c := configuration[S, M]{state, from.spent}
			include(&c.spent, y)
			w.read(&c)
			if !has(&c.spent, x) {
				if w.seen.add(&w.rules, &c, false) {
					w.paths = append(w.paths, path[S, M]{parent: int32(i), last: y})
				}
			} else {
				if y == x {
					w.paths[i].direct, w.paths[i].isDirect = c, true
				}
				if w.deferrable(int32(i), &c) {
					continue
				}
				exclude(&c.spent, x)
				w.next.add(&w.rules, &c, true)
			}
			if n := max(len(w.seen.items), len(w.next.items)); n > w.next.most {
				return w.stop(starved("the stream engine would need more than %d configurations at once: raise the limit on memory", n))
			}
		}
	}
	return true
}

func (w *sweep[S, M]) firstUnspent(g *group[M], spent *M) int32 {
	if w.spec.Timed {
		if n := spentOf(g, spent); n < len(g.members) {
			return g.members[n]
		}
		return noSlot
	}
	for _, i := range g.members {
		if !has(spent, i) {
			return i
		}
	}
	return noSlot
}

// read lets every read-only operation that is pending and legal take effect at once.
//
// Proof that nothing is lost: let a linearization place such an operation later. Moved to where it is legal now it changes no
// state, so whatever follows stays legal; and it is within its interval, since it has been called and not returned.
func (w *sweep[S, M]) read(c *configuration[S, M]) {
	if w.spec.Timed {
		for _, i := range w.writers {
			if g := &w.groups[i]; g.read {
				w.observe(g, c)
			}
		}
		return
	}
	for _, i := range w.readers {
		g := &w.groups[i]
		if within(&g.slots, &c.spent) {
			continue
		}
		if _, ok := w.spec.Step(c.state, &w.slots[g.members[0]].op); ok {
			unite(&c.spent, &g.slots)
		}
	}
}

// readNow is read for one operation that has just been called.
func (w *sweep[S, M]) readNow(g *group[M], x int32) {
	for i := range w.now.items {
		c := &w.now.items[i]
		if w.spec.Timed {
			w.observe(g, c)
		} else if _, ok := w.spec.Step(c.state, &w.slots[x].op); ok {
			unite(&c.spent, &g.slots)
		}
	}
}

// mayStep looks at the clock now and then.
func (w *sweep[S, M]) mayStep() bool {
	w.steps++
	if w.steps&1023 == 0 && w.ctx.Err() != nil {
		return w.stop(undecided("%s", outOfTime(w.ctx)))
	}
	return true
}

// path says how search came to an element of seen, and what came of placing x there at once.
type path[S comparable, M bits] struct {
	parent   int32 // index into seen; -1: it started there
	last     int32 // the slot that was placed last
	isDirect bool
	direct   configuration[S, M]
}

// deferrable reports that c is not needed: it came from placing x after another operation y, where x could have been placed
// first, and y after it with a result that covers c.
//
// Proof: whatever can follow c can follow that result, so it can follow the configuration with x alone after y has been placed,
// which a later search tries if a return needs it. That configuration is among the results, or has been found deferrable
// itself; then the same argument applies to it, and comes to an end since each time fewer operations precede x. A later search
// places y in the interval that it has then, which may be tighter than now (see joinTimed), but ends no earlier than now: so it
// is now that y is given as its Return.
//
// Without this, operations that commute, or nearly do (16 additions of different amounts; rejections and takes of a bucket),
// make as many configurations as they have subsets.
func (w *sweep[S, M]) deferrable(i int32, c *configuration[S, M]) bool {
	d := &w.paths[i]
	if d.parent < 0 || !w.paths[d.parent].isDirect {
		return false
	}
	e := w.paths[d.parent].direct
	if !has(&e.spent, d.last) {
		if g := &w.groups[w.slots[d.last].group]; w.spec.Timed && g.optional && len(g.members) > 1 {
			return false // its Call may become later
		}
		state, ok := w.stepBy(w.clock, e.state, d.last)
		if !ok {
			return false
		}
		e.state = state
		include(&e.spent, d.last)
		w.read(&e)
	}
	return w.rules.covers(&e, c)
}

// stepBy places y as if it returned at an instant, not later than it does.
func (w *sweep[S, M]) stepBy(at int64, s S, y int32) (S, bool) {
	op := &w.slots[y].op
	if !w.spec.Timed {
		return w.spec.Step(s, op)
	}
	ret := op.Return
	op.Return = at
	s, ok := w.spec.Step(s, op)
	op.Return = ret
	return s, ok
}
