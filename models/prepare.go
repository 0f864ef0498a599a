package models

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"fencepost.dev/history"
)

// DefaultDrift is the ρ of a run that states none: NTP slews a clock by at most half of it.
const DefaultDrift = 0.001

// DefaultGranularity is the g of a run that states none. Valkey keeps expiries in whole milliseconds, rounded down from its
// clock, and compares strictly: that is a millisecond either way. The second one is a client's.
const DefaultGranularity = 2 * time.Millisecond

// PrepareOptions are what the checks must know of a run besides its history. Zero values mean the defaults.
type PrepareOptions struct {
	Primitive   string
	Contract    Contract
	Fenced      bool  // the witness enforced tokens
	End         int64 // when the last final read was done; 0: the last thing in the history
	Limit       Limit
	Drift       float64
	Granularity time.Duration
}

// Prepare makes the recorded run into what checks look at, and leaves h as it is: every client's interval is widened by its
// process's clock error, and an unknown operation is marked Optional and given the latest instant at which it can still take
// effect as its Return. The error tells of a history that contradicts itself, which no check could judge.
func Prepare(h *history.History, o PrepareOptions) (*Input, error) {
	if o.Drift < 0 || o.Drift >= 1 || o.Granularity < 0 || o.Contract.LateBy < 0 || o.Contract.ClockSkew < 0 {
		return nil, fmt.Errorf("models: drift %v, granularity %s, late-by %v and clock skew %d must not be negative, and the drift be below 1",
			o.Drift, o.Granularity, o.Contract.LateBy, o.Contract.ClockSkew)
	}
	in := &Input{
		Primitive:   o.Primitive,
		Contract:    o.Contract,
		Operations:  slices.Clone(h.Operations),
		Resource:    h.Resource,
		Fenced:      o.Fenced,
		Events:      h.Events,
		Names:       &h.Names,
		Limit:       o.Limit,
		Drift:       cmp.Or(o.Drift, DefaultDrift),
		Granularity: cmp.Or(o.Granularity, DefaultGranularity),
	}
	in.Gap, in.ResourceGap = gaps(h.Sources)
	in.End = cmp.Or(o.End, lastInstant(h))
	bounds := newBounds(in)
	for i := range in.Operations {
		if err := bounds.prepare(&in.Operations[i]); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(in.Operations, byCall)
	return in, nil
}

// prepare makes an operation as it was recorded into what checks look at.
func (b *bounds) prepare(op *history.Operation) error {
	if int(op.Worker) >= len(b.names.Workers) {
		return fmt.Errorf("models: the history has an operation of process %d and names only %d processes: its files are not of one run",
			op.Worker, len(b.names.Workers))
	}
	if op.Outcome == history.Unknown {
		optional(op, b.of(op))
	} else if op.Return < op.Call {
		return fmt.Errorf("models: %s of %s was called at %s and answered before that, at %s: its files are damaged",
			op.Kind, b.names.ClientName(op), history.Since(op.Call), history.Since(op.Return))
	}
	widen(op, b.names.Workers[op.Worker].ClockError)
	return nil
}

// optional: it may be left out, or take effect until then.
func optional(op *history.Operation, until int64) {
	op.Return = until
	op.Flags |= history.Optional
}

// widen gives an operation the interval that the error of its clock leaves.
func widen(op *history.Operation, clockError int64) {
	op.Call, op.Return = plus(op.Call, -clockError), plus(op.Return, clockError)
}

// gaps says in words what is missing of the clients' operations and of the witness's log, if anything is: what could not be
// recorded, and what a remote process that was killed had not sent yet.
func gaps(sources []history.Source) (clients, resource string) {
	for _, s := range sources {
		gap := ""
		switch {
		case s.Dropped > 0:
			gap = fmt.Sprintf("%d operations of %s could not be recorded", s.Dropped, s.Base)
		case s.Streamed && !s.Closed:
			gap = fmt.Sprintf("the last that %s did was not received", s.Base)
		default:
			continue
		}
		if s.Base == history.ResourceBase {
			resource = gap
		} else if clients == "" {
			clients = gap
		}
	}
	return clients, resource
}

func lastInstant(h *history.History) int64 {
	var last int64
	for i := range h.Operations {
		last = max(last, h.Operations[i].Call, h.Operations[i].Return)
	}
	for i := range h.Resource {
		last = max(last, h.Resource[i].Return)
	}
	for _, e := range h.Events {
		last = max(last, e.At, e.End)
	}
	return last
}

func byCall(a, b history.Operation) int { return cmp.Compare(a.Call, b.Call) }

// never is later than any instant of a run.
const never = int64(math.MaxInt64)

// plus adds a span to an instant. Never stays never, and nothing wraps.
func plus(t, d int64) int64 {
	if t == never || d > 0 && t > never-d {
		return never
	}
	if d < 0 && t < math.MinInt64-d {
		return math.MinInt64
	}
	return t + d
}
