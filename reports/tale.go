package reports

import (
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"fencepost.dev/history"
)

// Most that one tale shows; verdict.json has all of it.
const (
	mostWitness = 40 // operations of a witness
	mostAround  = 24 // operations of the same grants, for context
	mostEvents  = 24 // faults and other events
)

// tale is one finding, told: what the timeline, the table and the picture show of it. Its texts are printable, not escaped.
type tale struct {
	Check    string
	Finding  *Finding
	From, To int64    // of the operations told
	Actors   []string // clients, in order of appearance
	Steps    []step   // in order of time
	Holds    []hold
	Shades   []shade
	// Left counts operations of the witness that there was no room for, Between the attempts of others on the same object
	// that came in between and have nothing to do with it.
	Left     int
	Between  int
	Decimals int // of its clock
	// Prevented: nothing is wrong; it shows what would have gone wrong.
	Prevented bool
}

// step is one line of a tale: an operation, or something that happened to the run.
type step struct {
	At     int64
	Number int    // of the operation in picture and table; 0: not an operation
	Who    string // client, worker or store
	Text   string
	Note   string // what the operation contributes to the witness
	Mark   mark
	Ends   bool // a fault's end
	// Around: not of the witness; shown so that it can be understood.
	Around bool
	Op     *Operation // nil: not an operation
	// Asked is the client's own view of an attempt that the resource recorded in Op.
	Asked *Operation
}

// mark is the sort of thing that a step is. Each has a shape of its own, beside its colour.
type mark string

const (
	markOK      mark = "ok"
	markRefused mark = "refused"
	markFailed  mark = "failed"
	markUnknown mark = "unknown"
	markOffence mark = "offence" // the operation that proves it wrong
	markFault   mark = "fault"
	markExpiry  mark = "expiry"
	markCall    mark = "call" // told apart from its answer, which is a step of its own
)

// newTale tells a finding. around is what the history knows of the grants that occur in it.
func newTale(check string, f *Finding, r *Result, around *surroundings) *tale {
	t := &tale{Check: cleanName(check), Finding: f}
	t.build(r, around)
	return t
}

func (t *tale) build(r *Result, around *surroundings) {
	t.addOperations(around)
	if t.Prevented { // all of it is the story
		for i := range t.Steps {
			t.Steps[i].Around = false
		}
	}
	t.span()
	t.holds()
	t.offence()
	t.expiries()
	t.events(r)
	t.asked()
	sort.SliceStable(t.Steps, func(i, j int) bool {
		a, b := &t.Steps[i], &t.Steps[j]
		return a.At < b.At || a.At == b.At && a.rank() < b.rank()
	})
	n := 0
	for i := range t.Steps {
		s := &t.Steps[i]
		if s.Op != nil {
			n++
			s.Number = n
			if !slices.Contains(t.Actors, s.Who) {
				t.Actors = append(t.Actors, s.Who)
			}
		}
	}
}

// rank orders what was at one instant: what made an operation possible, the operation, and what came of it.
func (s *step) rank() int {
	switch {
	case s.Mark == markExpiry || s.Ends:
		return 0
	case s.Mark == markFault:
		return 2
	}
	return 1
}

// longAsked is how long an operation was under way if its call is told too, where something happened meanwhile.
const longAsked = int64(100 * time.Millisecond)

// asked adds a line for the call of an operation that was under way for long while something else of the tale happened: what
// came in between may be why.
func (t *tale) asked() {
	for _, s := range slices.Clone(t.Steps) {
		op := s.Op
		if op == nil || op.Synthetic || decision(op) || s.At-op.Call < longAsked || op.Call < t.From {
			continue
		}
		meanwhile := func(o step) bool { return o.At > op.Call && (o.At < s.At || o.At == s.At && o.Mark == markFault) }
		if !slices.ContainsFunc(t.Steps, meanwhile) {
			continue
		}
		t.Steps = append(t.Steps, step{At: op.Call, Who: s.Who, Mark: markCall, Around: true, Text: "asked: " + op.Kind + " " + cleanName(op.Key)})
	}
}

// subject says what the tale is about, in a few words.
func (t *tale) subject() string {
	if t.Finding.Key == "" {
		return t.Check
	}
	if t.Check == "" {
		return "on " + cleanName(t.Finding.Key)
	}
	return t.Check + " on " + cleanName(t.Finding.Key)
}

// addOperations makes steps of the witness and of what surrounds it. An attempt that both its client and the resource
// recorded is one step, at the time at which the resource decided.
func (t *tale) addOperations(around *surroundings) {
	witness := t.Finding.Operations
	if len(witness) > mostWitness {
		t.Left = len(witness) - mostWitness
		head := witness[:mostWitness/4]
		witness = append(slices.Clone(head), witness[t.Left+len(head):]...)
	}
	grants := map[int64]bool{}
	for i := range witness {
		t.Steps = append(t.Steps, operationStep(&witness[i], false))
		grants[witness[i].Fields["grant"]] = true
	}
	var extra []Operation
	if around != nil {
		first := around.overtakers[t.Finding]
		grants[first.grant] = true
		for g := range grants {
			for _, op := range around.grants[g] {
				if op.Key == t.Finding.Key && !slices.ContainsFunc(witness, func(w Operation) bool { return same(&w, &op) }) {
					extra = append(extra, op)
				}
			}
		}
		for g, attempts := range first.between {
			if !grants[g] {
				t.Between += attempts
			}
		}
	}
	if len(extra) > mostAround {
		sort.Slice(extra, func(i, j int) bool { return distance(&extra[i], t.Finding.At) < distance(&extra[j], t.Finding.At) })
		extra = extra[:mostAround]
	}
	sort.Slice(extra, func(i, j int) bool { return extra[i].Call < extra[j].Call })
	for i := range extra {
		t.Steps = append(t.Steps, operationStep(&extra[i], true))
	}
	if around != nil {
		for i := range around.frees[t.Finding] {
			op := &around.frees[t.Finding][i]
			s := operationStep(op, true)
			if op.Kind == history.Release.String() {
				// Told at its call: it took effect before its answer came, and what follows may have come before that too.
				s.At, s.Text = op.Call, "releases "+cleanName(op.Key)
				if s.Mark == markUnknown {
					s.Text += ", without an answer"
				}
			}
			t.Steps = append(t.Steps, s)
		}
	}
	t.merge()
}

// merge drops a client's own view of an attempt where the resource's record of it is there too.
func (t *tale) merge() {
	drop := map[int]bool{}
	for i := range t.Steps {
		own := &t.Steps[i]
		if own.Op.Primitive != "resource" || decision(own.Op) {
			continue
		}
		for j := range t.Steps {
			s := &t.Steps[j]
			if !decision(s.Op) || s.Asked != nil || s.Op.Kind != own.Op.Kind || s.Op.Client != own.Op.Client ||
				s.Op.Fields["grant"] != own.Op.Fields["grant"] || s.At < own.Op.Call || s.At > own.Op.Return {
				continue
			}
			s.Asked = own.Op
			s.Around = s.Around && own.Around
			if s.Note == "" {
				s.Note = own.Note
			}
			if own.Op.Outcome != s.Op.Outcome {
				s.Text += "; its client: " + outcome(own.Op)
			}
			drop[i] = true
			break
		}
	}
	kept := t.Steps[:0]
	for i, s := range t.Steps {
		if !drop[i] {
			kept = append(kept, s)
		}
	}
	t.Steps = kept
}

// decision reports whether an operation is the resource's own record of an attempt: an instant.
func decision(op *Operation) bool { return op.Primitive == "resource" && op.Call == op.Return }

func same(a, b *Operation) bool {
	return a.Call == b.Call && a.Return == b.Return && a.Kind == b.Kind && a.Primitive == b.Primitive && a.Client == b.Client
}

func distance(op *Operation, at int64) float64 { return math.Abs(float64(op.Call) - float64(at)) }

func operationStep(op *Operation, around bool) step {
	s := step{
		At:     op.Return,
		Who:    cleanName(op.Client),
		Text:   tell(op),
		Note:   cleanText(op.Note),
		Around: around,
		Op:     op,
	}
	switch {
	case op.Synthetic:
		s.Mark = markExpiry
	case op.Outcome == history.OK.String():
		s.Mark = markOK
	case op.Outcome == history.Refused.String():
		s.Mark = markRefused
	case op.Outcome == history.Failed.String():
		s.Mark = markFailed
	default:
		s.Mark = markUnknown
	}
	if !answered(op) {
		s.At = op.Call
	}
	return s
}

// span finds how long the tale is. What never returned counts as its call.
func (t *tale) span() {
	t.From, t.To = math.MaxInt64, math.MinInt64
	for i := range t.Steps {
		op := t.Steps[i].Op
		t.From = min(t.From, op.Call)
		t.To = max(t.To, op.Call, t.Steps[i].At)
	}
	if t.From > t.To { // nothing but words
		t.From, t.To = t.Finding.At, t.Finding.At
	}
	t.Decimals = decimalsFor(t.To - t.From)
}

// offence marks the operation that proves it wrong: of the attempts on the resource that the check named those that should
// not have been accepted, else the last operation that it named.
func (t *tale) offence() {
	made := map[string]int64{} // version that accepted writes have made, by key
	var seen []*Operation
	marked := false
	for _, s := range t.inResourceOrder() {
		op := s.Op
		write := op.Kind == history.Write.String()
		if op.Outcome == history.OK.String() {
			stale := write && op.Fields["version"] < made[op.Key]
			if stale || slices.ContainsFunc(seen, func(before *Operation) bool { return t.overtaken(op, before) }) {
				if !s.Around {
					s.Mark, marked = markOffence, true
				}
				s.Text = strings.TrimSuffix(s.Text, ": accepted") + ": accepted, though stale"
			}
			if write {
				made[op.Key] = max(made[op.Key], op.Fields["version"]+1)
			}
		}
		seen = append(seen, op)
	}
	if marked || t.Prevented {
		return
	}
	last := -1
	for i := range t.Steps {
		s := &t.Steps[i]
		if s.Around || s.Mark == markExpiry {
			continue
		}
		last = i
		if s.Op.Return == t.Finding.At {
			break
		}
	}
	if last >= 0 {
		t.Steps[last].Mark = markOffence
	}
}

// overtaken reports whether an attempt came too late after one that the resource had seen before: by their tokens, or, where
// they have none, because its grant was the earlier one.
func (t *tale) overtaken(op, before *Operation) bool {
	grant, other := op.Fields["grant"], before.Fields["grant"]
	if op.Key != before.Key || grant == 0 || other == 0 || grant == other {
		return false
	}
	if token := op.Fields["token"]; token != 0 {
		return token <= before.Fields["token"]
	}
	own, later := t.holdOf(grant), t.holdOf(other)
	return own != nil && later != nil && own.From < later.From
}

// inResourceOrder gives the resource's own records in the order in which it decided them.
func (t *tale) inResourceOrder() []*step {
	var records []*step
	for i := range t.Steps {
		if decision(t.Steps[i].Op) {
			records = append(records, &t.Steps[i])
		}
	}
	sort.SliceStable(records, func(i, j int) bool {
		return records[i].Op.Fields["sequence"] < records[j].Op.Fields["sequence"]
	})
	return records
}

// expiries adds a line for each hold that ran out, unless the witness has it.
func (t *tale) expiries() {
	for _, h := range t.Holds {
		known := slices.ContainsFunc(t.Steps, func(s step) bool {
			return s.Op != nil && s.Op.Synthetic && s.Op.Fields["grant"] == h.Grant
		})
		if !h.Expired || known || h.Until < t.From || h.Until > t.To {
			continue
		}
		t.Steps = append(t.Steps, step{
			At: h.Until, Who: h.Client, Mark: markExpiry, Around: true,
			Text: "its " + span(time.Duration(h.TTL)) + " on " + cleanName(t.Finding.Key) + " are over",
		})
	}
}

// between says how many attempts of others are left out.
func (t *tale) between() string {
	if t.Between == 0 {
		return ""
	}
	return count(int64(t.Between), "other attempt") + " on " + cleanName(t.Finding.Key) + " came in between; not shown."
}
