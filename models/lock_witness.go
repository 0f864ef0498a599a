package models

import (
	"cmp"
	"fmt"
	"slices"

	"fencepost.dev/history"
)

func lockObject(in *Input) object[lockState] {
	return object[lockState]{
		spec:      lockSpec(in),
		takesPart: isLockOperation,
		spurious:  in.Contract.Refusals == MayBeSpurious,
		witness:   teller{unit: lockUnit, mayDrop: mayDropGrants, tell: tellLock},
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
			s = &span{grant: op.Grant(), from: op.Call, to: never}
			index[op.Grant()] = s
			spans = append(spans, s)
		}
		s.from = min(s.from, op.Call)
		if op.Kind == history.Acquire {
			s.acquire = op
		}
		if (op.Kind == history.Acquire || op.Kind == history.Extend) && (s.last == nil || op.Call >= s.last.Call) {
			s.last = op
		}
	}
	for i := range ops {
		op := &ops[i]
		s := index[op.Grant()]
		if s == nil || op.Outcome == history.Refused {
			continue
		}
		released := op.Kind == history.Release && op.Outcome == history.OK && op.Flags&history.Optional == 0
		lapsed := op.Kind == history.Expire && s.last != nil && op.Generation() == s.last.Generation()
		if (released || lapsed) && op.Return < s.to {
			s.to, s.end = op.Return, op
		}
	}
	return spans
}

// instant is a time of the run, for people.
func instant(t int64) string {
	if t == never {
		return "the end"
	}
	return fmt.Sprintf("%.3f s", float64(t)/1e9)
}

// tellLock chooses what to show of a story about a lock and says what each operation contributes.
func tellLock(names *history.Names, s story) Finding {
	shown := lockShown(s)
	culprit := lockCulprit(s, shown)
	var f Finding
	if culprit != nil {
		f.Summary = lockSummary(names, s, shown, culprit)
	}
	if culprit != nil && culprit.Outcome == history.Refused {
		if last := lastBefore(s.prefix, culprit); last != nil && !slices.ContainsFunc(shown, func(op history.Operation) bool { return op.Grant() == last.grant }) {
			shown = append(shown, *last.acquire)
			if last.end != nil {
				shown = append(shown, *last.end)
			}
		}
	}
	slices.SortStableFunc(shown, func(a, b history.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for i := range shown {
		op := &shown[i]
		f.Operations = append(f.Operations, *op)
		f.Notes = append(f.Notes, lockNote(s, op, culprit != nil && op.Call == culprit.Call && op.Kind == culprit.Kind && op.Grant() == culprit.Grant()))
	}
	if f.Summary == "" {
		f.Summary = fmt.Sprintf("%s: no order of what %d operations did until %s explains their answers.", keyOf(names, s.witness), len(s.witness), instant(s.at))
	}
	return f
}

func keyOf(names *history.Names, ops []history.Operation) string {
	if len(ops) == 0 {
		return ""
	}
	return names.Key(ops[0].Key)
}

// maxShown bounds a witness that could not be made small in time.
const maxShown = 40

// lockShown is what the story needs, with the grants that it is about and how they end.
func lockShown(s story) []history.Operation {
	governs := map[history.GrantID]int64{} // the last generation that the story needs, by grant
	for i := range s.witness {
		if op := &s.witness[i]; s.needed[i] && op.Kind == history.Extend && op.Outcome == history.OK {
			governs[op.Grant()] = max(governs[op.Grant()], op.Generation())
		}
	}
	told := map[history.GrantID]bool{}
	var shown []history.Operation
	for i, op := range s.witness {
		switch {
		case op.Kind == history.Expire:
			if op.Outcome == history.Refused || told[op.Grant()] || op.Generation() != governs[op.Grant()] {
				continue
			}
			told[op.Grant()] = true
			op.Outcome = history.OK
		case op.Kind == history.Extend && !s.needed[i]:
			continue
		}
		op.Flags &^= history.Optional
		shown = append(shown, op)
	}
	if len(shown) > maxShown {
		slices.SortStableFunc(shown, func(a, b history.Operation) int { return cmp.Compare(a.Call, b.Call) })
		shown = shown[len(shown)-maxShown:]
	}
	return shown
}

// lockCulprit is the answer with which the story became impossible.
func lockCulprit(s story, shown []history.Operation) *history.Operation {
	var culprit *history.Operation
	for i := range shown {
		op := &shown[i]
		if op.Flags&history.Synthetic != 0 || op.Outcome == history.Unknown || op.Return > s.at {
			continue
		}
		if culprit == nil || op.Return > culprit.Return {
			culprit = op
		}
	}
	return culprit
}

// lastBefore is the grant that held last before an operation was called, or nil.
func lastBefore(prefix []history.Operation, op *history.Operation) *span {
	var last *span
	for _, s := range spansOf(prefix) {
		if s.acquire != nil && s.to < op.Call && s.grant != op.Grant() && (last == nil || s.to > last.to) {
			last = s
		}
	}
	return last
}

func lockSummary(names *history.Names, s story, shown []history.Operation, culprit *history.Operation) string {
	who, key := names.ClientName(culprit), names.Key(culprit.Key)
	var own, other *span
	for _, sp := range spansOf(shown) {
		switch {
		case sp.grant == culprit.Grant():
			own = sp
		case sp.acquire != nil && (other == nil || sp.acquire.Call > other.acquire.Call):
			other = sp
		}
	}
	switch {
	case culprit.Kind == history.Acquire && culprit.Outcome == history.OK && other != nil:
		return fmt.Sprintf("%s was granted %s at %s while %s held it: granted at %s%s.", who, key, instant(culprit.Return),
			names.ClientName(other.acquire), instant(other.acquire.Return), notBefore(shown, other))
	case culprit.Kind == history.Acquire && culprit.Outcome == history.Refused && other == nil:
		since := "nobody had ever held it"
		if last := lastBefore(s.prefix, culprit); last != nil {
			since = "nobody can have held it since " + instant(last.to)
		}
		return fmt.Sprintf("%s was refused %s at %s although %s.", who, key, instant(culprit.Return), since)
	case culprit.Kind == history.Acquire && culprit.Outcome == history.Refused:
		return fmt.Sprintf("%s was refused %s at %s although it was free.", who, key, instant(culprit.Return))
	case culprit.Outcome == history.Refused && own != nil:
		return fmt.Sprintf("%s was told at %s that it does not hold %s, although it was granted at %s%s.", who, instant(culprit.Return), key,
			instant(own.acquireReturn()), notBefore(shown, own))
	case culprit.Outcome == history.OK && own != nil:
		done := "extend"
		if culprit.Kind == history.Release {
			done = "release"
		}
		return fmt.Sprintf("%s could %s %s at %s although it no longer held it%s.", who, done, key, instant(culprit.Return), whyNot(names, shown, culprit, own, other))
	}
	return ""
}

func (s *span) acquireReturn() int64 {
	if s.acquire == nil {
		return s.from
	}
	return s.acquire.Return
}

// notBefore says until when a grant held at least, if the story shows its expiry.
func notBefore(shown []history.Operation, s *span) string {
	for i := range shown {
		if op := &shown[i]; op.Kind == history.Expire && op.Grant() == s.grant {
			return ", and its time-to-live could not have ended before " + instant(op.Call)
		}
	}
	return ""
}

// whyNot says what ended a grant before an answer that treats it as holding.
func whyNot(names *history.Names, shown []history.Operation, culprit *history.Operation, own, other *span) string {
	for i := range shown {
		op := &shown[i]
		if op.Grant() != own.grant || op.Return >= culprit.Call && op.Kind == history.Expire {
			continue
		}
		switch {
		case op.Kind == history.Expire:
			return ": its time-to-live had ended by " + instant(op.Return)
		case op.Kind == history.Release && op != culprit && op.Outcome == history.OK && op.Call < culprit.Call:
			return ": it had been released at " + instant(op.Return)
		}
	}
	if other != nil {
		return fmt.Sprintf(": %s was granted it at %s", names.ClientName(other.acquire), instant(other.acquireReturn()))
	}
	return ""
}

func lockNote(s story, op *history.Operation, culprit bool) string {
	var note string
	switch {
	case op.Kind == history.Expire:
		return fmt.Sprintf("its time-to-live ends between %s and %s", instant(op.Call), instant(op.Return))
	case op.Outcome == history.Unknown:
		return "its answer is not known; it can have taken effect until " + instant(op.Return)
	case op.Kind == history.Acquire && op.Outcome == history.OK:
		note = "granted at " + instant(op.Return)
	case op.Kind == history.Acquire:
		note = "refused at " + instant(op.Return)
	case op.Kind == history.Extend && op.Outcome == history.OK:
		note = "extended at " + instant(op.Return)
	case op.Kind == history.Release && op.Outcome == history.OK:
		note = "released at " + instant(op.Return)
	default:
		note = "told at " + instant(op.Return) + " that it is not the holder"
	}
	if culprit {
		return note + ": impossible by then"
	}
	for i := range s.prefix {
		e := &s.prefix[i]
		starts := op.Kind == history.Acquire || op.Kind == history.Extend
		if starts && op.Outcome == history.OK && e.Kind == history.Expire && e.Grant() == op.Grant() && e.Generation() == op.Generation() {
			return note + "; could not have expired before " + instant(e.Call)
		}
	}
	return note
}
