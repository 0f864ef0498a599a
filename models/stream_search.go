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
	for i := range w.now.items {
		c := w.now.items[i]
		spent := has(&c.spent, x)
		if !spent {
			w.seen.items = append(w.seen.items, c)
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
		return w.stop(decision{verdict: Violation, failedAt: w.at})
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
			to, replace := &w.seen, false
			if has(&c.spent, x) {
				exclude(&c.spent, x)
				to, replace = w.next, true
			}
			to.add(&w.rules, &c, replace)
			if len(to.items) > to.most {
				return w.stop(undecided("the stream engine would need more than %d configurations at once: raise the limit on memory", to.most))
			}
		}
	}
	return true
}

func (w *sweep[S, M]) firstUnspent(g *group[M], spent *M) int32 {
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
		if _, ok := w.spec.Step(c.state, &w.slots[x].op); ok {
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
