package reports

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

const ms = int64(time.Millisecond)

// run builds a recorded run for tests.
type run struct {
	names    history.Names
	ops      []history.Operation
	resource []history.Operation
	sequence int64
}

func newRun() *run {
	return &run{names: history.Names{
		Keys:   []string{"", "k1", "k2", "k3", "k4"},
		Errors: []string{"", "i/o timeout"},
		Workers: []history.Process{
			{Worker: "w1", Incarnation: 1, ClockError: 2000},
			{Worker: "w2", Incarnation: 1, ClockError: 2000},
			{Worker: "w3", Incarnation: 1, ClockError: 2000},
		},
	}}
}

// op records a client's operation, at times in milliseconds.
func (r *run) op(kind history.Kind, worker, client uint16, call, ret float64, outcome history.Outcome, grant uint32, edit func(*history.Operation)) *history.Operation {
	op := history.Operation{
		Kind: kind, Worker: worker, Client: client, Key: 1, Outcome: outcome,
		Call: int64(call * 1e6), Return: int64(ret * 1e6),
	}
	op.SetGrant(history.NewGrantID(worker, client, grant))
	if edit != nil {
		edit(&op)
	}
	r.ops = append(r.ops, op)
	return &r.ops[len(r.ops)-1]
}

// attempt records a client's attempt on the resource and the resource's own record of it, halfway.
func (r *run) attempt(kind history.Kind, worker, client uint16, call, ret float64, outcome history.Outcome, grant uint32, token, version int64) {
	set := func(op *history.Operation) {
		op.SetToken(token)
		op.SetVersion(version)
	}
	own := *r.op(kind, worker, client, call, ret, outcome, grant, set)
	r.sequence++
	own.Call = (own.Call + own.Return) / 2
	own.Return = own.Call
	own.SetSequence(r.sequence)
	r.resource = append(r.resource, own)
}

// traffic records turns of a lock workload by all clients on other keys, seconds long.
func (r *run) traffic(seconds float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	for at := 3.0; at < seconds*1e3; at += 5 {
		worker, client := uint16(rng.IntN(3)), uint16(rng.IntN(4))
		took := func() float64 { return 0.15 + rng.ExpFloat64()*0.1 }
		key := uint32(2 + rng.IntN(3))
		edit := func(op *history.Operation) {
			op.Key = key
			if op.Kind == history.Acquire {
				op.SetTTL(300 * time.Millisecond)
			}
		}
		seq := uint32(100 + at)
		t := at + took()
		if rng.IntN(10) == 0 {
			r.op(history.Acquire, worker, client, at, t, history.Refused, seq, edit)
			continue
		}
		r.op(history.Acquire, worker, client, at, t, history.OK, seq, edit)
		u := t + took()/3
		r.op(history.Read, worker, client, t, u, history.OK, seq, edit)
		r.op(history.Write, worker, client, u+40, u+40+took()/3, history.OK, seq, edit)
		r.op(history.Release, worker, client, u+41, u+41+took(), history.OK, seq, edit)
	}
}

// pauseStory records the story of lock-pause, at milliseconds after the run began: client 2 of worker a is granted the key,
// paused past its time, and writes when it wakes up; meanwhile client 0 of worker b was granted it. It gives the witness.
func (r *run) pauseStory(key uint32, at float64, a, b uint16, fenced bool) []history.Operation {
	first, firstRecord := len(r.ops), len(r.resource)
	token, late := int64(0), history.OK
	if fenced {
		token, late = 33, history.Refused
	}
	grant := func(n int64) func(*history.Operation) {
		return func(op *history.Operation) {
			op.SetTTL(300 * time.Millisecond)
			op.SetToken(n)
		}
	}
	second := token
	if fenced {
		second++
	}
	r.op(history.Acquire, a, 2, at-0.3, at+0.1, history.OK, uint32(at), grant(token))
	r.attempt(history.Read, a, 2, at+0.3, at+0.6, history.OK, uint32(at), token, 7)
	r.op(history.Acquire, b, 0, at+190, at+190.4, history.Refused, uint32(at)+3, grant(0))
	r.op(history.Acquire, b, 0, at+319.6, at+320, history.OK, uint32(at)+4, grant(second))
	r.attempt(history.Read, b, 0, at+320.2, at+320.5, history.OK, uint32(at)+4, second, 7)
	r.attempt(history.Write, b, 0, at+360.7, at+361.1, history.OK, uint32(at)+4, second, 7)
	r.op(history.Release, b, 0, at+361.4, at+361.9, history.OK, uint32(at)+4, nil)
	r.attempt(history.Write, a, 2, at+721.2, at+721.7, late, uint32(at), token, 7)
	r.op(history.Release, a, 2, at+722, at+722.4, history.Refused, uint32(at), nil)
	for i := range r.ops[first:] {
		r.ops[first+i].Key = key
	}
	for i := range r.resource[firstRecord:] {
		r.resource[firstRecord+i].Key = key
	}
	return []history.Operation{r.ops[first], r.ops[first+3], r.resource[len(r.resource)-2], r.resource[len(r.resource)-1]}
}

func (r *run) input() *models.Input {
	sort.SliceStable(r.ops, func(i, j int) bool { return r.ops[i].Call < r.ops[j].Call })
	return &models.Input{Primitive: "lock", Operations: r.ops, Resource: r.resource, Names: &r.names, End: 6200 * ms}
}

// lockPause is the run of lock-pause: a violation, as expected. fenced: of its pair, which passes.
func lockPause(fenced bool) Material {
	r := newRun()
	r.traffic(6)
	witness := r.pauseStory(1, 1200, 0, 1, fenced)
	second := r.pauseStory(3, 2700, 2, 0, fenced)
	reports := []models.Report{
		{Check: "linearizable", Verdict: models.Pass, Decided: 3964},
		{Check: "mutual-exclusion", Verdict: models.Pass, Decided: 1083},
		{Check: "fencing", Verdict: models.Pass, Decided: 2166},
		{Check: "lost-update", Verdict: models.Pass, Decided: 1083},
	}
	if !fenced {
		reports[2].Verdict, reports[3].Verdict = models.Violation, models.Violation
		reports[2].Findings = []models.Finding{{
			Summary:    "w1/c2 wrote k1 at 1.921 s under a grant that was over at 1.500 s: w2/c0 had been granted k1 at 1.520 s and had written already.",
			Key:        "k1",
			At:         witness[3].Return,
			Operations: witness,
			Notes:      []string{"could not be in force after 1.500 s", "", "the resource has now seen the later grant", "accepted under the earlier grant"},
		}, {
			Summary:    "w3/c2 wrote k3 at 3.421 s under a grant that was over at 3.000 s: w1/c0 had been granted k3 at 3.020 s and had written already.",
			Key:        "k3",
			At:         second[3].Return,
			Operations: second,
		}}
		reports[2].More = 1
		reports[3].Findings = []models.Finding{{
			Summary:    "w1/c2's write of k1 at 1.921 s was based on version 7; w2/c0 had made it version 8 at 1.561 s: that update is lost.",
			Key:        "k1",
			At:         witness[3].Return,
			Operations: witness[2:],
		}}
	}
	var faults []history.Event
	for i, at := range []int64{1220, 2722, 4219} {
		faults = append(faults, history.Event{
			ID: i + 1, Kind: history.EventFault, Fault: "pause", Target: []string{"w1", "w3", "w2"}[i], Process: []int{0, 2, 1}[i], Node: -1,
			At: at * ms, End: (at + 700) * ms, Confirmed: true, Point: "holding", Client: []string{"w1/c2", "w3/c2", "w2/c3"}[i],
		})
	}
	faults = append(faults, history.Event{ID: len(faults) + 1, Kind: history.EventLoadStarted, At: 40 * ms, Process: -1, Node: -1})
	m := Material{Input: r.input()}
	m.Result = Result{
		Run: "01JDXYZ", Scenario: "lock-pause", Subject: "lock/valkey", Seed: 7,
		Summary: "A worker is paused past its lock's TTL, then writes as if it still held it.",
		Started: time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC), Elapsed: 7.42,
		Verdict: models.Violation, Expected: "violation",
		ExpectedChecks: ExpectedChecks{Must: []string{"fencing", "lost-update"}},
		AsExpected:     true,
		Checks:         Checks(reports, &r.names),
		Coverage:       map[string]Coverage{"granted": {100, 1083}, "faults": {3, 3}, "writes-after-expiry": {1, 3}},
		Thresholds:     []Threshold{{Metric: "errors", Want: "1%", Got: 0.0004, Unit: "share", Met: true}},
		Load: Load{Operations: 4448, Errors: 2, Offered: 200, Achieved: 199.6, Latency: map[string]Latency{
			"acquire": {231, 402, 681, 702400, 703100, 1203},
			"read":    {61, 92, 151, 312, 402, 1083},
			"release": {244, 391, 672, 1203, 1304, 1079},
			"write":   {64, 97, 161, 701200, 701400, 1083},
		}},
		Faults: faults,
		Stalls: []history.Event{
			{ID: 9, Kind: history.EventStall, At: 2210 * ms, Delay: 14 * time.Millisecond, Target: "w2", Process: 1, Node: -1},
			{ID: 10, Kind: history.EventStall, At: 5034 * ms, Delay: 11 * time.Millisecond, Target: "w1", Process: 0, Node: -1},
		},
		Environment: Environment{
			Version: "0.1.0", OS: "linux", Arch: "amd64", CPUs: 2, Kernel: "6.1.0", Go: "go1.26.8",
			Provider: map[string]string{"valkey": "process"}, Topology: map[string]string{"valkey": "standalone"},
			Servers: map[string]string{"valkey": "Valkey 8.0.1"},
			Workers: []Worker{
				{"w1", 1, "builder", 2000, true, false}, {"w2", 1, "builder", 2000, true, false},
				{"w3", 1, "far-away", 184000, false, false},
			},
		},
		Command: "bench run lock-pause --seed 7",
		Explains: `A lock with a time-to-live is a promise about *the store*, not about its holder. The store gives the lock
away when the time is over; the holder only **believes** that it still has it, and nothing tells a paused process that its
time has passed.

` + "```" + `
w1  acquire ──── pause (GC, swap, SIGSTOP) ──── write   too late
w2                     acquire ── write                 lost
` + "```" + `

What fixes it is a *fencing token*: a number that grows with each grant, which the **resource** checks. See ` + "`lock-pause-fenced`" + `.`,
		Pair: "lock-pause-fenced",
	}
	if fenced {
		m.Result.Scenario, m.Result.Subject, m.Result.Pair = "lock-pause-fenced", "lock/valkey-fenced", "lock-pause"
		m.Result.Summary = "The same pause, but every write carries the grant's token, and the resource refuses one that is behind."
		m.Result.Verdict, m.Result.Expected, m.Result.ExpectedChecks = models.Pass, "pass", ExpectedChecks{}
		m.Result.Command = "bench run lock-pause-fenced --seed 7"
	}
	return m
}

// sampleSuite has an entry of each standing.
func sampleSuite() Suite {
	runs := func(v models.Verdict, n int) []Repeat {
		var all []Repeat
		for i := range n {
			all = append(all, Repeat{Number: i + 1, Verdict: v, Standing: AsExpected, Elapsed: 6.2 + float64(i)/10,
				Dir: fmt.Sprintf("s/%d", i+1)})
		}
		return all
	}
	s := Suite{Version: "0.1.0", Command: "bench verify --tags lock --repeat 3 --controls", Elapsed: 98.3,
		Started: time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)}
	s.Entries = []Entry{
		{Scenario: "lock-baseline", Summary: "A lock under load, nothing going wrong.", Expected: "pass", Runs: runs(models.Pass, 3)},
		{Scenario: "lock-pause", Summary: "A worker is paused past its lock's TTL, then writes as if it still held it.",
			Expected: "violation: fencing, lost-update", Runs: runs(models.Violation, 3)},
		{Scenario: "lock-pause", Control: true, Expected: "none of fencing, lost-update", Runs: runs(models.Pass, 3)},
		{Scenario: "lock-renewal", Expected: "pass", Runs: runs(models.Pass, 3)},
		{Scenario: "lock-client-retry", Expected: "violation: linearizable:availability", Runs: runs(models.Violation, 3)},
		{Scenario: "lock-failover", Expected: "violation: linearizable:safety, mutual-exclusion",
			Skipped: "it needs topology sentinel, and this machine has no valkey-sentinel"},
	}
	r := &s.Entries[3].Runs[1]
	r.Verdict, r.Standing, r.Reasons = models.Violation, Contrary, []string{"mutual-exclusion was violated, which the scenario does not expect."}
	r = &s.Entries[4].Runs[2]
	r.Verdict, r.Standing, r.Reasons = models.Inconclusive, Inconclusive, []string{"Coverage faults: 1 of at least 3."}
	return s
}
