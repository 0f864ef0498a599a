package models

import (
	"context"
	"testing"

	"fencepost.dev/history"
)

func (c lockCase) input(t testing.TB) *Input {
	return prepared(t, c.story, PrepareOptions{Contract: c.contract})
}

// lockObjectOf is lockObject with rules that a test chose.
func lockObjectOf(in *Input, rules lockRules, expiry lockExpiry) object[lockState] {
	o := lockObject(in)
	o.spec = lockSpecOf(rules, expiry)
	return o
}

func judged(in *Input, o object[lockState]) Severity {
	r := linearize(context.Background(), in, o)
	if r.Verdict == Inconclusive {
		return Severity("inconclusive: " + r.Reason)
	}
	return r.worst()
}

func TestLockRules(t *testing.T) {
	for _, c := range lockCases {
		t.Run(c.name, func(t *testing.T) {
			in := c.input(t)
			if got := judged(in, lockObject(in)); got != c.want {
				t.Errorf("severity %q, want %q", got, c.want)
			}
		})
	}
}

// Every rule of Step and of Derive has mutants, and each makes some told history come out differently.
func TestLockMutants(t *testing.T) {
	type rules = lockRules
	type expiry = lockExpiry
	free := lockState{}
	always := func(s lockState, op *history.Operation) (lockState, bool) { return s, true }
	mutants := []struct {
		name   string
		mutate func(in *Input, r *rules, x *expiry)
	}{
		{"granted: though held", func(_ *Input, r *rules, _ *expiry) {
			r.granted = func(s lockState, op *history.Operation) (lockState, bool) { return lockState{grant: op.Grant()}, true }
		}},
		{"granted: only if never expired", func(_ *Input, r *rules, _ *expiry) {
			r.granted = func(s lockState, op *history.Operation) (lockState, bool) {
				return lockState{grant: op.Grant()}, s.grant == 0
			}
		}},
		{"granted: holds nothing", func(_ *Input, r *rules, _ *expiry) {
			r.granted = func(s lockState, op *history.Operation) (lockState, bool) { return s, !s.held() }
		}},
		{"busy: though free", func(_ *Input, r *rules, _ *expiry) { r.busy = always }},
		{"busy: though expired", func(_ *Input, r *rules, _ *expiry) {
			r.busy = func(s lockState, op *history.Operation) (lockState, bool) { return s, s.grant != 0 }
		}},
		{"busy: takes the lock", func(_ *Input, r *rules, _ *expiry) {
			r.busy = func(s lockState, op *history.Operation) (lockState, bool) {
				return lockState{grant: op.Grant()}, s.held()
			}
		}},
		{"extended: by anybody", func(_ *Input, r *rules, _ *expiry) {
			r.extended = func(s lockState, op *history.Operation) (lockState, bool) {
				return lockState{grant: op.Grant(), generation: op.Generation()}, true
			}
		}},
		{"extended: never after expiry", func(_ *Input, r *rules, _ *expiry) {
			was := r.extended
			r.extended = func(s lockState, op *history.Operation) (lockState, bool) {
				next, ok := was(s, op)
				return next, ok && s.held()
			}
		}},
		{"extended: no new generation", func(_ *Input, r *rules, _ *expiry) {
			r.extended = func(s lockState, op *history.Operation) (lockState, bool) { return s, s.grant == op.Grant() }
		}},
		{"extended: does not revive", func(_ *Input, r *rules, _ *expiry) {
			was := r.extended
			r.extended = func(s lockState, op *history.Operation) (lockState, bool) {
				next, ok := was(s, op)
				next.expired = s.expired
				return next, ok
			}
		}},
		{"not extended: though the holder", func(_ *Input, r *rules, _ *expiry) { r.notExtended = always }},
		{"not extended: never after expiry", func(_ *Input, r *rules, _ *expiry) {
			r.notExtended = func(s lockState, op *history.Operation) (lockState, bool) { return s, s.grant != op.Grant() }
		}},
		{"not extended: only if free", func(_ *Input, r *rules, _ *expiry) {
			r.notExtended = func(s lockState, op *history.Operation) (lockState, bool) { return s, !s.held() }
		}},
		{"released: by anybody", func(_ *Input, r *rules, _ *expiry) {
			r.released = func(s lockState, op *history.Operation) (lockState, bool) { return free, true }
		}},
		{"released: never after expiry", func(_ *Input, r *rules, _ *expiry) {
			r.released = func(s lockState, op *history.Operation) (lockState, bool) {
				return free, s.held() && s.grant == op.Grant()
			}
		}},
		{"released: frees nothing", func(_ *Input, r *rules, _ *expiry) {
			r.released = func(s lockState, op *history.Operation) (lockState, bool) { return s, s.grant == op.Grant() }
		}},
		{"not released: though the holder", func(_ *Input, r *rules, _ *expiry) { r.notReleased = always }},
		{"not released: only if free", func(_ *Input, r *rules, _ *expiry) {
			r.notReleased = func(s lockState, op *history.Operation) (lockState, bool) { return s, !s.held() }
		}},
		{"expires: frees nothing", func(_ *Input, r *rules, _ *expiry) { r.expires = always }},
		{"expires: frees any grant", func(_ *Input, r *rules, _ *expiry) {
			r.expires = func(s lockState, op *history.Operation) (lockState, bool) { return free, true }
		}},
		{"expires: whatever the generation", func(_ *Input, r *rules, _ *expiry) {
			was := r.expires
			r.expires = func(s lockState, op *history.Operation) (lockState, bool) {
				if s.grant == op.Grant() {
					return free, true
				}
				return was(s, op)
			}
		}},
		{"expires: for good, whatever the contract", func(in *Input, r *rules, _ *expiry) {
			c := in.Contract
			c.AfterExpiry = Gone
			*r = newLockRules(c)
		}},
		{"expires: takeable, whatever the contract", func(in *Input, r *rules, _ *expiry) {
			c := in.Contract
			c.AfterExpiry = Takeable
			*r = newLockRules(c)
		}},
		{"lapses: frees any grant", func(_ *Input, r *rules, _ *expiry) {
			r.lapses = func(s lockState, op *history.Operation) (lockState, bool) { return free, true }
		}},
		{"lapses: never", func(_ *Input, r *rules, _ *expiry) {
			r.lapses = func(s lockState, op *history.Operation) (lockState, bool) { return s, false }
		}},
		{"freed: says nothing", func(_ *Input, r *rules, _ *expiry) { r.freed = always }},
		{"freed: of any grant", func(_ *Input, r *rules, _ *expiry) {
			r.freed = func(s lockState, op *history.Operation) (lockState, bool) { return s, !s.held() }
		}},
		{"earliest: from the answer", func(_ *Input, _ *rules, x *expiry) {
			was := x.earliest
			x.earliest = func(op *history.Operation) int64 { return was(op) + op.Return - op.Call }
		}},
		{"earliest: any time", func(_ *Input, _ *rules, x *expiry) {
			x.earliest = func(op *history.Operation) int64 { return op.Call }
		}},
		{"earliest: no drift", func(in *Input, _ *rules, x *expiry) {
			flat := *in
			flat.Drift = 0
			x.earliest = newLockExpiry(&flat).earliest
		}},
		{"earliest: no granularity", func(in *Input, _ *rules, x *expiry) {
			flat := *in
			flat.Granularity = 0
			x.earliest = newLockExpiry(&flat).earliest
		}},
		{"earliest: no skew", func(in *Input, _ *rules, x *expiry) {
			flat := *in
			flat.Contract.ClockSkew = 0
			x.earliest = newLockExpiry(&flat).earliest
		}},
		{"latest: never", func(in *Input, _ *rules, x *expiry) {
			x.latest = func(*history.Operation, int64) int64 { return never }
		}},
		{"latest: from the call", func(_ *Input, _ *rules, x *expiry) {
			was := x.latest
			x.latest = func(op *history.Operation, stop int64) int64 { return was(op, stop) - (op.Return - op.Call) }
		}},
		{"latest: no drift", func(in *Input, _ *rules, x *expiry) {
			flat := *in
			flat.Drift = 0
			x.latest = newLockExpiry(&flat).latest
		}},
		{"latest: no granularity", func(in *Input, _ *rules, x *expiry) {
			flat := *in
			flat.Granularity = 0
			x.latest = newLockExpiry(&flat).latest
		}},
		{"latest: no skew", func(in *Input, _ *rules, x *expiry) {
			flat := *in
			flat.Contract.ClockSkew = 0
			x.latest = newLockExpiry(&flat).latest
		}},
		{"latest: not late", func(in *Input, _ *rules, x *expiry) {
			flat := *in
			flat.Contract.LateBy = 0
			x.latest = newLockExpiry(&flat).latest
		}},
		{"latest: renewed by nobody", func(in *Input, _ *rules, x *expiry) {
			flat := *in
			flat.Contract.Renews = RenewsClient
			*x = newLockExpiry(&flat)
		}},
		{"latest: no last renewal under way", func(in *Input, _ *rules, x *expiry) {
			flat := *in
			flat.Contract.RequestBound = 1
			*x = newLockExpiry(&flat)
		}},
		{"stops: never", func(_ *Input, _ *rules, x *expiry) {
			x.stops = func(*history.Operation) (int64, bool) { return never, false }
		}},
		{"stops: only at a loss", func(_ *Input, _ *rules, x *expiry) {
			was := x.stops
			x.stops = func(op *history.Operation) (int64, bool) {
				at, ok := was(op)
				return at, ok && op.Kind != history.Release
			}
		}},
		{"stops: only at a release", func(_ *Input, _ *rules, x *expiry) {
			was := x.stops
			x.stops = func(op *history.Operation) (int64, bool) {
				at, ok := was(op)
				return at, ok && op.Kind != history.Lost
			}
		}},
		{"died: nobody", func(_ *Input, _ *rules, x *expiry) {
			x.died = func(*history.Operation) int64 { return never }
		}},
		{"settles: whatever is under way", func(_ *Input, _ *rules, x *expiry) {
			x.settles = func(op, start *history.Operation) bool { return op.Outcome == history.OK }
		}},
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			for _, c := range lockCases {
				in := c.input(t)
				rules, expiry := newLockRules(in.Contract), newLockExpiry(in)
				m.mutate(in, &rules, &expiry)
				if judged(in, lockObjectOf(in, rules, expiry)) != c.want {
					return // killed
				}
			}
			t.Error("no told history tells it from the rule")
		})
	}
}
