package models

import (
	"cmp"
	"context"
	"slices"
	"time"

	"fencepost.dev/history"
)

// Explaining all violations of a check may take so long, and each so many questions to the engine. What is found by then is
// told.
const (
	explainTime  = 5 * time.Second
	explainSteps = 400
)

// teller is what a primitive knows about its witnesses.
type teller struct {
	// unit names what an operation can only be removed together with, such as all that one grant did; 0: it stands alone.
	unit func(*history.Operation) int64
	// mayDrop says that a linearization of all operations would still be one of kept, without dropped: then the smaller story
	// fails for a reason that the whole one has too. (Dropping a release, say, would invent a violation.)
	mayDrop func(severity Severity, dropped, kept []history.Operation) bool
	// tell says what happened: witness fails to linearize; prefix is all that came before, and in it.
	tell func(*history.Names, story) Finding
}

// story is a violation, made small.
type story struct {
	severity Severity
	at       int64               // when it became certain
	prefix   []history.Operation // the shortest prefix that fails, in order of responses
	// witness is what is left of the prefix and still fails. needed[i] tells whether it would still fail if witness[i] might
	// not have happened.
	witness []history.Operation
	needed  []bool
}

// explain finds the smallest story that it can before ctx ends.
func explain(ctx context.Context, names *history.Names, t teller, r ruling, judge judge) Finding {
	q := &questions{ctx: ctx, judge: judge, left: explainSteps}
	s := story{severity: r.severity}
	s.prefix, s.at = shortestPrefix(r.failing, r.failedAt, q)
	s.witness = t.shrink(s.severity, s.prefix, q)
	s.needed = needed(s.witness, q)
	f := t.tell(names, s)
	f.Severity, f.At, f.Key = r.severity, s.at, names.Key(r.key)
	return f
}

// questions are what may still be asked of the engine.
type questions struct {
	ctx   context.Context
	judge judge
	left  int
}

// fails reports whether the operations certainly don't linearize.
func (q *questions) fails(ops []history.Operation) bool {
	if q.spent() {
		return false
	}
	q.left--
	return q.judge(q.ctx, ops).verdict == Violation
}

func (q *questions) spent() bool { return q.left <= 0 || q.ctx.Err() != nil }

// shortestPrefix cuts the history at the first response by which it fails. Failing is monotone in the cut: a linearization of
// a longer prefix, cut where the last response of a shorter one has been placed, is a linearization of the shorter.
//
// hint is where the engine thinks that it is, or 0. Without one, ever longer prefixes are tried until one fails: short ones are
// cheap to decide.
func shortestPrefix(ops []history.Operation, hint int64, q *questions) ([]history.Operation, int64) {
	var cuts []int64
	for i := range ops {
		if ops[i].Flags&history.Optional == 0 && ops[i].Return != never {
			cuts = append(cuts, ops[i].Return)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	if len(cuts) == 0 {
		return ops, 0
	}
	low, high := 0, len(cuts)-1 // the answer is in [low, high]; high fails
	best := ops
	try := func(i int) bool {
		prefix := until(ops, cuts[i])
		if !q.fails(prefix) {
			low = max(low, i+1)
			return false
		}
		best, high = prefix, i
		return true
	}
	if i, _ := slices.BinarySearch(cuts, hint); hint != 0 && i < high && try(i) {
		if i > 0 {
			try(i - 1)
		}
	} else {
		for i := 64; low < high && i < high && !try(i); i *= 2 {
		}
	}
	for low < high && !q.spent() {
		try((low + high) / 2)
	}
	return best, cuts[high]
}

// until is the history as it was known at an instant. What had no answer by then may or may not have happened; a refusal
// without its answer says nothing.
func until(ops []history.Operation, cut int64) []history.Operation {
	var prefix []history.Operation
	for _, op := range ops {
		if op.Call > cut {
			continue
		}
		if op.Return > cut {
			if op.Outcome == history.Refused {
				continue
			}
			op.Flags |= history.Optional
		}
		prefix = append(prefix, op)
	}
	return prefix
}

// shrink removes units as long as what is left still fails, first all but the last few, then by halves (Zeller &
// Hildebrandt, "Simplifying and isolating failure-inducing input", 2002). What may go from many operations may go from some of
// them too, so only what goes anew is looked at.
func (t teller) shrink(severity Severity, ops []history.Operation, q *questions) []history.Operation {
	units := t.units(ops)
	// without tries to do without units[from:to].
	without := func(from, to int) bool {
		if q.spent() {
			return false
		}
		left := slices.Concat(units[:from], units[to:])
		kept := slices.Concat(left...)
		if len(kept) == 0 || !t.mayDrop(severity, slices.Concat(units[from:to]...), kept) {
			return false
		}
		slices.SortStableFunc(kept, byCall)
		if !q.fails(kept) {
			return false
		}
		units = left
		return true
	}
	for keep := 1; keep < len(units); keep *= 2 {
		if without(0, len(units)-keep) {
			break
		}
	}
	for chunk := len(units) / 2; chunk >= 1; chunk /= 2 {
		for from := 0; from < len(units) && !q.spent(); {
			if !without(from, min(from+chunk, len(units))) {
				from += chunk
			}
		}
	}
	kept := slices.Concat(units...)
	slices.SortStableFunc(kept, byCall)
	return kept
}

// units groups operations, in the order in which the groups were last heard of.
func (t teller) units(ops []history.Operation) [][]history.Operation {
	index := map[int64]int{}
	var units [][]history.Operation
	for _, op := range ops {
		name := t.unit(&op)
		i, known := index[name]
		if !known || name == 0 {
			i = len(units)
			index[name] = i
			units = append(units, nil)
		}
		units[i] = append(units[i], op)
	}
	slices.SortStableFunc(units, func(a, b []history.Operation) int { return cmp.Compare(lastHeard(a), lastHeard(b)) })
	return units
}

// lastHeard is when the last client's operation of a unit was answered, or called if it wasn't.
func lastHeard(unit []history.Operation) int64 {
	last := unit[0].Call
	for i := range unit {
		op := &unit[i]
		switch {
		case op.Flags&history.Synthetic != 0:
		case op.Flags&history.Optional != 0:
			last = max(last, op.Call)
		default:
			last = max(last, op.Return)
		}
	}
	return last
}

// needed finds the operations without which the story would not fail. Each of the others might not have happened and it would
// fail all the same; it is tried with those already found to be so.
func needed(ops []history.Operation, q *questions) []bool {
	weak := slices.Clone(ops)
	need := make([]bool, len(ops))
	for i := range weak {
		if weak[i].Flags&history.Optional != 0 {
			continue
		}
		weak[i].Flags |= history.Optional
		if !q.fails(weak) {
			weak[i].Flags &^= history.Optional
			need[i] = true
		}
	}
	return need
}
