package models

import (
	"fmt"
	"math"
	"time"

	"fencepost.dev/history"
)

// bucket is a token bucket: capacity tokens, refilled at rate a second, by a clock that may be off by drift (ρ).
type bucket struct {
	capacity, rate float64
	drift          float64
}

// bucketState is what is known of a bucket. Which instant the last operation took effect at isn't known, only that it was not
// before t. At an instant u from then on the bucket would be full, if nobody took anything, between low - ρu and high + ρu:
// its clock may have drifted either way. Kept so, the two do not change as time goes by, and states that were reached by
// different ways compare. Neither is less than u, since a bucket that is full is full.
//
// It over-approximates what is possible, so it never accuses falsely.
type bucketState struct {
	t, low, high int64
}

// below and above round to nanoseconds, so that the range between them only grows. What is beyond all instants is never, and
// as a limit from above says nothing.
func below(ns float64) int64 { return nanoseconds(math.Floor(ns)) }
func above(ns float64) int64 { return nanoseconds(math.Ceil(ns)) }

func nanoseconds(ns float64) int64 {
	switch {
	case ns >= float64(never):
		return never
	case ns <= -float64(never):
		return -never
	}
	return int64(ns)
}

// from is the same knowledge for operations that take effect at u or later.
func (b *bucket) from(s bucketState, u int64) bucketState {
	if u <= s.t {
		return s
	}
	return bucketState{u, max(s.low, below(float64(u)*(1+b.drift))), max(s.high, above(float64(u)*(1-b.drift)))}
}

// take is the state after somebody asked for cost tokens at an instant from call to ret and was allowed or rejected.
//
// With F the instant at which the bucket would be full, it is allowed at t if max(0, F-t) ≤ (C-cost)/r, and then F becomes
// max(F, t) + cost/r.
func (b *bucket) take(s bucketState, call, ret int64, cost float64, allowed bool) (bucketState, bool) {
	s = b.from(s, call)
	if s.t > ret {
		return s, false
	}
	spare := (b.capacity - cost) / b.rate * 1e9
	if spare < 0 { // more than it ever holds
		return s, !allowed
	}
	slow, fast := 1-b.drift, 1+b.drift
	if !allowed {
		// F > t + spare for some t: the least t claims least.
		if s.high != never && float64(s.high) < float64(s.t)*slow+spare {
			return s, false
		}
		s.low = max(s.low, below(float64(s.t)*fast+spare))
		return s, true
	}
	// F ≤ t + spare for some t: the greatest t claims least.
	end := float64(ret)
	if float64(s.low) > end*fast+spare {
		return s, false
	}
	s.high = min(s.high, above(end*slow+spare))
	// So t is not before what the least F allows.
	s = b.from(s, min(ret, below((float64(s.low)-spare)/fast)))
	took := cost / b.rate * 1e9
	s.low = plus(s.low, below(took))
	if s.high = plus(max(s.high, above(end*slow)), above(took)); above(took) == never {
		s.high = never
	}
	return s, true
}

// dominates: all that y may be, x may be too.
func (b *bucket) dominates(x, y bucketState) bool {
	if x.t > y.t {
		return false
	}
	x = b.from(x, y.t)
	return x.low <= y.low && x.high >= y.high
}

// at is a limit of F as of u; of the lower one, u is negative.
func (b *bucket) at(limit, u int64) int64 { return limit + int64(b.drift*float64(u)) }

// longAgo is before every run, and still exact in a float64.
const longAgo = -1 << 52

// bucketSpec is the specification of a bucket; cost is what an operation asked for. A refused operation was rejected; an
// unknown one took its tokens, if it is placed.
func bucketSpec(b bucket, cost func(*history.Operation) float64) Spec[bucketState] {
	return Spec[bucketState]{
		Name: "limiter",
		Init: func() bucketState {
			return bucketState{t: longAgo, low: longAgo, high: longAgo}
		},
		Step: func(s bucketState, op *history.Operation) (bucketState, bool) {
			return b.take(s, op.Call, op.Return, cost(op), op.Outcome != history.Refused)
		},
		ReadOnly: func(op *history.Operation) bool { return op.Outcome == history.Refused },
		Class: func(op *history.Operation) uint64 {
			class := math.Float64bits(cost(op)) << 1
			if op.Outcome == history.Refused {
				class |= 1
			}
			return class + 1 // 0 is unlike any other
		},
		Relax:     func(op *history.Operation) bool { return op.Outcome == history.Refused },
		Timed:     true,
		Dominates: b.dominates,
		DescribeState: func(s bucketState) string {
			return fmt.Sprintf("full between %s and %s, as of %s", time.Duration(b.at(s.low, -s.t)), time.Duration(b.at(s.high, s.t)), time.Duration(s.t))
		},
		DescribeOperation: func(op *history.Operation) string {
			return fmt.Sprintf("take %v → %s", cost(op), op.Outcome)
		},
	}
}
