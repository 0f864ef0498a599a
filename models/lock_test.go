package models

import (
	"context"
	"testing"

	"fencepost.dev/history"
)

// lockCase is a told history and what the linearizability check must say of it.
type lockCase struct {
	name     string
	contract Contract
	story    string
	want     Severity // "": it passes
}

// lockCases hold a lock to each rule, from both sides where it has two. A time-to-live of 100 ms ends between 98 ms after the
// call and 102 ms after the answer.
var lockCases = []lockCase{
	{"granted, released, granted", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w2/c0 acquire k 20..21 ok B
		w2/c0 release k 30..31 ok B`, ""},
	{"two hold at once", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 20..21 ok B`, Safety},
	{"two at once on different keys", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire j 20..21 ok B`, ""},
	{"granted while the release is under way", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..20 ok A
		w2/c0 acquire k 12..13 ok B`, ""},
	{"granted before the release was called", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 5..9 ok B
		w1/c0 release k 10..20 ok A`, Safety},
	{"refused while held", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 20..21 refused B
		w1/c0 release k 30..31 ok A`, ""},
	{"refused though nobody ever held it", Contract{}, `
		w2/c0 acquire k 20..21 refused B`, Availability},
	{"refused after the release", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w2/c0 acquire k 20..21 refused B`, Availability},
	{"a refusal holds nothing", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 5..6 refused B
		w1/c0 release k 10..11 ok A
		w3/c0 acquire k 20..21 ok C`, ""},
	{"a failed acquire holds nothing", Contract{}, `
		w1/c0 acquire k 0..1 failed A
		w2/c0 acquire k 20..21 refused B`, Availability},
	{"a failed release frees nothing", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 5..6 failed A
		w2/c0 acquire k 20..21 ok B`, Safety},

	{"granted just when the time-to-live can have ended", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 97..98 ok B`, ""},
	{"granted just before it can", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 96..97.9 ok B`, Safety},
	{"refused just when the time-to-live may still run", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 103..104 refused B`, ""},
	{"refused when it can't any more", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 103.1..104 refused B`, Availability},
	{"a time-to-live of nothing never ends", Contract{}, `
		w1/c0 acquire k 0..1 ok A ttl=0
		w2/c0 acquire k 9000..9001 refused B`, ""},
	{"granted early, within the clock skew that the contract allows", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 77..78 ok B`, ""},
	{"granted earlier than that", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 77..77.9 ok B`, Safety},
	{"refused late, within the clock skew", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 123..124 refused B`, ""},
	{"refused later than that", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 123.1..124 refused B`, Availability},
	{"refused late by as much as the contract allows", Contract{LateBy: 1}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 203..204 refused B`, ""},
	{"refused later than that", Contract{LateBy: 1}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 203.1..204 refused B`, Availability},
	{"an expiry frees only its own grant", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 5..6 unknown A    # it took effect: B was granted
		w2/c0 acquire k 20..21 ok B
		w3/c0 acquire k 110..111 ok C`, Safety},

	{"extended, so refused after the first time-to-live", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..81 ok A
		w2/c0 acquire k 150..151 refused B`, ""},
	{"extended, so never granted after the first time-to-live", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..81 ok A
		w2/c0 acquire k 150..151 ok B`, Safety},
	{"extended, and granted after the second", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..81 ok A
		w2/c0 acquire k 177..178 ok B`, ""},
	{"extended, and refused after the second", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..81 ok A
		w2/c0 acquire k 184..185 refused B`, Availability},
	{"extended while the first expiry is due", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 99..100 ok A
		w2/c0 acquire k 150..151 ok B`, Safety},
	{"extended after it expired", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 150..151 ok A`, Safety},
	{"extended after it expired, where that may be", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 150..151 ok A
		w2/c0 acquire k 160..161 refused B`, ""},
	{"expired where it can be extended, and not taken: refused all the same", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 150..151 refused B`, Availability},
	{"expired where it can be extended, and taken", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 150..151 ok B`, ""},
	{"extended after another took it", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 150..151 ok B
		w1/c0 extend k 160..161 ok A`, Safety},
	{"released after another took it", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 150..151 ok B
		w1/c0 release k 160..161 ok A`, Safety},
	{"extended after it was released", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w1/c0 extend k 20..21 ok A`, Safety},
	{"extended by one who never held", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 extend k 20..21 ok B`, Safety},
	{"an extension does not hand the lock over", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 50..51 ok A
		w1/c0 extend k 120..121 ok A
		w1/c0 release k 130..131 ok A
		w2/c0 acquire k 140..141 ok B`, ""},
	{"told that it is not the holder while it is", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 20..21 refused A`, Availability},
	{"told so after it expired", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 98..99 refused A`, ""},
	{"told so after it expired, where it could be extended", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 150..151 refused A`, ""},
	{"told so while another holds", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 120..121 ok B
		w1/c0 extend k 130..131 refused A
		w1/c0 release k 140..141 refused A`, ""},

	{"released by one who never held", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 release k 20..21 ok B`, Safety},
	{"released after it expired", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 150..151 ok A`, Safety},
	{"released after it expired, where that may be", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 150..151 ok A`, ""},
	{"told at its release that it is not the holder while it is", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 20..21 refused A`, Availability},
	{"told so after it expired", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 150..151 refused A`, ""},
	{"deleted by another's release", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 120..121 ok B
		w1/c0 release k 130..131 ok A
		w3/c0 acquire k 140..141 ok C`, Safety},

	{"a slow acquire may have been granted early", Contract{}, `
		w1/c0 acquire k 0..150 ok A
		w2/c0 acquire k 151..152 ok B`, ""},
	{"or late", Contract{}, `
		w1/c0 acquire k 0..150 ok A
		w2/c0 acquire k 252..253 refused B`, ""},
	{"but it expires all the same", Contract{}, `
		w1/c0 acquire k 0..150 ok A
		w2/c0 acquire k 252.1..253 refused B`, Availability},
	{"and the expiry of a slow acquire frees no other", Contract{}, `
		w2/c0 acquire k 0..1 ok B
		w2/c0 release k 2..3 unknown B
		w1/c0 acquire k 0..150 ok A
		w3/c0 acquire k 151..152 ok C
		w4/c0 acquire k 160..161 ok D`, Safety},
	{"the expiry of an acquire that may not have been frees no other", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 200..201 ok B
		w3/c0 acquire k 210..211 ok C`, Safety},
	{"nor does it matter who holds when it is over", Contract{}, `
		w1/c0 acquire k 0..150 ok A
		w2/c0 acquire k 200..201 ok B
		w2/c0 release k 260..261 ok B`, ""},
	{"a slow extension expires too", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 90..250 ok A
		w2/c0 acquire k 352.1..353 refused B`, Availability},

	{"an unknown acquire may hold", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 60..61 refused B`, ""},
	{"or not", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 60..61 ok B`, ""},
	{"or take effect late", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 1151..1152 refused B`, ""},
	{"but not for ever: it has a bound, and an expiry", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 1152.1..1153 refused B`, Availability},
	{"a killed worker's acquire is a lock that nobody has, and expires", Contract{}, `
		w1/c0 acquire k 0..? unknown A
		! died w1 20
		w2/c0 acquire k 1200..1201 refused B`, Availability},
	{"unless nobody knows for how long a request can be under way", Contract{RequestBound: Unbounded}, `
		w1/c0 acquire k 0..? unknown A
		! died w1 20
		w2/c0 acquire k 9000..9001 refused B`, ""},
	{"an unknown acquire is no licence for two", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 60..61 ok B
		w3/c0 acquire k 70..71 ok C`, Safety},
	{"an unknown acquire that is released was granted", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w1/c0 release k 55..56 ok A
		w2/c0 acquire k 60..61 ok B`, ""},
	{"an unknown extension may hold", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..85 unknown A
		w2/c0 acquire k 150..151 refused B`, ""},
	{"or not", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..85 unknown A
		w2/c0 acquire k 150..151 ok B`, ""},
	{"an unknown extension can come late, and still expires", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..85 unknown A
		w1/c0 extend k 90..91 ok A
		w2/c0 acquire k 1500..1501 refused B`, Availability},
	{"an unknown release may free", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 5..10 unknown A
		w2/c0 acquire k 20..21 ok B`, ""},
	{"or not", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 5..10 unknown A
		w2/c0 acquire k 20..21 refused B`, ""},
	{"an unknown release of nothing frees nothing", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 release k 5..10 unknown B
		w3/c0 acquire k 20..21 ok C`, Safety},

	{"renewed by itself", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 900..901 refused B
		w1/c0 release k 950..951 ok A
		w2/c0 acquire k 960..961 ok C`, ""},
	{"renewed by itself, until it was released", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 950..951 ok A
		w2/c0 acquire k 960..961 refused B`, Availability},
	{"renewed by itself, until the loss was reported and the last renewal was over", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 lost k 500..500 ok A
		w2/c0 acquire k 1602..1603 refused B`, ""},
	{"and no longer", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 lost k 500..500 ok A
		w2/c0 acquire k 1602.1..1603 refused B`, Availability},
	{"renewed by itself, until a release that found it gone", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 499..500 unknown A
		w2/c0 acquire k 4000..4001 refused B`, Availability},
	{"renewed by itself, until its worker died", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		! died w1 500
		w2/c0 acquire k 1602..1603 refused B`, ""},
	{"and no longer", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		! died w1 500
		w2/c0 acquire k 1602.1..1603 refused B`, Availability},
	{"renewed by itself, and nothing ended it", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 90000..90001 refused B`, ""},
	{"a reported loss ends no hold that its client renews", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 lost k 50..50 ok A
		w2/c0 acquire k 60..61 ok B`, Safety},

	{"a spurious refusal, where refusals may be", Contract{Refusals: MayBeSpurious}, `
		w2/c0 acquire k 20..21 refused B`, ""},
	{"but two at once are two at once", Contract{Refusals: MayBeSpurious}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 10..11 refused B
		w2/c0 acquire k 20..21 ok C`, Safety},
	{"widened intervals hide what is not definite", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w2/c0 acquire k 8..9 ok B
		clock w2 2`, ""},
	{"and nothing that is", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w2/c0 acquire k 4..5 ok B
		clock w2 2`, Safety},
}

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

// What the engines rely on: a read-only operation changes no state, and operations of one class do the same to every state.
func TestLockReductionsAreSound(t *testing.T) {
	grants := []history.GrantID{0, history.NewGrantID(0, 0, 1), history.NewGrantID(1, 0, 1)}
	var states []lockState
	for _, g := range grants {
		for generation := range int64(2) {
			states = append(states, lockState{g, generation, false}, lockState{g, generation, true})
		}
	}
	var ops []history.Operation
	for _, kind := range []history.Kind{history.Acquire, history.Extend, history.Release, history.Expire} {
		for _, outcome := range []history.Outcome{history.OK, history.Refused, history.Unknown} {
			for _, g := range grants[1:] {
				op := history.Operation{Kind: kind, Outcome: outcome}
				op.SetGrant(g)
				if kind == history.Extend || kind == history.Expire {
					op.SetGeneration(1)
				}
				ops = append(ops, op)
			}
		}
	}
	for _, after := range []AfterExpiry{Gone, Takeable} {
		spec := lockSpec(&Input{Contract: Contract{AfterExpiry: after}, Names: &history.Names{}})
		for _, s := range states {
			for i := range ops {
				next, ok := spec.Step(s, &ops[i])
				if spec.ReadOnly(&ops[i]) && ok && next != s {
					t.Errorf("%s is read-only and turns %v into %v", spec.DescribeOperation(&ops[i]), s, next)
				}
				for j := range ops {
					if spec.Class(&ops[i]) == 0 || spec.Class(&ops[i]) != spec.Class(&ops[j]) {
						continue
					}
					if other, same := spec.Step(s, &ops[j]); other != next || same != ok {
						t.Errorf("%s and %s are of one class and differ in %v", spec.DescribeOperation(&ops[i]), spec.DescribeOperation(&ops[j]), s)
					}
				}
			}
		}
	}
}

func TestLockStepAllocatesNothing(t *testing.T) {
	in := lockCases[0].input(t)
	spec := lockSpec(in)
	op := &in.Operations[0]
	if n := testing.AllocsPerRun(100, func() {
		s, _ := spec.Step(lockState{}, op)
		spec.Step(s, op)
		spec.Class(op)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLockStep(b *testing.B) {
	in := lockCases[0].input(b)
	spec := lockSpec(in)
	for b.Loop() {
		s := lockState{}
		for i := range in.Operations {
			s, _ = spec.Step(s, &in.Operations[i])
		}
	}
}
