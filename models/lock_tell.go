package models

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fencepost.dev/history"
)

// instant is a time of the run, for people.
func instant(t int64) string {
	if t == never {
		return "the end"
	}
	return fmt.Sprintf("%.3f s", float64(t)/1e9)
}

// lockTeller says in words what a small story about a lock shows.
type lockTeller struct{ expiry lockExpiry }

// lockTale is a story being told.
type lockTale struct {
	lockTeller
	story
	names   *history.Names
	culprit *history.Operation // the answer with which the story became impossible; nil: a time, and not an answer
	// own is what the culprit's grant did before it, and other the last grant of somebody else; nil if there is none.
	own, other *span
	last       *span // for a refusal that no grant of the story explains: who held last
	shown      []history.Operation
}

// maxShown bounds a witness that could not be made small in time.
const maxShown = 40

func (l lockTeller) tell(names *history.Names, s story) Finding {
	t := lockTale{lockTeller: l, story: s, names: names}
	t.findCulprit()
	t.choose()
	f := Finding{Operations: t.shown, Summary: t.summary()}
	for i := range t.shown {
		f.Notes = append(f.Notes, t.note(&t.shown[i]))
	}
	return f
}

// findCulprit picks the last answer that the story needs.
func (t *lockTale) findCulprit() {
	for i := range t.witness {
		op := &t.witness[i]
		if !t.needed[i] || op.Flags&history.Synthetic != 0 || op.Return > t.at {
			continue
		}
		if t.culprit == nil || op.Return >= t.culprit.Return {
			t.culprit = op
		}
	}
	if t.culprit == nil {
		return
	}
	var before []history.Operation
	for _, op := range t.witness {
		if !t.isCulprit(&op) {
			before = append(before, op)
		}
	}
	for _, s := range spansOf(before) {
		switch {
		case s.acquire == nil:
		case s.grant == t.culprit.Grant():
			t.own = s
		case t.other == nil || s.acquire.Call > t.other.acquire.Call:
			t.other = s
		}
	}
	if t.culprit.Kind == history.Acquire && t.culprit.Outcome == history.Refused && t.other == nil {
		for _, s := range spansOf(t.prefix) {
			if s.acquire != nil && s.to < t.culprit.Call && (t.last == nil || s.to > t.last.to) {
				t.last = s
			}
		}
	}
}

func (t *lockTale) isCulprit(op *history.Operation) bool {
	c := t.culprit
	return c != nil && op.Kind == c.Kind && op.Grant() == c.Grant() && op.Call == c.Call && op.Flags&history.Synthetic == 0
}

// choose shows what the story needs, the grants that it is about, and how they end.
func (t *lockTale) choose() {
	governs := map[history.GrantID]int64{} // the last generation that the story needs, by grant
	for i := range t.witness {
		if op := &t.witness[i]; t.needed[i] && op.Kind == history.Extend && op.Outcome == history.OK && !t.isCulprit(op) {
			governs[op.Grant()] = max(governs[op.Grant()], op.Generation())
		}
	}
	told := map[history.GrantID]bool{}
	show := func(op history.Operation) {
		op.Flags &^= history.Optional
		if op.Kind == history.Expire {
			told[op.Grant()] = true
			op.Outcome = history.OK
		}
		t.shown = append(t.shown, op)
	}
	for i, op := range t.witness {
		switch {
		case op.Kind == history.Expire && (op.Outcome == history.Refused || told[op.Grant()] || op.Generation() != governs[op.Grant()]):
		case op.Kind == history.Extend && !t.needed[i]:
		default:
			show(op)
		}
	}
	if t.last != nil {
		show(*t.last.acquire)
		for _, start := range t.last.starts { // the one that lasted longest
			if start != t.last.acquire && t.last.end.Kind == history.Expire && start.Generation() == t.last.end.Generation() {
				show(*start)
			}
		}
		show(*t.last.end)
	}
	slices.SortStableFunc(t.shown, func(a, b history.Operation) int { return cmp.Compare(a.Call, b.Call) })
	if len(t.shown) > maxShown {
		t.shown = t.shown[len(t.shown)-maxShown:]
	}
}

func (t *lockTale) summary() string {
	c := t.culprit
	if c == nil {
		key := ""
		if len(t.witness) > 0 {
			key = t.names.Key(t.witness[0].Key)
		}
		return fmt.Sprintf("No order of what was done to %s until %s explains the answers.", key, instant(t.at))
	}
	who, key, at := t.names.ClientName(c), t.names.Key(c.Key), instant(c.Return)
	refused := c.Outcome == history.Refused
	switch {
	case c.Kind == history.Acquire && !refused && t.other != nil:
		return fmt.Sprintf("%s was granted %s at %s while %s held it%s.", who, key, at, t.names.ClientName(t.other.acquire), t.since(t.other))
	case c.Kind == history.Acquire && refused:
		return fmt.Sprintf("%s was refused %s at %s although %s.", who, key, at, t.free())
	case refused && t.own != nil:
		return fmt.Sprintf("%s was told at %s that it does not hold %s although it did%s.", who, at, key, t.since(t.own))
	case refused:
		return fmt.Sprintf("%s was told at %s that it does not hold %s, which nothing explains.", who, at, key)
	case c.Kind == history.Acquire:
		return fmt.Sprintf("%s was granted %s at %s, which nothing explains.", who, key, at)
	}
	return fmt.Sprintf("%s could %s %s at %s although %s.", who, c.Kind, key, at, t.lost())
}

// since says from when to when a grant holds at least.
func (t *lockTale) since(s *span) string {
	text := ": granted at " + instant(s.acquire.Return)
	if s.acquire.Outcome != history.OK {
		text = ": asked for at " + instant(s.acquire.Call)
	}
	if s.last.Kind == history.Extend && s.last.Outcome == history.OK {
		text += ", extended at " + instant(s.last.Return)
	}
	if s.last.TTL() > 0 && s.last.Outcome == history.OK {
		text += ", it could not have expired before " + instant(t.expiry.earliest(s.last))
	}
	return text
}

func (t *lockTale) free() string {
	switch {
	case t.other != nil:
		return "it was free"
	case t.last != nil && t.last.acquire.Outcome == history.Unknown:
		return fmt.Sprintf("nobody can have held it since %s: what %s asked for at %s, and was never answered, had ended by then",
			instant(t.last.to), t.names.ClientName(t.last.acquire), instant(t.last.acquire.Call))
	case t.last != nil:
		return "nobody can have held it since " + instant(t.last.to)
	}
	return "nobody had ever held it"
}

// slowAnswer is how long a call is open before a client library may have lost patience and sent its request again.
const slowAnswer = int64(100 * time.Millisecond)

// repeated says what a refusal that no grant explains can be owed to, if its call was open for long: a request that was sent
// twice, which a history of calls doesn't show.
func (t *lockTale) repeated(op *history.Operation) string {
	open := op.Return - op.Call
	if t.other != nil || open < slowAnswer {
		return ""
	}
	return fmt.Sprintf("; the call was open for %.2f s, and if a client library repeats a request that is answered late, the first try of "+
		"this call, or of one that was open beside it, took the lock", float64(open)/1e9)
}

// lost says why the culprit's client did not hold any more.
func (t *lockTale) lost() string {
	switch {
	case t.own == nil:
		return "it did not hold it"
	case t.own.released != nil && t.own.released.Return < t.culprit.Call:
		return "it had been released at " + instant(t.own.released.Return)
	case t.own.to < t.culprit.Call:
		return "its time-to-live had ended by " + instant(t.own.to)
	case t.other != nil:
		return fmt.Sprintf("%s was granted it at %s", t.names.ClientName(t.other.acquire), instant(t.other.acquire.Return))
	}
	return "it no longer held it"
}

// note says what one operation contributes.
func (t *lockTale) note(op *history.Operation) string {
	if op.Kind == history.Expire {
		return fmt.Sprintf("its time-to-live ends between %s and %s", instant(op.Call), instant(op.Return))
	}
	if op.Outcome == history.Unknown {
		return "its answer is not known; it can have taken effect until " + instant(op.Return)
	}
	at := instant(op.Return)
	lasts := ""
	if op.TTL() > 0 && (op.Kind == history.Acquire || op.Kind == history.Extend) {
		lasts = "; could not have expired before " + instant(t.expiry.earliest(op))
	}
	refused := op.Outcome == history.Refused
	switch culprit := t.isCulprit(op); {
	case op.Kind == history.Acquire && refused && culprit:
		return fmt.Sprintf("refused at %s although %s%s", at, t.free(), t.repeated(op))
	case op.Kind == history.Acquire && refused:
		return "refused at " + at
	case refused && culprit:
		return fmt.Sprintf("told at %s that it is not the holder, which it was", at)
	case refused:
		return fmt.Sprintf("told at %s that it is not the holder", at)
	case culprit && op.Kind == history.Acquire:
		return fmt.Sprintf("granted at %s all the same", at)
	case culprit:
		return fmt.Sprintf("answered ok at %s although %s", at, t.lost())
	case op.Kind == history.Acquire:
		return "granted at " + at + lasts
	case op.Kind == history.Extend:
		return "extended at " + at + lasts
	}
	return "released at " + at
}
