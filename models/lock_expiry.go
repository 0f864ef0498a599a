package models

import (
	"slices"

	"fencepost.dev/history"
)

// lockExpiry derives when grants expire. Its functions are fields so that a test can break each.
type lockExpiry struct {
	// earliest and latest bound when the time-to-live that op started, if it had its effect, can end. stop is the instant
	// from which nobody renews the grant any more.
	earliest func(op *history.Operation) int64
	latest   func(op *history.Operation, stop int64) int64
	// stops says that after op nobody renews its grant inside the subject, and from when on.
	stops func(op *history.Operation) (int64, bool)
	// died is when the process of a grant ended, or never.
	died func(op *history.Operation) int64
	// settles reports that no linearization has start's generation governing after op's return.
	settles func(op, start *history.Operation) bool
}

// newLockExpiry follows docs/semantics.md, "Expiry is an operation": [c + T(1-ρ) - g, r + T(1+ρ) + g] for what was called at
// c and answered at r.
//
// LateBy adds that many T to the end: so much longer may a refusal be honest. ClockSkew widens both ends, for a taker whose
// clock is ahead of the holder's or behind. Where the subject renews itself, the end runs from when renewing stopped: the
// release, the report of the loss or the death of the worker, whichever came first, and for as long again as a last renewal
// can be under way; if there was none of these, it does not end.
func newLockExpiry(in *Input) lockExpiry {
	g, skew := int64(in.Granularity), in.Contract.ClockSkew
	latest := func(op *history.Operation, stop int64) int64 {
		t := float64(op.TTL())
		return plus(plus(op.Return, int64(t*(1+in.Drift)+t*in.Contract.LateBy)), g+skew)
	}
	x := lockExpiry{
		earliest: func(op *history.Operation) int64 {
			return plus(op.Call, int64(float64(op.TTL())*(1-in.Drift))-g-skew)
		},
		latest:  latest,
		stops:   func(*history.Operation) (int64, bool) { return never, false },
		died:    func(*history.Operation) int64 { return never },
		settles: settles,
	}
	if in.Contract.Renews != RenewsItself {
		return x
	}
	bounds := newBounds(in)
	x.latest = func(op *history.Operation, stop int64) int64 {
		running := *op
		running.Return = max(op.Return, bounds.after(op, history.NoNode, stop))
		return latest(&running, stop)
	}
	x.stops = func(op *history.Operation) (int64, bool) {
		switch op.Kind {
		case history.Release:
			return op.Return, op.Outcome != history.Failed
		case history.Lost:
			return op.Return, true
		}
		return never, false
	}
	x.died = func(op *history.Operation) int64 {
		if at, dead := bounds.died[op.Worker]; dead {
			return at
		}
		return never
	}
	return x
}

// settles: once a release or a later extension was acknowledged, the generation that start began is over for good, provided
// that start itself can't come after it.
func settles(op, start *history.Operation) bool {
	return op.Outcome == history.OK && op.Call > start.Return
}

// startsTTL reports that a time-to-live runs from op, if it had its effect.
func startsTTL(op *history.Operation) bool {
	mayHold := op.Outcome == history.OK || op.Outcome == history.Unknown
	return (op.Kind == history.Acquire || op.Kind == history.Extend) && mayHold && op.TTL() > 0
}

// maySettle reports that op ended a time-to-live that ran, so that it may settle it.
func maySettle(op *history.Operation) bool {
	return (op.Kind == history.Release || op.Kind == history.Extend) && op.Outcome == history.OK
}

// grantStory is what a partition tells of one grant.
type grantStory struct {
	starts   []*history.Operation // its acquire, and extensions that did or may have succeeded
	settlers []*history.Operation // its acknowledged releases and extensions
	stop     int64
}

// derive gives the expiries of one partition's operations.
//
// An expiry must not come before what it belongs to in a linearization, or that grant would never expire. Mostly the
// intervals see to it. Where they overlap (a client paused in its acquire, an unknown acquire with a late bound) it is told
// as two operations: one that is optional and can only be placed where it frees the lock, and one at the end of the interval,
// when all is answered, which can only be placed where it has.
//
// An expiry that comes when its generation is definitely over does nothing in any linearization and is left out: a lock that
// is held for a hundredth of its time-to-live would have a hundred of them in flight.
func (x *lockExpiry) derive(ops []history.Operation) []history.Operation {
	grants := map[history.GrantID]*grantStory{}
	var order []*grantStory
	for i := range ops {
		op := &ops[i]
		g := grants[op.Grant()]
		if g == nil {
			g = &grantStory{stop: x.died(op)}
			grants[op.Grant()] = g
			order = append(order, g)
		}
		if startsTTL(op) {
			g.starts = append(g.starts, op)
		}
		if maySettle(op) {
			g.settlers = append(g.settlers, op)
		}
		if at, ok := x.stops(op); ok {
			g.stop = min(g.stop, at)
		}
	}
	var derived []history.Operation
	for _, g := range order {
		for _, start := range g.starts {
			derived = x.expiriesOf(derived, g, start)
		}
	}
	slices.SortStableFunc(derived, byCall)
	return derived
}

func (x *lockExpiry) expiriesOf(derived []history.Operation, g *grantStory, start *history.Operation) []history.Operation {
	expire := history.Operation{
		Call: x.earliest(start), Return: x.latest(start, g.stop),
		Key: start.Key, Worker: start.Worker, Client: start.Client, Node: history.NoNode,
		Kind: history.Expire, Outcome: history.OK, Commit: history.Completed, Flags: history.Synthetic,
	}
	expire.SetGrant(start.Grant())
	expire.SetTTL(start.TTL())
	expire.SetGeneration(start.Generation())
	for _, op := range g.settlers {
		if op != start && x.settles(op, start) && op.Return < expire.Call {
			return derived
		}
	}
	if start.Return < expire.Call {
		return append(derived, expire)
	}
	lapse, over := expire, expire
	lapse.Outcome, lapse.Flags = history.Unknown, history.Synthetic|history.Optional
	derived = append(derived, lapse)
	if over.Return != never {
		over.Outcome, over.Call = history.Refused, over.Return
		derived = append(derived, over)
	}
	return derived
}
