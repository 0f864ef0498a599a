package models

import (
	"context"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fencepost.dev/history"
)

// A toy object: a counter. Its operations are add (A: by how much) and get (A: what was read).
const (
	toyAdd history.Kind = 240 + iota
	toyGet
)

func counterSpec() Spec[int64] {
	return Spec[int64]{
		Name: "counter",
		Init: func() int64 { return 0 },
		Step: func(s int64, op *history.Operation) (int64, bool) {
			if op.Kind == toyAdd {
				return s + op.A, true
			}
			return s, s == op.A
		},
		ReadOnly: func(op *history.Operation) bool { return op.Kind == toyGet },
		Class: func(op *history.Operation) uint64 {
			if op.Kind == toyAdd {
				return uint64(op.A)*2 + 1
			}
			return uint64(op.A)*2 + 2
		},
		DescribeState:     func(s int64) string { return strconv.FormatInt(s, 10) },
		DescribeOperation: func(op *history.Operation) string { return strconv.FormatInt(op.A, 10) },
	}
}

func add(call, ret, by int64) history.Operation {
	return history.Operation{Kind: toyAdd, Call: call, Return: ret, A: by, Outcome: history.OK}
}

func get(call, ret, value int64) history.Operation {
	return history.Operation{Kind: toyGet, Call: call, Return: ret, A: value, Outcome: history.OK}
}

func maybe(op history.Operation) history.Operation {
	op.Outcome, op.Flags = history.Unknown, op.Flags|history.Optional
	return op
}

// engineCases are histories of the counter and whether they linearize. The ones with a name of their own are the design's
// counterexamples to reductions that look right.
var engineCases = []struct {
	name string
	ops  []history.Operation
	want bool
}{
	{"nothing", nil, true},
	{"in order", []history.Operation{add(0, 1, 1), get(2, 3, 1)}, true},
	{"not there", []history.Operation{add(0, 1, 1), get(2, 3, 2)}, false},
	{"at the same time", []history.Operation{add(0, 5, 1), get(2, 3, 0), get(2, 3, 1)}, true},
	{"intervals are closed", []history.Operation{add(5, 6, 1), get(0, 5, 1)}, true},
	{"and no wider", []history.Operation{add(6, 7, 1), get(0, 5, 1)}, false},
	{"seen, and then not", []history.Operation{add(0, 10, 1), get(1, 2, 1), get(3, 4, 0)}, false},
	// Giving an unknown operation a bound and forcing it to happen by then would accuse this one.
	{"the unknown increment bounded at 5 that never happens", []history.Operation{maybe(add(0, 5, 1)), get(1, 2, 0), get(6, 7, 0), get(8, 9, 0)}, true},
	{"the unknown increment bounded at 5 that happens", []history.Operation{maybe(add(0, 5, 1)), get(1, 2, 0), get(6, 7, 1), get(8, 9, 1)}, true},
	{"the unknown increment bounded at 5 that happens too late", []history.Operation{maybe(add(0, 5, 1)), get(6, 7, 0), get(8, 9, 1)}, false},
	// Of one class: the one that returns first is not always the one to take first, where calls differ.
	{"nested intervals of one class", []history.Operation{add(0, 20, 1), add(5, 6, 1), get(1, 2, 1), get(3, 4, 1), get(7, 8, 2)}, true},
	{"nested intervals of one class, one too few", []history.Operation{add(0, 20, 1), add(5, 6, 1), get(1, 2, 1), get(7, 8, 1)}, false},
	// A counter of optional operations must let the first go by and still have the second.
	{"optional deadlines 5 and 10 of which only the second happens", []history.Operation{maybe(add(0, 5, 1)), maybe(add(0, 10, 1)), get(6, 7, 0), get(8, 9, 1), get(11, 12, 1)}, true},
	{"optional deadlines 5 and 10, two seen after the first", []history.Operation{maybe(add(0, 5, 1)), maybe(add(0, 10, 1)), get(6, 7, 0), get(8, 9, 2)}, false},
	{"optional and mandatory ones of the same effect", []history.Operation{maybe(add(0, 5, 1)), add(0, 10, 1), get(6, 7, 0), get(11, 12, 1)}, true},
	{"optional ones without a bound", []history.Operation{maybe(add(0, never, 1)), maybe(add(0, never, 2)), get(6, 7, 0), get(8, 9, 2), get(10, 11, 3)}, true},
	{"a killed worker's clients", []history.Operation{
		maybe(add(0, 50, 1)), maybe(add(0, 50, 1)), maybe(add(0, 50, 1)), maybe(add(0, 50, 1)), get(60, 61, 3), get(62, 63, 3)}, true},
	{"a killed worker's clients, and one too many", []history.Operation{
		maybe(add(0, 50, 1)), maybe(add(0, 50, 1)), maybe(add(0, 50, 1)), get(60, 61, 4)}, false},
}

var testBudget = budget{memory: 1 << 30}

func TestEnginesOnTheCounter(t *testing.T) {
	for _, c := range engineCases {
		t.Run(c.name, func(t *testing.T) {
			if got := bruteForce(counterSpec(), c.ops); got != c.want {
				t.Errorf("brute force: %v, want %v", got, c.want)
			}
			if got := decidePorcupine(context.Background(), counterSpec(), c.ops, testBudget); (got.verdict == Pass) != c.want || got.reason != "" {
				t.Errorf("porcupine: %v, want %v", got, c.want)
			}
		})
	}
}

func TestEnginesAgreeOnTheCounter(t *testing.T) {
	histories(t, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		ops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) history.Operation {
			call := rapid.Int64Range(0, 12).Draw(t, "call")
			op := get(call, call+rapid.Int64Range(0, 8).Draw(t, "took"), rapid.Int64Range(0, 3).Draw(t, "value"))
			if rapid.Bool().Draw(t, "add") {
				op.Kind = toyAdd
				if rapid.Bool().Draw(t, "unknown") {
					op = maybe(op)
				}
			}
			return op
		}), 0, 7).Draw(t, "ops")
		want := bruteForce(counterSpec(), ops)
		if got := decidePorcupine(context.Background(), counterSpec(), ops, testBudget); (got.verdict == Pass) != want {
			t.Fatalf("porcupine %v, brute force %v", got.verdict, want)
		}
	})
}

func TestPorcupineRefusesWhatDoesNotFit(t *testing.T) {
	ops := make([]history.Operation, 2000)
	for i := range ops {
		ops[i] = add(int64(2*i), int64(2*i+1), 1)
	}
	d := decidePorcupine(context.Background(), counterSpec(), ops, budget{memory: 1 << 18})
	if d.verdict != Inconclusive || !strings.Contains(d.reason, "MiB") {
		t.Errorf("%v", d)
	}
}

// hard is a history that takes long to refute: n concurrent increments in any order, and a read that none explains.
func hard(n int) []history.Operation {
	var ops []history.Operation
	for i := range n {
		ops = append(ops, add(0, 100, 1<<i))
	}
	return append(ops, get(101, 102, -1))
}

func TestPorcupineEndsInTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	started := time.Now()
	d := decidePorcupine(ctx, counterSpec(), hard(30), budget{memory: 1 << 40})
	if d.verdict != Inconclusive || !strings.Contains(d.reason, "time") {
		t.Errorf("%v", d)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if d := decidePorcupine(context.Background(), counterSpec(), hard(30), budget{memory: 1 << 20}); d.verdict != Inconclusive || !strings.Contains(d.reason, "memory") {
		t.Errorf("%v", d)
	}
}

func TestPorcupineSurvivesAPanicOfTheSpec(t *testing.T) {
	spec := counterSpec()
	spec.Step = func(int64, *history.Operation) (int64, bool) { panic("oh") }
	if d := decidePorcupine(context.Background(), spec, []history.Operation{add(0, 1, 1)}, testBudget); d.verdict != Inconclusive || !strings.Contains(d.reason, "oh") {
		t.Errorf("%v", d)
	}
}

func TestReconcile(t *testing.T) {
	pass, fail, open := decision{}, decision{verdict: Violation}, undecided("no time")
	for _, c := range []struct {
		name              string
		likeness          likeness
		stream, porcupine decision
		want              Verdict
		loud              bool
	}{
		{"both pass", same, pass, pass, Pass, false},
		{"both fail", same, fail, fail, Violation, false},
		{"one is undecided", same, open, fail, Violation, false},
		{"the other is", same, pass, open, Pass, false},
		{"both are", same, open, open, Inconclusive, false},
		{"they disagree", same, pass, fail, Inconclusive, true},
		{"the other way round", same, fail, pass, Inconclusive, true},
		{"timed: the stream engine misses one", streamMayMiss, pass, fail, Violation, false},
		{"timed: the stream engine accuses falsely", streamMayMiss, fail, pass, Inconclusive, true},
		{"a range of states: the stream engine misses one", eitherMayMiss, pass, fail, Violation, false},
		{"a range of states: Porcupine misses one", eitherMayMiss, fail, pass, Violation, false},
	} {
		d := reconcile(c.likeness, c.stream, c.porcupine)
		if d.verdict != c.want || strings.Contains(d.reason, "disagree") != c.loud || d.disagree != c.loud || d.missed != (c.want == Violation && c.stream.verdict == Pass) {
			t.Errorf("%s: %v", c.name, d)
		}
	}
}

// histories sets how many histories a property test tries, unless the command line or the environment says so.
func histories(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	if was != f.DefValue {
		return
	}
	if s := os.Getenv("FENCEPOST_HISTORIES"); s != "" { // make fuzz
		if v, err := strconv.Atoi(s); err == nil {
			n = v
		}
	} else if testing.Short() {
		n = min(n, 200)
	}
	if err := f.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(was) })
}
