package models

import (
	"context"
	"strings"
	"testing"

	"fencepost.dev/history"
)

// invariantCase is a told history and how many findings a check must have in it.
type invariantCase struct {
	name     string
	contract Contract
	story    string
	want     int
}

var exclusionCases = []invariantCase{
	{"one after the other", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w2/c0 acquire k 20..21 ok B`, 0},
	{"both certain", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 20..21 ok B`, 1},
	{"both certain, of different locks", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire j 20..21 ok B`, 0},
	{"a client is certain from the answer on", Contract{}, `
		w1/c0 acquire k 0..15 ok A
		w1/c0 release k 16..17 ok A
		w2/c0 acquire k 8..9 ok B
		w2/c0 release k 14..15 ok B`, 0},
	{"and until it calls release", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..40 ok A
		w2/c0 acquire k 20..21 ok B`, 0},
	{"whatever comes of the release", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..12 failed A
		w2/c0 acquire k 20..21 ok B`, 0},
	{"and until it is told of the loss", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 lost k 10..10 ok A
		w2/c0 acquire k 20..21 ok B`, 0},
	{"not before", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 lost k 30..30 ok A
		w2/c0 acquire k 20..21 ok B`, 1},
	{"or told that it is not the holder", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 10..11 refused A
		w2/c0 acquire k 20..21 ok B`, 0},
	{"but not by an extension of which it knows nothing", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 10..11 unknown A
		w2/c0 acquire k 20..21 ok B`, 1},
	{"and while its time-to-live lasts", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 97..98 ok B`, 0},
	{"but to its end", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 96..97.9 ok B`, 1},
	{"counted from the call", Contract{}, `
		w1/c0 acquire k 0..50 ok A
		w2/c0 acquire k 97..98 ok B`, 0},
	{"less the skew bound", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 77..78 ok B`, 0},
	{"only that", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 76..77.9 ok B`, 1},
	{"where the subject vouches for less, for that", Contract{}, `
		w1/c0 acquire k 0..1 ok A validity=60
		w2/c0 acquire k 59..60 ok B`, 0},
	{"and for all of that", Contract{}, `
		w1/c0 acquire k 0..1 ok A validity=60
		w2/c0 acquire k 59..59.9 ok B`, 1},
	{"an acknowledged extension makes it certain for longer", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..81 ok A
		w2/c0 acquire k 150..151 ok B`, 1},
	{"counted from the extension's call", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 50..95 ok A
		w2/c0 acquire k 147..148 ok B`, 0},
	{"an extension acknowledged too late leaves a gap", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 90..150 ok A
		w2/c0 acquire k 110..111 ok B
		w2/c0 release k 120..121 ok B`, 0},
	{"and certainty after it", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 90..150 ok A
		w2/c0 acquire k 160..161 ok B`, 1},
	{"a client that never saw its grant is certain of nothing", Contract{}, `
		w1/c0 acquire k 0..10 unknown A
		w2/c0 acquire k 20..21 ok B`, 0},
	{"one client, two grants", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 acquire k 20..21 ok B`, 0},
	{"one client with two grants against another", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 5..6 ok B ttl=30
		w1/c0 acquire k 10..11 ok C`, 2},
	{"two clients of one worker", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c1 acquire k 20..21 ok B`, 1},
	{"the dead are certain of nothing", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c1 acquire k 5..6 refused C
		! died w1 15
		w1.2/c0 acquire k 20..21 ok B`, 0},
	{"but as long as they lived", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c1 acquire k 24..25 refused C
		! died w1 30
		w1.2/c0 acquire k 20..21 ok B`, 1},
	{"a long hold is not forgotten behind a short one", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 5..6 ok B ttl=10
		w3/c0 acquire k 50..51 ok C`, 2},
	{"the wider clock errors make it, the less is definite", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 23..24 ok A
		w2/c0 acquire k 20..21 ok B
		clock w2 2`, 0},
	{"an answer that told of the loss came no later than it did", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 10..20 refused A
		w2/c0 acquire k 20..21 ok B
		clock w1 5`, 0},
}

var tokenCases = []invariantCase{
	{"rising", Contract{Tokens: true}, `
		w1/c0 acquire k 0..1 ok A token=1
		w2/c0 acquire k 10..11 ok B token=2
		w3/c0 acquire k 20..21 ok C token=7`, 0},
	{"falling", Contract{Tokens: true}, `
		w1/c0 acquire k 0..1 ok A token=2
		w2/c0 acquire k 10..11 ok B token=1`, 1},
	{"falling below one that is not the last", Contract{Tokens: true}, `
		w1/c0 acquire k 0..1 ok A token=5
		w2/c0 acquire k 10..11 ok B token=2
		w3/c0 acquire k 20..21 ok C token=3`, 2},
	{"repeated", Contract{Tokens: true}, `
		w1/c0 acquire k 0..1 ok A token=1
		w2/c0 acquire k 10..11 ok B token=1`, 1},
	{"repeated by grants that overlap", Contract{Tokens: true}, `
		w1/c0 acquire k 0..11 ok A token=1
		w2/c0 acquire k 10..12 ok B token=1`, 1},
	{"on different keys", Contract{Tokens: true}, `
		w1/c0 acquire k 0..1 ok A token=1
		w2/c0 acquire j 10..11 ok B token=1`, 0},
	{"falling, of grants whose order is not known", Contract{Tokens: true}, `
		w1/c0 acquire k 0..11 ok A token=2
		w2/c0 acquire k 10..12 ok B token=1`, 0},
	{"falling, of grants whose order is not known after widening", Contract{Tokens: true}, `
		w1/c0 acquire k 0..1 ok A token=2
		w2/c0 acquire k 2..3 ok B token=1
		clock w1 2`, 0},
	{"a token that is not there", Contract{Tokens: true}, `
		w1/c0 acquire k 0..1 ok A token=1
		w2/c0 acquire k 10..11 ok B`, 1},
	{"the first of which is not there", Contract{Tokens: true}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 10..11 ok B token=1`, 1},
	{"of a grant that nobody saw", Contract{Tokens: true}, `
		w1/c0 acquire k 0..1 unknown A
		w2/c0 acquire k 10..11 ok B token=1
		w2/c0 acquire k 20..21 refused C`, 0},
}

var fencingCases = []invariantCase{
	{"in order", Contract{}, `
		= w1/c0 write k 10 ok A token=1
		= w2/c0 write k 20 ok B token=2`, 0},
	{"a lower token after a higher", Contract{}, `
		= w2/c0 write k 10 ok B token=2
		= w1/c0 write k 20 ok A token=1`, 1},
	{"refused", Contract{}, `
		= w2/c0 write k 10 ok B token=2
		= w1/c0 write k 20 refused A token=1`, 0},
	{"a read raises the fence too", Contract{}, `
		= w2/c0 read k 10 ok B token=2
		= w1/c0 write k 20 ok A token=1`, 1},
	{"and is refused by it", Contract{}, `
		= w2/c0 write k 10 ok B token=2
		= w1/c0 read k 20 ok A token=1`, 1},
	{"a token that was refused was seen all the same", Contract{}, `
		= w3/c0 write k 5 ok C token=2
		= w2/c0 write k 10 refused B token=3
		= w1/c0 write k 20 ok C token=2`, 1},
	{"lower than one that is not the last", Contract{}, `
		= w3/c0 write k 5 ok C token=3
		= w1/c0 write k 10 refused A token=1
		= w2/c0 write k 20 ok B token=2`, 1},
	{"one token, two grants", Contract{}, `
		= w1/c0 write k 10 ok A token=1
		= w2/c0 write k 20 ok B token=1`, 1},
	{"one grant, many attempts", Contract{}, `
		= w1/c0 read k 10 ok A token=1
		= w1/c0 write k 20 ok A token=1`, 0},
	{"on different keys", Contract{}, `
		= w2/c0 write k 10 ok B token=2
		= w1/c0 write j 20 ok A token=1`, 0},
	{"without tokens, after a later grant was seen", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 105..106 ok B
		= w2/c0 read k 110 ok B
		= w1/c0 write k 120 ok A`, 1},
	{"without tokens, before", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 105..106 ok B
		= w1/c0 write k 108 ok A
		= w2/c0 read k 110 ok B`, 0},
	{"without tokens, grants whose order is not known", Contract{}, `
		w1/c0 acquire k 0..106 ok A
		w2/c0 acquire k 105..107 ok B
		= w2/c0 read k 110 ok B
		= w1/c0 write k 120 ok A`, 0},
	{"without tokens, a later grant that is not the last seen", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 105..106 ok B
		w3/c0 acquire k 0..205 ok C
		= w2/c0 read k 110 ok B
		= w3/c0 read k 210 ok C
		= w1/c0 write k 220 ok A`, 1},
	{"under no grant", Contract{}, `
		= w2/c0 write k 10 ok B token=2
		= w1/c0 read k 20 ok`, 0},
}

var lostUpdateCases = []invariantCase{
	{"one after the other", Contract{}, `
		= w1/c0 read k 1 ok A base=0
		= w1/c0 write k 2 ok A base=0
		= w2/c0 read k 3 ok B base=1
		= w2/c0 write k 4 ok B base=1`, 0},
	{"overtaken", Contract{}, `
		= w1/c0 read k 1 ok A base=0
		= w2/c0 read k 2 ok B base=0
		= w2/c0 write k 3 ok B base=0
		= w1/c0 write k 4 ok A base=0`, 1},
	{"overtaken, and refused", Contract{}, `
		= w1/c0 read k 1 ok A base=0
		= w2/c0 read k 2 ok B base=0
		= w2/c0 write k 3 ok B base=0
		= w1/c0 write k 4 refused A base=0
		= w2/c0 write k 5 ok B base=1`, 0},
	{"on different keys", Contract{}, `
		= w1/c0 write k 1 ok A base=0
		= w2/c0 write j 2 ok B base=0`, 0},
	{"a resource that was not new", Contract{}, `
		= w1/c0 read k 1 ok A base=7
		= w1/c0 write k 2 ok A base=7
		= w2/c0 write k 3 ok B base=8`, 0},
	{"a refused read tells no version", Contract{}, `
		= w1/c0 write k 1 ok A base=0
		= w2/c0 read k 2 refused B base=0
		= w1/c0 write k 3 ok A base=0`, 1},
	{"one that counts on what is not there yet", Contract{}, `
		= w1/c0 write k 1 ok A base=1`, 1},
}

// invariant is a check with its cases and its mutants: each is the check with one rule broken.
type invariant struct {
	check   Check
	cases   []invariantCase
	mutants map[string]func(in *Input) Report
}

func exclusionMutant(mutate func(in *Input, c *certainty)) func(*Input) Report {
	return func(in *Input) Report {
		c := newCertainty(in)
		mutate(in, &c)
		return excludeMutually(context.Background(), in, c, overlap)
	}
}

func tokenMutant(mutate func(*tokenRules)) func(*Input) Report {
	return func(in *Input) Report {
		r := newTokenRules()
		mutate(&r)
		return orderTokens(context.Background(), in, r)
	}
}

func fenceMutant(mutate func(*fenceRules)) func(*Input) Report {
	return func(in *Input) Report {
		r := newFenceRules()
		mutate(&r)
		return fence(context.Background(), in, r)
	}
}

func versionMutant(mutate func(*versionRules)) func(*Input) Report {
	return func(in *Input) Report {
		r := newVersionRules()
		mutate(&r)
		return loseUpdates(context.Background(), in, r)
	}
}

// unlessKind is ends without one of its reasons.
func unlessKind(kind history.Kind) func(*Input, *certainty) {
	return func(_ *Input, c *certainty) {
		was := c.ends
		c.ends = func(op *history.Operation) (int64, bool) {
			at, ok := was(op)
			return at, ok && op.Kind != kind
		}
	}
}

var invariants = []invariant{
	{mutualExclusion, exclusionCases, map[string]func(*Input) Report{
		"overlap: never": func(in *Input) Report {
			return excludeMutually(context.Background(), in, newCertainty(in), func(a, b stretch) bool { return false })
		},
		"overlap: when they touch": func(in *Input) Report {
			return excludeMutually(context.Background(), in, newCertainty(in), func(a, b stretch) bool { return b.from <= a.to })
		},
		"begins at the call": exclusionMutant(func(_ *Input, c *certainty) {
			c.begins = func(op *history.Operation) int64 { return op.Call }
		}),
		"vouched: for ever": exclusionMutant(func(_ *Input, c *certainty) {
			c.vouched = func(*history.Operation) int64 { return never }
		}),
		"vouched: from the answer": exclusionMutant(func(_ *Input, c *certainty) {
			was := c.vouched
			c.vouched = func(op *history.Operation) int64 { return was(op) + op.Return - op.Call }
		}),
		"vouched: without drift": exclusionMutant(func(in *Input, c *certainty) {
			flat := *in
			flat.Drift = 0
			*c = newCertainty(&flat)
		}),
		"vouched: without granularity": exclusionMutant(func(in *Input, c *certainty) {
			flat := *in
			flat.Granularity = 0
			*c = newCertainty(&flat)
		}),
		"vouched: without skew": exclusionMutant(func(in *Input, c *certainty) {
			flat := *in
			flat.Contract.ClockSkew = 0
			*c = newCertainty(&flat)
		}),
		"vouched: whatever the subject says": exclusionMutant(func(_ *Input, c *certainty) {
			was := c.vouched
			c.vouched = func(op *history.Operation) int64 {
				plain := *op
				if op.Kind == history.Acquire {
					plain.D = 0
				}
				return was(&plain)
			}
		}),
		"vouched: not by extensions": exclusionMutant(func(_ *Input, c *certainty) {
			was := c.vouched
			c.vouched = func(op *history.Operation) int64 {
				if op.Kind == history.Extend {
					return op.Call
				}
				return was(op)
			}
		}),
		"ends: not at the release": exclusionMutant(unlessKind(history.Release)),
		"ends: not at the loss":    exclusionMutant(unlessKind(history.Lost)),
		"ends: not at the refusal": exclusionMutant(unlessKind(history.Extend)),
		"ends: at any extension": exclusionMutant(func(_ *Input, c *certainty) {
			was := c.ends
			c.ends = func(op *history.Operation) (int64, bool) {
				if op.Kind == history.Extend {
					return op.Return, true
				}
				return was(op)
			}
		}),
		"ends: when the release is answered": exclusionMutant(func(_ *Input, c *certainty) {
			was := c.ends
			c.ends = func(op *history.Operation) (int64, bool) {
				at, ok := was(op)
				return max(at, op.Return), ok
			}
		}),
		"alive: for ever": exclusionMutant(func(_ *Input, c *certainty) {
			c.alive = func(*history.Operation) int64 { return never }
		}),
		"alive: never": exclusionMutant(func(_ *Input, c *certainty) {
			c.alive = func(op *history.Operation) int64 { return op.Call }
		}),
	}},
	{tokenOrder, tokenCases, map[string]func(*Input) Report{
		"missing: allowed": tokenMutant(func(r *tokenRules) { r.missing = func(*history.Operation) bool { return false } }),
		"same: allowed":    tokenMutant(func(r *tokenRules) { r.same = func(a, b *history.Operation) bool { return false } }),
		"rises: or falls":  tokenMutant(func(r *tokenRules) { r.rises = func(a, b *history.Operation) bool { return true } }),
		"before: by the call": tokenMutant(func(r *tokenRules) {
			r.before = func(a, b *history.Operation) bool { return a.Call < b.Call }
		}),
		"before: never": tokenMutant(func(r *tokenRules) { r.before = func(a, b *history.Operation) bool { return false } }),
	}},
	{fencing, fencingCases, map[string]func(*Input) Report{
		"lower: allowed":    fenceMutant(func(r *fenceRules) { r.lower = func(a, b *history.Operation) bool { return false } }),
		"lower: or equal":   fenceMutant(func(r *fenceRules) { r.lower = func(a, b *history.Operation) bool { return a.Token() <= b.Token() } }),
		"shared: allowed":   fenceMutant(func(r *fenceRules) { r.shared = func(a, b *history.Operation) bool { return false } }),
		"shared: by itself": fenceMutant(func(r *fenceRules) { r.shared = func(a, b *history.Operation) bool { return true } }),
		"outlived: allowed": fenceMutant(func(r *fenceRules) { r.outlived = func(a, b *history.Operation) bool { return false } }),
		"outlived: by the call": fenceMutant(func(r *fenceRules) {
			r.outlived = func(a, b *history.Operation) bool { return a.Call < b.Call }
		}),
	}},
	{lostUpdate, lostUpdateCases, map[string]func(*Input) Report{
		"stale: allowed": versionMutant(func(r *versionRules) { r.stale = func(*history.Operation, int64) bool { return false } }),
		"stale: only if older": versionMutant(func(r *versionRules) {
			r.stale = func(op *history.Operation, current int64) bool { return op.Version() < current }
		}),
		"next: whatever the outcome": versionMutant(func(r *versionRules) {
			was := r.next
			r.next = func(op *history.Operation, current int64) int64 {
				ok := *op
				ok.Outcome = history.OK
				return was(&ok, current)
			}
		}),
		"next: whatever was read": versionMutant(func(r *versionRules) {
			was := r.next
			r.next = func(op *history.Operation, current int64) int64 {
				if op.Kind == history.Read {
					return current
				}
				return was(op, current)
			}
		}),
		"next: the same": versionMutant(func(r *versionRules) {
			r.next = func(_ *history.Operation, current int64) int64 { return current }
		}),
	}},
}

func found(r Report) int { return len(r.Findings) + r.More }

func TestInvariants(t *testing.T) {
	for _, inv := range invariants {
		for _, c := range inv.cases {
			t.Run(inv.check.Name+"/"+c.name, func(t *testing.T) {
				in := prepared(t, c.story, PrepareOptions{Contract: c.contract})
				r := inv.check.Run(context.Background(), in)
				if found(r) != c.want {
					t.Errorf("%d findings, want %d: %+v", found(r), c.want, r.Findings)
				}
				if (r.Verdict == Violation) != (c.want > 0) || r.Decided == 0 {
					t.Errorf("verdict %s of %d operations with %d findings", r.Verdict, r.Decided, c.want)
				}
				for _, f := range r.Findings {
					if f.Summary == "" || f.Key == "" || len(f.Operations) == 0 || len(f.Notes) != len(f.Operations) {
						t.Errorf("an incomplete finding: %+v", f)
					}
					if strings.Contains(f.Summary, "?") || strings.Contains(f.Summary, "%!") {
						t.Errorf("summary %q", f.Summary)
					}
				}
			})
		}
	}
}

func TestInvariantMutants(t *testing.T) {
	for _, inv := range invariants {
		for name, mutant := range inv.mutants {
			t.Run(inv.check.Name+"/"+name, func(t *testing.T) {
				for _, c := range inv.cases {
					if found(mutant(prepared(t, c.story, PrepareOptions{Contract: c.contract}))) != c.want {
						return // killed
					}
				}
				t.Error("no told history tells it from the rule")
			})
		}
	}
}

func TestChecksStopWithTheirContext(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	in := prepared(t, `
		w1/c0 acquire k 0..1 ok A token=1
		= w1/c0 write k 10 ok A token=1`, PrepareOptions{Contract: Contract{Tokens: true}})
	for _, check := range All() {
		if r := check.Run(gone, in); r.Verdict != Inconclusive || r.Reason == "" {
			t.Errorf("%s with a context that ended: %s, %q", check.Name, r.Verdict, r.Reason)
		}
	}
}
