package models

import "fencepost.dev/history"

func lockObject(in *Input) object[lockState] {
	words := lockTeller{newLockExpiry(in)}
	return object[lockState]{
		spec:      lockSpec(in),
		takesPart: isLockOperation,
		spurious:  in.Contract.Refusals == MayBeSpurious,
		witness:   teller{unit: lockUnit, mayDrop: mayDropGrants, tell: words.tell},
	}
}

// lockUnit: all that a grant did, and its expiries, go together. Refusals change nothing and stand alone.
func lockUnit(op *history.Operation) int64 {
	if op.Outcome == history.Refused && op.Flags&history.Synthetic == 0 {
		return 0
	}
	return int64(op.Grant())
}

// mayDropGrants: without refusals, a lock that nobody held for a while can do all that it could before: whole grants may go.
// A refusal may be owed to a grant that held then; so only those may go that can't have held during any refusal that stays.
func mayDropGrants(severity Severity, dropped, kept []history.Operation) bool {
	if severity == Safety {
		return true
	}
	spans := spansOf(dropped)
	for i := range kept {
		op := &kept[i]
		if op.Outcome != history.Refused || op.Flags&history.Synthetic != 0 {
			continue
		}
		for _, span := range spans {
			if span.from <= op.Return && op.Call <= span.to {
				return false
			}
		}
	}
	return true
}

// span is the longest that a grant can have held, as far as some operations tell.
type span struct {
	grant    history.GrantID
	from, to int64
	acquire  *history.Operation
	last     *history.Operation // the last that began a time-to-live
	end      *history.Operation // what ended it at the latest: a release or an expiry; nil: nothing did

	starts, expiries []*history.Operation
	released         *history.Operation
}

func spansOf(ops []history.Operation) []*span {
	index := map[history.GrantID]*span{}
	var spans []*span
	for i := range ops {
		op := &ops[i]
		if op.Outcome == history.Refused || op.Outcome == history.Failed {
			continue
		}
		s := index[op.Grant()]
		if s == nil {
			s = &span{grant: op.Grant(), from: op.Call}
			index[op.Grant()] = s
			spans = append(spans, s)
		}
		s.from = min(s.from, op.Call)
		certain := op.Outcome == history.OK && op.Flags&history.Optional == 0
		switch op.Kind {
		case history.Acquire:
			s.acquire = op
			s.starts = append(s.starts, op)
		case history.Extend:
			s.starts = append(s.starts, op)
		case history.Expire:
			s.expiries = append(s.expiries, op)
		case history.Release:
			if certain {
				s.released = op
			}
		}
	}
	for _, s := range spans {
		s.conclude()
	}
	return spans
}

// conclude finds the end: an acknowledged release, else the last expiry, provided that each time-to-live has one. A generation
// without an expiry has none yet, or was settled by an operation that is here (see lockExpiry.derive).
func (s *span) conclude() {
	for _, start := range s.starts {
		if s.last == nil || start.Call >= s.last.Call {
			s.last = start
		}
	}
	if s.released != nil {
		s.to, s.end = s.released.Return, s.released
		return
	}
	for _, e := range s.expiries {
		if s.end == nil || e.Return > s.to {
			s.to, s.end = e.Return, e
		}
	}
	for _, start := range s.starts {
		if !s.concluded(start) {
			s.to, s.end = never, nil
			return
		}
	}
	if s.end == nil {
		s.to = never
	}
}

func (s *span) concluded(start *history.Operation) bool {
	for _, e := range s.expiries {
		if e.Generation() == start.Generation() {
			return true
		}
	}
	for _, op := range s.starts {
		if op.Kind == history.Extend && op.Flags&history.Optional == 0 && settles(op, start) {
			return true
		}
	}
	return false
}
