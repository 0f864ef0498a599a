package models

import (
	"cmp"
	"slices"

	"fencepost.dev/history"
)

// hold is one grant as its client could rely on it.
type hold struct {
	acquire *history.Operation
	// stretches are the times at which its client was certain to hold, by from. There are several if an extension was
	// acknowledged too late.
	stretches []stretch
	// end is the operation that ended it, or nil: then its time ran out, or its client died.
	end *history.Operation
}

// stretch is a time of certainty, [from, to), and the operation that vouches for it.
type stretch struct {
	from, to int64
	by       *history.Operation
}

// certainty says when a client is certain (docs/semantics.md, "Certainty"). Its functions are fields so that a test can
// break each. All of them err on the side of less certainty, so that what overlaps definitely does.
type certainty struct {
	// begins is when the answer that op was granted or extended was with its client.
	begins func(op *history.Operation) int64
	// vouched is until when op, a grant or an acknowledged extension, can be relied on.
	vouched func(op *history.Operation) int64
	// ends says that op ends its client's certainty for good, and when.
	ends func(op *history.Operation) (int64, bool)
	// alive is the last sign of life of op's process.
	alive func(op *history.Operation) int64
}

func newCertainty(in *Input) certainty {
	alive := signsOfLife(in)
	return certainty{
		begins: func(op *history.Operation) int64 { return op.Return },
		vouched: func(op *history.Operation) int64 {
			if op.Kind == history.Acquire && op.D != 0 { // what the subject vouches for, its own margins taken off
				return plus(op.Call, int64(op.Validity())-in.Contract.ClockSkew)
			}
			return plus(op.Call, int64(float64(op.TTL())*(1-in.Drift))-int64(in.Granularity)-in.Contract.ClockSkew)
		},
		ends: func(op *history.Operation) (int64, bool) {
			switch {
			case op.Kind == history.Release, op.Kind == history.Lost:
				return op.Call, true
			case op.Kind == history.Extend && op.Outcome == history.Refused:
				return max(op.Call, op.Return-2*clockError(in, op)), true // Return is later than it was
			}
			return 0, false
		},
		alive: func(op *history.Operation) int64 { return alive(op.Worker) },
	}
}

func clockError(in *Input, op *history.Operation) int64 {
	return in.Names.Workers[op.Worker].ClockError
}

// signsOfLife gives the last instant at which a process that died certainly lived: the last call or answer that it recorded.
// Its death was seen only later. A process that didn't die is alive for ever.
func signsOfLife(in *Input) func(process uint16) int64 {
	last := map[uint16]int64{}
	for _, e := range in.Events {
		if e.Kind == history.EventWorkerDied && e.Process >= 0 {
			last[uint16(e.Process)] = 0
		}
	}
	if len(last) > 0 {
		for i := range in.Operations {
			op := &in.Operations[i]
			at, died := last[op.Worker]
			if !died {
				continue
			}
			at = max(at, op.Call)
			if op.Outcome != history.Unknown {
				at = max(at, op.Return-2*clockError(in, op))
			}
			last[op.Worker] = at
		}
	}
	return func(process uint16) int64 {
		if at, died := last[process]; died {
			return at
		}
		return never
	}
}

// holds gives every grant's certain stretches, in the order of its calls. Grants whose answer their client never saw have
// none and are left out.
func (c *certainty) holds(in *Input) []*hold {
	index := map[history.GrantID]*hold{}
	until := map[history.GrantID]int64{}
	var list []*hold
	for i := range in.Operations {
		op := &in.Operations[i]
		h := index[op.Grant()]
		if op.Kind == history.Acquire && op.Outcome == history.OK {
			h = &hold{acquire: op}
			index[op.Grant()] = h
			until[op.Grant()] = c.alive(op)
			list = append(list, h)
		}
		if h == nil {
			continue
		}
		if (op.Kind == history.Acquire || op.Kind == history.Extend) && op.Outcome == history.OK {
			h.stretches = append(h.stretches, stretch{c.begins(op), c.vouched(op), op})
		}
		if at, ends := c.ends(op); ends && at < until[op.Grant()] {
			until[op.Grant()], h.end = at, op
		}
	}
	for _, h := range list {
		h.clip(until[h.acquire.Grant()])
	}
	return list
}

// clip ends the stretches at an instant, and joins those that touch.
func (h *hold) clip(end int64) {
	slices.SortStableFunc(h.stretches, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	kept := h.stretches[:0]
	for _, s := range h.stretches {
		if s.to = min(s.to, end); s.from >= s.to {
			continue
		}
		if n := len(kept); n > 0 && s.from <= kept[n-1].to {
			if s.to > kept[n-1].to {
				kept[n-1].to, kept[n-1].by = s.to, s.by
			}
			continue
		}
		kept = append(kept, s)
	}
	h.stretches = kept
}

// covers reports whether the hold is certain through all of [from, to].
func (h *hold) covers(from, to int64) bool {
	for _, s := range h.stretches {
		if s.from <= from && to < s.to {
			return true
		}
	}
	return false
}

// sameClient reports whether two operations are of one client of one incarnation.
func sameClient(a, b *history.Operation) bool { return a.Worker == b.Worker && a.Client == b.Client }
