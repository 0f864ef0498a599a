package models

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/history"
)

// ruledBy gives the report of a lock that a grant holds for ten seconds, and that others are refused or granted meanwhile, if
// the engines say what judge says.
func ruledBy(t *testing.T, judge judge, ops ...history.Operation) Report {
	t.Helper()
	h := &history.History{Operations: ops}
	h.Names = history.Names{Keys: []string{"", "k"}, Workers: []history.Process{{Worker: "w1", Incarnation: 1}}}
	in := simInput(t, h, Contract{})
	o := lockObject(in)
	var rulings []ruling
	for _, p := range partitions(in, o) {
		rulings = append(rulings, rule(context.Background(), p, o, judge))
	}
	r := o.report(context.Background(), in, rulings, judge)
	r.Check = Linearizable
	return r
}

func streamSays(ops []history.Operation) decision {
	o := lockObject(&Input{Names: &history.Names{}})
	return decideStream(context.Background(), o.spec, ops, testBudget)
}

var (
	// refusedThoughFree can be told from an honest lock only by a refusal.
	refusedThoughFree = []history.Operation{
		lockAt(history.Acquire, 1, history.OK, 100, 110), lockAt(history.Release, 1, history.OK, 200, 210), lockAt(history.Acquire, 2, history.Refused, 300, 310),
	}
	grantedTwice = []history.Operation{lockAt(history.Acquire, 1, history.OK, 100, 110), lockAt(history.Acquire, 2, history.OK, 300, 310)}
)

// What Porcupine finds beyond the stream engine on a timed spec is counted, and is a violation.
func TestRelaxationLossIsCounted(t *testing.T) {
	both := func(_ context.Context, ops []history.Operation) decision {
		return reconcile(streamMayMiss, decision{}, streamSays(ops))
	}
	r := ruledBy(t, both, grantedTwice...)
	if r.Verdict != Violation || r.Missed != 1 || r.Disagreements != 0 {
		t.Errorf("%s, missed %d, disagreements %d", r.Verdict, r.Missed, r.Disagreements)
	}
}

// On an untimed spec it is an error of ours, which nothing hides: not even a violation on which they agree.
func TestDisagreementIsLoud(t *testing.T) {
	refused := func(op history.Operation) bool { return op.Outcome == history.Refused }
	for name, ops := range map[string][]history.Operation{"the only object": grantedTwice, "what is left without refusals is broken": append(slices.Clone(grantedTwice), lockAt(history.Acquire, 3, history.Refused, 400, 410))} {
		both := func(_ context.Context, ops []history.Operation) decision {
			if d := streamSays(ops); len(ops) > 0 && (slices.ContainsFunc(ops, refused) || name == "the only object") {
				return reconcile(same, decision{}, d)
			}
			return streamSays(ops)
		}
		r := ruledBy(t, both, ops...)
		if r.Disagreements != 1 || !strings.Contains(r.Reason, "disagree") {
			t.Errorf("%s: disagreements %d: %s", name, r.Disagreements, r.Reason)
		}
		for _, e := range []Expectation{{Pass: true, May: []string{Linearizable}}, {Must: []string{Linearizable}}, {Loose: true}} {
			d, err := Decide(e, Evidence{Reports: []Report{r}})
			if err != nil || d.Standing != ProvesNothing || !strings.Contains(strings.Join(d.Reasons, " "), "disagree") {
				t.Errorf("%s: %+v: %v, %v: %v", name, e, d.Verdict, d.Standing, d.Reasons)
			}
		}
	}
}

// Where it could not be decided whether a refusal is all that is wrong, the finding claims the weaker and says so.
func TestSeverityMayBeOpen(t *testing.T) {
	judge := func(_ context.Context, ops []history.Operation) decision {
		if slices.ContainsFunc(ops, func(op history.Operation) bool {
			return op.Outcome == history.Refused && op.Flags&history.Synthetic == 0
		}) {
			return streamSays(ops)
		}
		return undecided("no time")
	}
	r := ruledBy(t, judge, refusedThoughFree...)
	if r.Verdict != Violation || len(r.Findings) != 1 || r.Findings[0].Severity != Availability || !strings.Contains(r.Findings[0].Summary, "could not be decided") {
		t.Fatalf("%+v", r)
	}
	for _, c := range []struct {
		e    Expectation
		want Standing
	}{
		{Expectation{Must: []string{"linearizable:safety"}}, ProvesNothing},
		{Expectation{Must: []string{"linearizable:availability"}}, ProvesNothing}, // it may be worse than expected
		{Expectation{Must: []string{Linearizable}}, AsExpected},
		{Expectation{Pass: true, May: []string{"linearizable:availability"}}, ProvesNothing},
		{Expectation{Pass: true, May: []string{"linearizable:safety"}}, AsExpected},
		{Expectation{Pass: true}, Contrary},
	} {
		d, err := Decide(c.e, Evidence{Reports: []Report{r}})
		if err != nil || d.Standing != c.want {
			t.Errorf("%+v: %v: %v, want %v", c.e, d.Standing, d.Reasons, c.want)
		}
	}
}

// taken is n operations of a lock that is taken and released in turn.
func taken(n int) []history.Operation {
	var ops []history.Operation
	for i := range n {
		op := lockAt(history.Acquire, uint16(i/2), history.OK, int64(10*i), int64(10*i+1))
		if i%2 == 1 {
			op = lockAt(history.Release, uint16(i/2), history.OK, int64(10*i), int64(10*i+1))
		}
		ops = append(ops, op)
	}
	return ops
}

// Where no engine is named, Porcupine decides up to porcupineMost operations and the stream engine beyond. Who it was shows in
// where the search for a witness begins: only the stream engine says.
func TestEngineByLength(t *testing.T) {
	o := lockObject(&Input{Names: &history.Names{}})
	for _, c := range []struct {
		n      int
		stream bool
	}{{porcupineMost, false}, {porcupineMost + 1, true}} {
		ops := taken(c.n)
		at := len(ops)/2 | 1
		ops[at].Outcome = history.Refused // a holder's own release
		d := decide(context.Background(), "", o.spec, ops, testBudget)
		if d.verdict != Violation || (d.failedAt != 0) != c.stream {
			t.Errorf("%d operations: %+v, by stream should be %v", c.n, d, c.stream)
		}
	}
	// One that Porcupine has no memory for is the stream engine's, however short.
	if d := decide(context.Background(), "", o.spec, taken(1000), budget{memory: 200 << 10}); d.verdict != Pass {
		t.Errorf("%+v", d)
	}
}

// One that Porcupine has no time for is the stream engine's, which still has half of it: a bucket that many clients share.
func TestWhatTakesPorcupineTooLong(t *testing.T) {
	ops := bucketHistory(simulation{clients: 60, step: 2_500, seed: 1}, 3000, 100, 20_000)
	spec := toyBucket(100, 20_000, 0.001)
	within := func(engine Engine) decision {
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
		defer cancel()
		return decide(ctx, engine, spec, ops, budget{memory: 16 << 30})
	}
	if d := within(EnginePorcupine); d.verdict != Inconclusive {
		t.Fatalf("porcupine decides it: %+v; this test needs a harder one", d)
	}
	if d := within(""); d.verdict != Pass {
		t.Errorf("%+v", d)
	}
}

// The limit on memory is one for all objects: one whose share was too small for gets all of it.
func TestMemoryIsShared(t *testing.T) {
	var ops []history.Operation
	for key := range uint32(4) {
		for _, op := range taken(1000) {
			op.Key = key + 1
			ops = append(ops, op)
		}
	}
	slices.SortStableFunc(ops, byCall)
	h := &history.History{Operations: ops}
	h.Names = history.Names{Keys: []string{"", "a", "b", "c", "d"}, Workers: []history.Process{{Worker: "w1", Incarnation: 1}}}
	in := simInput(t, h, Contract{})
	in.Limit = Limit{Parallel: 4, Engine: EnginePorcupine, Memory: 1 << 20}
	if r := linearizable.Run(context.Background(), in); r.Verdict != Pass || r.Decided != 4000 {
		t.Errorf("%s: %s; %d decided", r.Verdict, r.Reason, r.Decided)
	}
	in.Limit.Memory = 256 << 10
	if r := linearizable.Run(context.Background(), in); r.Verdict != Inconclusive {
		t.Errorf("with less than one of them needs: %s", r.Verdict)
	}
}

// EngineBoth asks both, and takes from the spec what they may miss.
func TestBothEnginesAreAsked(t *testing.T) {
	lock := lockObject(&Input{Names: &history.Names{}}).spec
	d := decide(t.Context(), EngineBoth, counterSpec(), hard(30), budget{1 << 10})
	if !strings.Contains(d.reason, "stream: ") || !strings.Contains(d.reason, "porcupine: ") {
		t.Errorf("neither has the memory, and it says %q", d.reason)
	}
	// A step that works for one engine and not for the other: only Porcupine describes what it has done.
	for name, timed := range map[string]bool{"untimed": false, "timed": true} {
		spec := lock
		spec.Timed, spec.Class, spec.Dominates = timed, nil, nil
		calls := 0
		step := spec.Step
		spec.Step = func(s lockState, op *history.Operation) (lockState, bool) {
			calls++
			if calls > len(grantedTwice) { // Porcupine is asked second
				return s, false
			}
			_, _ = step(s, op)
			return s, true
		}
		d := decide(t.Context(), EngineBoth, spec, grantedTwice, testBudget)
		if d.disagree == timed || d.missed != timed {
			t.Errorf("%s: %s, disagree %v, missed %v after %d steps", name, d.verdict, d.disagree, d.missed, calls)
		}
	}
}
