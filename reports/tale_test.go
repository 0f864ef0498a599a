package reports

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

// told builds a tale of named operations on k1, times in milliseconds.
func told(ops ...Operation) *tale {
	for i := range ops {
		ops[i].Key = "k1"
		ops[i].Call *= ms
		ops[i].Return *= ms
	}
	f := &Finding{Key: "k1", Operations: ops, At: ops[len(ops)-1].Return}
	return newTale("check", f, &Result{}, nil)
}

func lockOp(kind, client string, call, ret, grant int64, outcome string) Operation {
	op := Operation{Primitive: "lock", Kind: kind, Client: client, Call: call, Return: ret, Outcome: outcome, Fields: map[string]int64{"grant": grant}}
	if kind == "acquire" || kind == "extend" {
		op.Fields["ttl_ns"] = 300 * ms
	}
	return op
}

func record(kind, client string, at, grant, token, version, sequence int64, outcome string) Operation {
	return Operation{Primitive: "resource", Kind: kind, Client: client, Call: at, Return: at, Outcome: outcome,
		Fields: map[string]int64{"grant": grant, "token": token, "version": version, "sequence": sequence}}
}

func TestHolds(t *testing.T) {
	acquire := lockOp("acquire", "w1/c0", 0, 1, 5, "ok")
	for _, c := range []struct {
		name            string
		ops             []Operation
		until, believed int64 // ms
		expired         bool
	}{
		{"released", []Operation{acquire, lockOp("release", "w1/c0", 40, 42, 5, "ok")}, 42, 40, false},
		{"expired, and nothing came after", []Operation{acquire, lockOp("acquire", "w2/c0", 390, 400, 6, "ok")}, 301, 301, true},
		{"extended, then released late", []Operation{acquire, lockOp("extend", "w1/c0", 100, 110, 5, "ok"), lockOp("release", "w1/c0", 500, 510, 5, "refused")}, 410, 500, true},
		{"an extension without an answer doesn't count", []Operation{acquire, lockOp("extend", "w1/c0", 100, 110, 5, "unknown"), lockOp("release", "w1/c0", 500, 510, 5, "refused")}, 301, 500, true},
		{"an extension that comes too late revives nothing", []Operation{acquire, lockOp("extend", "w1/c0", 400, 410, 5, "ok"), lockOp("release", "w1/c0", 500, 510, 5, "ok")}, 301, 500, true},
		{"told that it is not the holder", []Operation{acquire, lockOp("extend", "w1/c0", 350, 360, 5, "refused"), lockOp("release", "w1/c0", 500, 510, 5, "refused")}, 301, 360, true},
		{"told that it is lost", []Operation{acquire, lockOp("lost", "w1/c0", 200, 200, 5, "ok"), lockOp("release", "w1/c0", 500, 510, 5, "refused")}, 301, 200, true},
		{"a late write is the last sign of belief", []Operation{acquire, record("write", "w1/c0", 700, 5, 0, 1, 1, "ok")}, 301, 700, true},
		{"another's release ends nothing", []Operation{acquire, lockOp("release", "w2/c0", 40, 42, 6, "ok"), record("read", "w1/c0", 250, 5, 0, 1, 1, "ok")}, 301, 250, true},
	} {
		h := told(c.ops...).holdOf(5)
		if h.Until != c.until*ms || h.Believed != c.believed*ms || h.Expired != c.expired {
			t.Errorf("%s: until %d ms, believed until %d ms, expired %v; want %d, %d, %v", c.name, h.Until/ms, h.Believed/ms, h.Expired, c.until, c.believed, c.expired)
		}
	}
}

// TestExpiryComesBeforeTheGrantThatNeedsIt: the end of a time-to-live is known within the time that its call took, and a later
// grant narrows it down. A grant that came before it can have ended does not: both held it.
func TestExpiryComesBeforeTheGrantThatNeedsIt(t *testing.T) {
	slow := lockOp("acquire", "w1/c0", 0, 20, 5, "ok") // over between 300 and 320 ms
	expire := lockOp("expire", "w1/c0", 300, 320, 5, "ok")
	expire.Synthetic = true
	for _, c := range []struct {
		name string
		ops  []Operation
		want string
	}{
		{"narrowed down", []Operation{slow, lockOp("acquire", "w2/c0", 308, 310, 6, "ok")}, "granted 20, expiry 310, granted 310"},
		{"after it", []Operation{slow, lockOp("acquire", "w2/c0", 329, 330, 6, "ok")}, "granted 20, expiry 320, granted 330"},
		{"a clash", []Operation{slow, lockOp("acquire", "w2/c0", 288, 290, 6, "ok"), lockOp("release", "w2/c0", 340, 350, 6, "ok")}, "granted 20, granted 290, expiry 320, released 350"},
		{"of the witness", []Operation{slow, expire, lockOp("acquire", "w2/c0", 308, 310, 6, "ok")}, "granted 20, expiry 310, granted 310"},
	} {
		var got []string
		for _, s := range told(c.ops...).Steps {
			word, _, _ := strings.Cut(s.Text, " ")
			if s.Mark == markExpiry {
				word = "expiry"
			}
			got = append(got, fmt.Sprint(word, " ", s.At/ms))
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestAPauseEndsWithTheFirstOwnOperation: whoever paused a process sees it run later than its clients do. What the resource
// decided, and what other processes did, show nothing of it.
func TestAPauseEndsWithTheFirstOwnOperation(t *testing.T) {
	event := func(target string, process int) history.Event {
		return history.Event{Kind: history.EventFault, Fault: "pause", Target: target, Process: process, Node: -1, At: 10 * ms, End: 110 * ms}
	}
	acquire := lockOp("acquire", "w1/c0", 11, 12, 5, "ok") // called when the pause was under way, and not yet in force
	for _, c := range []struct {
		name  string
		event history.Event
		ops   []Operation
		want  string
	}{
		{"by a call", event("w1", 0), []Operation{acquire, lockOp("release", "w1/c0", 106, 120, 5, "ok")}, "12 paused, 106 running again after 94 ms"},
		{"by an answer", event("w1", 0), []Operation{acquire, lockOp("acquire", "w1/c1", 5, 105, 6, "refused")}, "12 paused, 105 running again after 93 ms"},
		{"by nothing", event("w1", 0), []Operation{acquire, record("write", "w1/c0", 60, 5, 0, 1, 1, "ok"), lockOp("acquire", "w2/c0", 50, 120, 6, "refused")}, "12 paused, 110 seen running again after 98 ms"},
		{"another's name begins alike", event("w1", 0), []Operation{acquire, lockOp("acquire", "w10/c0", 50, 60, 6, "refused"), lockOp("release", "w1/c0", 115, 120, 5, "ok")}, "12 paused, 110 seen running again after 98 ms"},
		{"a store, by an answer", event("valkey/0", -1), []Operation{acquire, lockOp("acquire", "w2/c0", 20, 104, 6, "refused"), lockOp("release", "w1/c0", 115, 120, 5, "ok")}, "12 paused, 104 running again after 92 ms"},
	} {
		for i := range c.ops {
			c.ops[i].Key, c.ops[i].Call, c.ops[i].Return = "k1", c.ops[i].Call*ms, c.ops[i].Return*ms
		}
		f := &Finding{Key: "k1", Operations: c.ops}
		var got []string
		for _, s := range newTale("check", f, &Result{Faults: []history.Event{c.event}}, nil).Steps {
			if s.Mark == markFault {
				got = append(got, fmt.Sprint(s.At/ms, " ", s.Text))
			}
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestALongCallIsToldTwice: where a fault came in between, when it was asked is a line of its own.
func TestALongCallIsToldTwice(t *testing.T) {
	for _, at := range []int64{350, 500} {
		f := &Finding{Key: "k1", Operations: []Operation{lockOp("acquire", "w1/c0", 0, ms, 5, "ok"), lockOp("acquire", "w2/c0", 310*ms, 440*ms, 6, "refused"), lockOp("release", "w1/c0", 599*ms, 600*ms, 5, "ok")}}
		for i := range f.Operations {
			f.Operations[i].Key = "k1"
		}
		r := &Result{Faults: []history.Event{{Kind: history.EventFault, Fault: "kill", Target: "valkey/0", Process: -1, At: at * ms, End: (at + 70) * ms}}}
		calls := 0
		for _, s := range newTale("check", f, r, nil).Steps {
			if s.Mark == markCall {
				if calls++; s.At != 310*ms || s.Who != "w2/c0" {
					t.Errorf("told at %d ms of %s", s.At/ms, s.Who)
				}
			}
		}
		if want := map[int64]int{350: 1, 500: 0}[at]; calls != want {
			t.Errorf("a fault at %d ms: %d calls told, want %d", at, calls, want)
		}
	}
}

// TestAim: what was done to a whole process is not told as if it had happened to the client that it waited for.
func TestAim(t *testing.T) {
	for want, e := range map[string]history.Event{
		"the pause was aimed at w1/c2 while it held its lock, and stopped all of w1": {Kind: history.EventFault, Fault: "pause", Target: "w1", Client: "w1/c2", Point: "holding"},
		"the kill was aimed at w1/c2 between two commands, and ended all of w1":      {Kind: history.EventFault, Fault: "kill", Target: "w1", Client: "w1/c2", Point: "between-commands"},
		"the skew was aimed at w1/c2 at own-point, and was on all of w1":             {Kind: history.EventFault, Fault: "skew", Target: "w1", Client: "w1/c2", Point: "own-point"},
		"the restart was timed by w1/c2: before it wrote":                            {Kind: history.EventFault, Fault: "restart", Target: "valkey/0", Process: -1, Client: "w1/c2", Point: "before-write"},
		"w1/c2, before it wrote": {Kind: history.EventTrapMissed, Fault: "pause", Target: "w1", Client: "w1/c2", Point: "before-write"},
	} {
		if got := aim(&e); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOffence(t *testing.T) {
	a, b := lockOp("acquire", "w1/c0", 0, 1, 5, "ok"), lockOp("acquire", "w2/c0", 310, 320, 6, "ok")
	for _, c := range []struct {
		name string
		ops  []Operation
		want string // the offender's kind and time
	}{
		{"a token lower than one seen", []Operation{a, b, record("write", "w2/c0", 330, 6, 34, 7, 1, "ok"), record("read", "w1/c0", 340, 5, 33, 8, 2, "ok")}, "read 340"},
		{"a token seen under another grant", []Operation{a, b, record("write", "w2/c0", 330, 6, 33, 7, 1, "ok"), record("write", "w1/c0", 340, 5, 33, 8, 2, "ok"), lockOp("release", "w2/c0", 350, 360, 6, "ok")}, "write 340"},
		{"an earlier grant without a token", []Operation{a, b, record("read", "w2/c0", 330, 6, 0, 7, 1, "ok"), record("read", "w1/c0", 340, 5, 0, 7, 2, "ok")}, "read 340"},
		{"a version overtaken", []Operation{a, record("write", "w1/c0", 20, 5, 0, 7, 1, "ok"), record("write", "w1/c0", 30, 5, 0, 7, 2, "ok")}, "write 30"},
		{"in the resource's order, not in time's", []Operation{a, b, record("write", "w1/c0", 330, 5, 33, 7, 2, "ok"), record("write", "w2/c0", 330, 6, 34, 6, 1, "ok")}, "write 330"},
		{"a refusal is no offence: the last that the check named is", []Operation{a, b, record("write", "w2/c0", 330, 6, 34, 7, 1, "ok"), record("write", "w1/c0", 340, 5, 33, 7, 2, "refused"), lockOp("release", "w2/c0", 350, 360, 6, "refused")}, "release 350"},
		{"two holders: the second grant", []Operation{a, lockOp("acquire", "w2/c0", 10, 11, 6, "ok")}, "acquire 10"},
	} {
		id := told(c.ops...).offender()
		if got := id.kind + " " + strings.TrimSuffix(clock(id.at*1000, 0), " s"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestClientAndResourceTellOnce: an attempt that both recorded is a line, at the time of the decision, and says where they
// disagree.
func TestClientAndResourceTellOnce(t *testing.T) {
	own := lockOp("write", "w1/c0", 10, 30, 5, "unknown")
	own.Primitive, own.Error = "resource", "i/o timeout"
	tale := told(lockOp("acquire", "w1/c0", 0, 1, 5, "ok"), own, record("write", "w1/c0", 20, 5, 0, 7, 1, "ok"))
	var lines []string
	for _, s := range tale.Steps {
		lines = append(lines, clock(s.At, 3)+" "+s.Text)
	}
	want := "0.001 s granted k1 (ttl 300 ms)\n0.020 s wrote k1 on top of version 7: accepted; its client: no answer (i/o timeout)"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEventsOfOthersAreLeftOut: a tale tells of the workers in it, of stores and of paths, and of no other worker.
func TestEventsOfOthersAreLeftOut(t *testing.T) {
	event := func(kind history.EventKind, fault, target string, process int, at, end int64) history.Event {
		return history.Event{Kind: kind, Fault: fault, Target: target, Process: process, Node: -1, At: at * ms, End: end * ms}
	}
	r := &Result{Faults: []history.Event{
		event(history.EventFault, "pause", "w1", 0, 10, 50),
		event(history.EventFault, "pause", "w3", 2, 10, 50),
		event(history.EventFault, "kill", "valkey/0", -1, 20, 0),
		event(history.EventFault, "partition", "w1>valkey/0", -1, 30, 40),
		event(history.EventFault, "pause", "w1", 0, 500, 600), // after it
		event(history.EventWorkerDied, "", "w1", 0, 60, 0),
		event(history.EventLoadStarted, "", "", -1, 1, 0),
	}}
	f := &Finding{Key: "k1", Operations: []Operation{lockOp("acquire", "w1.2/c0", 0, 1*ms, 5, "ok"), lockOp("release", "w1.2/c0", 90*ms, 100*ms, 5, "ok")}}
	var lines []string
	for _, s := range newTale("check", f, r, nil).Steps {
		if s.Mark == markFault {
			lines = append(lines, clock(s.At, 3)+" "+s.Who+" "+s.Text)
		}
	}
	want := "0.010 s w1 paused\n0.020 s valkey/0 killed\n0.030 s w1>valkey/0 cut off\n0.040 s w1>valkey/0 connected again after 10 ms\n" +
		"0.050 s w1 seen running again after 40 ms\n0.060 s w1 died"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEveryFormOfAnyResult: no result, however odd, keeps a report from being made.
func TestEveryFormOfAnyResult(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := Material{Result: *anyResult(rt)}
		if _, err := renderHTML(&m, nil); err != nil {
			rt.Fatal(err)
		}
		if _, err := renderMarkdown(&m, nil); err != nil {
			rt.Fatal(err)
		}
		if err := Terminal(io.Discard, m, Options{Color: true, Width: rapid.IntRange(0, 120).Draw(rt, "width")}); err != nil {
			rt.Fatal(err)
		}
		if err := StoryTerminal(io.Discard, m, m, Options{}); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestChecksNameTheirOperations(t *testing.T) {
	r := newRun()
	op := r.op(history.Extend, 1, 3, 5, 6, history.Unknown, 9, func(op *history.Operation) {
		op.SetTTL(time.Second)
		op.SetGeneration(2)
		op.Error = 1
	})
	checks := Checks([]models.Report{
		{Check: "linearizable", Verdict: models.Violation, Findings: []models.Finding{
			{Severity: models.Availability, Key: "k1", Operations: []history.Operation{*op}, Notes: []string{"why"}}, {Severity: models.Safety}}},
		{Check: "fencing", Verdict: models.Pass},
		{Check: "linearizable", Verdict: models.Violation, Findings: []models.Finding{{Severity: models.Safety}, {Severity: models.Availability}}},
	}, &r.names)
	if checks[2].Severity != models.Safety {
		t.Errorf("safety and then availability make %q", checks[2].Severity)
	}
	if checks[0].Severity != models.Safety || checks[1].Severity != "" || checks[1].Findings == nil || checks[0].About == "" {
		t.Errorf("checks: %+v", checks)
	}
	got := checks[0].Findings[0].Operations[0]
	if got.Client != "w2/c3" || got.Kind != "extend" || got.Primitive != "lock" || got.Outcome != "unknown" || got.Error != "i/o timeout" || got.Note != "why" ||
		got.Fields["ttl_ns"] != 1e9 || got.Fields["generation"] != 2 || got.Fields["grant"] != int64(op.Grant()) {
		t.Errorf("operation: %+v", got)
	}
	if _, any := got.Fields["token"]; any {
		t.Error("a token that there is not")
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		span(0):                               "0 ns",
		span(300 * time.Millisecond):          "300 ms",
		span(1204 * time.Microsecond):         "1.2 ms",
		span(999999 * time.Nanosecond):        "1 ms",
		span(-3 * time.Second):                "-3 s",
		span(3600 * time.Second):              "3,600 s",
		clock(1204113000, 3):                  "1.204 s",
		clock(-5e6, 3):                        "-0.005 s",
		grouped(-1234567):                     "-1,234,567",
		grouped(999):                          "999",
		count(1, "finding"):                   "1 finding",
		measured(0.0004, "share"):             "0.04%",
		measured(0.05, "s"):                   "50 ms",
		and([]string{"a", "b", "c"}):          "a, b and c",
		clean("a\x1b[31m\u202eb\xffc\nd", 99): `a\x1b[31m\u202eb\xffc d`,
		clean("abcdef", 3):                    "abc…",
		clean("a\uFFFDb", 9):                  "a\uFFFDb",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// overtaken is a run in which w1/c2 is paused and both w2/c0 and, after it, w1/c3 of the same process are granted the key.
// The check names the last of them; the resource's log knows the first.
func overtaken() (*run, []history.Operation) {
	r := newRun()
	grant := func(op *history.Operation) { op.SetTTL(300 * time.Millisecond) }
	r.attempt(history.Write, 2, 2, 50, 51, history.OK, 10, 0, 6) // before any of it
	first := *r.op(history.Acquire, 0, 2, 100, 101, history.OK, 1, grant)
	r.op(history.Acquire, 1, 0, 450, 451, history.OK, 2, grant)
	r.attempt(history.Write, 1, 0, 460, 461, history.OK, 2, 0, 7)
	r.attempt(history.Write, 2, 1, 500, 501, history.OK, 9, 0, 8) // of yet another
	last := *r.op(history.Acquire, 0, 3, 900, 901, history.OK, 3, grant)
	r.attempt(history.Read, 0, 3, 910, 911, history.OK, 3, 0, 9)
	r.attempt(history.Write, 0, 2, 920, 921, history.OK, 1, 0, 7)
	n := len(r.resource)
	return r, []history.Operation{first, last, r.resource[n-2], r.resource[n-1]}
}

// TestTheFirstOvertakerIsTold, although the check names the last.
func TestTheFirstOvertakerIsTold(t *testing.T) {
	r, witness := overtaken()
	checks := Checks([]models.Report{{Check: "fencing", Verdict: models.Violation, Findings: []models.Finding{{Key: "k1", At: witness[3].Return, Operations: witness}}}}, &r.names)
	m := Material{Result: Result{Checks: checks}, Input: r.input()}
	tale := chooseTales(&m, 1, 1)[0]
	var lines []string
	for _, s := range tale.Steps {
		if s.Op != nil {
			lines = append(lines, s.Who+" "+s.Op.Kind)
		}
	}
	want := "w1/c2 acquire, w2/c0 acquire, w2/c0 write, w1/c3 acquire, w1/c3 read, w1/c2 write"
	if got := strings.Join(lines, ", "); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	if tale.Between != 1 || !strings.Contains(string(terminal(t, m, Options{})), "1 other attempt on k1 came in between") {
		t.Errorf("%d attempts left out, want 1", tale.Between)
	}
	if tale.offender() != (offenderID{"w1/c2", "write", "k1", 920500000}) {
		t.Errorf("the offender is %+v", tale.offender())
	}
}

// TestTheClearestFindingIsTold: one between processes before an earlier one within a process.
func TestTheClearestFindingIsTold(t *testing.T) {
	within := Finding{Key: "k1", Summary: "within", Operations: []Operation{lockOp("acquire", "w1/c0", 0, 1, 5, "ok"), lockOp("acquire", "w1/c1", 2, 3, 6, "ok")}}
	between := Finding{Key: "k1", Summary: "between", Operations: []Operation{lockOp("acquire", "w1/c0", 4, 5, 7, "ok"), lockOp("acquire", "w2/c1", 6, 7, 8, "ok")}}
	m := Material{Result: Result{Expected: "violation", ExpectedChecks: ExpectedChecks{Must: []string{"first"}}, Checks: []Check{
		{Name: "first", Verdict: models.Violation, Findings: []Finding{within, between}},
		{Name: "second", Verdict: models.Violation, Findings: []Finding{{Key: "k2", Summary: "not expected", Operations: []Operation{lockOp("acquire", "w1/c0", 8, 9, 10, "ok")}}}},
	}}}
	var got []string
	for _, t := range chooseTales(&m, 9, 9) {
		got = append(got, t.Finding.Summary)
	}
	if want := "not expected, between, within"; strings.Join(got, ", ") != want {
		t.Errorf("told %s, want %s", strings.Join(got, ", "), want)
	}
	if tales := chooseTales(&m, 2, 1); len(tales) != 2 || tales[1].Finding.Summary != "between" {
		t.Error("one of each check was asked for")
	}
}

func TestStallsOfFaultsAreTheirOwn(t *testing.T) {
	r := &Result{
		Faults: []history.Event{{Kind: history.EventFault, Fault: "pause", Target: "w1", Process: 0, At: 100 * ms, End: 800 * ms}},
		Stalls: []history.Event{
			{Kind: history.EventStall, Target: "w1", Process: 0, At: 105 * ms, End: 810 * ms, Delay: 705 * time.Millisecond},
			{Kind: history.EventStall, Target: "w1", Process: 0, At: 790 * ms, End: 950 * ms, Delay: 160 * time.Millisecond},
			{Kind: history.EventStall, Target: "w2", Process: 1, At: 300 * ms, End: 340 * ms, Delay: 40 * time.Millisecond},
		},
	}
	want := "2 stalls; the longest: 160 ms on w1 at 0.790 s; 1 more by the faults themselves"
	if got := stallSentence(r); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f := &Finding{Operations: []Operation{lockOp("acquire", "w1/c0", 50*ms, 900*ms, 5, "ok")}}
	var lines []string
	for _, s := range newTale("check", f, r, nil).Steps {
		if s.Mark == markFault {
			lines = append(lines, s.Text)
		}
	}
	if got, want := strings.Join(lines, ", "), "paused, not scheduled for 160 ms, seen running again after 700 ms"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestNearMissNamesTheFirstHigherToken, and is none where something went wrong.
func TestNearMissNamesTheFirstHigherToken(t *testing.T) {
	m := lockPause(true)
	if got, want := nearMiss(&m).Finding.Summary, "seen w2/c0's token 34"; !strings.Contains(got, want) {
		t.Errorf("%q does not say %q", got, want)
	}
	m.Result.Verdict = models.Violation
	if nearMiss(&m) != nil {
		t.Error("a near miss in a run that was hit")
	}
}

// TestTheReleaseOfAnotherIsTold: a grant that the check finds impossible was possible for the store because somebody freed
// the lock; the history knows who.
func TestTheReleaseOfAnotherIsTold(t *testing.T) {
	r := newRun()
	grant := func(op *history.Operation) { op.SetTTL(300 * time.Millisecond) }
	first := *r.op(history.Acquire, 1, 0, 400, 401, history.OK, 2, grant)
	r.op(history.Release, 2, 0, 100, 101, history.OK, 8, nil) // before it
	r.op(history.Acquire, 0, 2, 50, 51, history.OK, 1, grant)
	r.op(history.Release, 0, 2, 420, 440, history.OK, 1, nil)
	r.op(history.Release, 1, 0, 428, 450, history.OK, 2, nil) // its own
	second := *r.op(history.Acquire, 2, 1, 430, 431, history.OK, 3, grant)
	f := models.Finding{Key: "k1", Severity: models.Safety, At: second.Return, Operations: []history.Operation{first, second}}
	checks := Checks([]models.Report{{Check: "linearizable", Verdict: models.Violation, Findings: []models.Finding{f}}}, &r.names)
	m := Material{Result: Result{Checks: checks}, Input: r.input()}
	var lines []string
	for _, s := range chooseTales(&m, 1, 1)[0].Steps {
		if s.Op != nil {
			lines = append(lines, s.Who+" "+s.Text)
		}
	}
	want := "w1/c2 granted k1 (ttl 300 ms), w2/c0 granted k1 (ttl 300 ms), w1/c2 releases k1, w3/c1 granted k1 (ttl 300 ms), w2/c0 released k1 (asked 22 ms earlier)"
	if got := strings.Join(lines, ", "); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

// TestWhatSurroundsIsNoOffence: a check that says nothing of the resource is about its own operations, though a stale write
// may have come of it.
func TestWhatSurroundsIsNoOffence(t *testing.T) {
	r, witness := overtaken()
	f := models.Finding{Key: "k1", At: witness[1].Return, Operations: witness[:2]}
	checks := Checks([]models.Report{{Check: "linearizable", Verdict: models.Violation, Findings: []models.Finding{f}}}, &r.names)
	m := Material{Result: Result{Checks: checks}, Input: r.input()}
	tale := chooseTales(&m, 1, 1)[0]
	if id := tale.offender(); id.kind != "acquire" || id.client != "w1/c3" {
		t.Errorf("the offender is %+v", id)
	}
	n := 0
	for _, s := range tale.Steps {
		if s.Mark == markOffence {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d offences", n)
	}
}
