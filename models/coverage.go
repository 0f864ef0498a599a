package models

import (
	"slices"

	"fencepost.dev/history"
)

// Counter is something that coverage counts.
type Counter struct {
	Name  string
	About string // one line

	count func(*census) int64
}

// counters is the table of them, in the order in which they are listed.
var counters = []Counter{
	{"operations", "operations of clients on the subject", func(c *census) int64 { return c.operations }},
	{"granted", "acquires that were granted", func(c *census) int64 { return c.answers(history.Acquire, history.OK) }},
	{"refused", "acquires that were refused", func(c *census) int64 { return c.answers(history.Acquire, history.Refused) }},
	{"contended", "acquires that were refused while another client was certain to hold", (*census).contended},
	{"extended", "extensions that were acknowledged", func(c *census) int64 { return c.answers(history.Extend, history.OK) }},
	{"released", "releases that were acknowledged", func(c *census) int64 { return c.answers(history.Release, history.OK) }},
	{"unknown", "operations on the subject whose outcome is not known", func(c *census) int64 { return c.unknown }},
	{"failed", "operations on the subject that certainly had no effect", func(c *census) int64 { return c.failed }},
	{"grants-lost", "grants whose client was told that it no longer holds", (*census).grantsLost},
	{"reads", "reads that the resource decided", func(c *census) int64 { return c.attempts(history.Read, history.OK, history.Refused) }},
	{"reads-refused", "reads that the resource's fence refused", func(c *census) int64 { return c.attempts(history.Read, history.Refused) }},
	{"writes", "writes that the resource decided", func(c *census) int64 { return c.attempts(history.Write, history.OK, history.Refused) }},
	{"writes-accepted", "writes that the resource accepted", func(c *census) int64 { return c.attempts(history.Write, history.OK) }},
	{"writes-refused", "writes that the resource's fence refused", func(c *census) int64 { return c.attempts(history.Write, history.Refused) }},
	{"writes-refused-after-read", "writes that the fence refused when a later grant had only read", (*census).writesRefusedAfterRead},
	{"writes-after-expiry", "writes that reached the resource when their grant had certainly expired", (*census).writesAfterExpiry},
	{"faults", "faults that were confirmed to be in force", func(c *census) int64 { return c.faults }},
	{"trap-missed", "clients that waited at a point for a fault that did not come in time", func(c *census) int64 { return c.events[history.EventTrapMissed] }},
	{"holds-across-fault", "grants that were certainly held through all of a fault on a store, for each such fault", (*census).holdsAcrossFaults},
	{"worker-deaths", "worker processes that ended before the load did, on purpose or not", func(c *census) int64 { return c.events[history.EventWorkerDied] }},
}

// Counters lists all that Count counts.
func Counters() []Counter { return slices.Clone(counters) }

// Count counts what happened in a run, by counter. Of what depends on clocks only what is definite counts.
func Count(in *Input) map[string]int64 {
	c := newCensus(in)
	counts := make(map[string]int64, len(counters))
	for _, counter := range counters {
		counts[counter.Name] = counter.count(c)
	}
	return counts
}

// census is what counters look at.
type census struct {
	in                          *Input
	operations, unknown, failed int64
	byAnswer, byDecision        map[answer]int64
	faults                      int64
	events                      map[history.EventKind]int64
	holds                       []*hold
}

type answer struct {
	kind    history.Kind
	outcome history.Outcome
}

func newCensus(in *Input) *census {
	certainty := newCertainty(in)
	c := &census{in: in, byAnswer: map[answer]int64{}, byDecision: map[answer]int64{}, events: map[history.EventKind]int64{}, holds: certainty.holds(in)}
	for i := range in.Operations {
		op := &in.Operations[i]
		c.byAnswer[answer{op.Kind, op.Outcome}]++
		if op.Kind.Primitive() == history.Read.Primitive() || op.Kind == history.Lost {
			continue
		}
		c.operations++
		switch op.Outcome {
		case history.Unknown:
			c.unknown++
		case history.Failed:
			c.failed++
		}
	}
	for i := range in.Resource {
		c.byDecision[answer{in.Resource[i].Kind, in.Resource[i].Outcome}]++
	}
	for _, e := range in.Events {
		c.events[e.Kind]++
		if e.Kind == history.EventFault && e.Confirmed {
			c.faults++
		}
	}
	return c
}

func (c *census) answers(kind history.Kind, outcome history.Outcome) int64 {
	return c.byAnswer[answer{kind, outcome}]
}

func (c *census) attempts(kind history.Kind, outcomes ...history.Outcome) int64 {
	var n int64
	for _, outcome := range outcomes {
		n += c.byDecision[answer{kind, outcome}]
	}
	return n
}

// contended counts refusals that lie wholly within another client's certainty.
func (c *census) contended() int64 {
	byKey := map[uint32][]*hold{}
	for _, h := range c.holds {
		byKey[h.acquire.Key] = append(byKey[h.acquire.Key], h)
	}
	// Holds come by Call, and so do refusals: those that ended for good are passed once.
	passed := map[uint32]int{}
	var n int64
	for i := range c.in.Operations {
		op := &c.in.Operations[i]
		if op.Kind != history.Acquire || op.Outcome != history.Refused {
			continue
		}
		holds := byKey[op.Key]
		for passed[op.Key] < len(holds) && over(holds[passed[op.Key]], op.Call) {
			passed[op.Key]++
		}
		for _, h := range holds[passed[op.Key]:] {
			if h.acquire.Call > op.Return {
				break
			}
			if !sameClient(h.acquire, op) && h.covers(op.Call, op.Return) {
				n++
				break
			}
		}
	}
	return n
}

// over reports that no certainty of the hold lasts beyond an instant.
func over(h *hold, at int64) bool {
	return len(h.stretches) == 0 || h.stretches[len(h.stretches)-1].to <= at
}

func (c *census) grantsLost() int64 {
	lost := map[history.GrantID]bool{}
	for i := range c.in.Operations {
		op := &c.in.Operations[i]
		notHolder := (op.Kind == history.Extend || op.Kind == history.Release) && op.Outcome == history.Refused
		if op.Kind == history.Lost || notHolder {
			lost[op.Grant()] = true
		}
	}
	return int64(len(lost))
}

// writesAfterExpiry counts the writes that the resource decided, or refused, when the last time-to-live of their grant was
// over by any clock. Where the resource keeps no log, what clients sent so late counts.
func (c *census) writesAfterExpiry() int64 {
	expiry := newLockExpiry(c.in)
	ends := map[history.GrantID]int64{}
	stops := map[history.GrantID]int64{}
	for i := range c.in.Operations {
		op := &c.in.Operations[i]
		if at, ok := expiry.stops(op); ok {
			stops[op.Grant()] = min(at, orNever(stops, op.Grant()))
		}
	}
	for i := range c.in.Operations {
		op := &c.in.Operations[i]
		begins := op.Kind == history.Acquire && op.Outcome == history.OK ||
			op.Kind == history.Extend && (op.Outcome == history.OK || op.Outcome == history.Unknown)
		if begins && op.TTL() > 0 {
			stop := min(orNever(stops, op.Grant()), expiry.died(op))
			ends[op.Grant()] = max(ends[op.Grant()], expiry.latest(op, stop))
		}
	}
	late := func(op *history.Operation) bool {
		end, granted := ends[op.Grant()]
		return granted && op.Kind == history.Write && op.Call > end
	}
	var n int64
	for i := range c.in.Resource {
		if op := &c.in.Resource[i]; isAttempt(op) && late(op) {
			n++
		}
	}
	if len(c.in.Resource) == 0 {
		for i := range c.in.Operations {
			if op := &c.in.Operations[i]; op.Outcome != history.Failed && late(op) {
				n++
			}
		}
	}
	return n
}

// writesRefusedAfterRead counts the refused writes whose token was lower than one that had come with a read, and no lower than
// any that had come with a write: a fence on writes alone would have let them pass.
func (c *census) writesRefusedAfterRead() int64 {
	type highest struct{ read, written int64 }
	seen := map[uint32]highest{}
	var n int64
	for i := range c.in.Resource {
		op := &c.in.Resource[i]
		key := seen[op.Key]
		switch {
		case op.Outcome == history.OK && op.Kind == history.Read:
			key.read = max(key.read, op.Token())
		case op.Outcome == history.OK && op.Kind == history.Write:
			key.written = max(key.written, op.Token())
		case op.Outcome == history.Refused && op.Kind == history.Write:
			if op.Token() != 0 && key.written <= op.Token() && op.Token() < key.read {
				n++
			}
		}
		seen[op.Key] = key
	}
	return n
}

func orNever(m map[history.GrantID]int64, g history.GrantID) int64 {
	if at, known := m[g]; known {
		return at
	}
	return never
}

// holdsAcrossFaults counts, for each confirmed fault on a store node that is over, the grants that were certain before it
// began and after it ended.
func (c *census) holdsAcrossFaults() int64 {
	var n int64
	for _, e := range c.in.Events {
		if e.Kind != history.EventFault || !e.Confirmed || e.Node < 0 {
			continue
		}
		end := e.End
		if end == 0 {
			if !slices.Contains(momentary, e.Fault) {
				continue
			}
			end = e.At
		}
		for _, h := range c.holds {
			elsewhere := h.acquire.Node != history.NoNode && int(h.acquire.Node) != e.Node
			if !elsewhere && h.covers(e.At, end) {
				n++
			}
		}
	}
	return n
}
