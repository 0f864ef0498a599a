package models

import (
	"maps"
	"testing"
)

// each counter that a story makes count, and no other, has the value that is wanted.
func TestCoverage(t *testing.T) {
	for _, c := range []struct {
		name     string
		contract Contract
		story    string
		want     map[string]int64
	}{
		{"nothing", Contract{}, ``, map[string]int64{}},
		{"answers", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			w1/c0 extend k 5..6 ok A
			w1/c0 read k 6..7 ok A
			w1/c0 release k 10..11 ok A
			w2/c0 acquire k 20..21 unknown B
			w2/c0 acquire k 22..23 failed C`,
			map[string]int64{"operations": 5, "granted": 1, "extended": 1, "released": 1, "unknown": 1, "failed": 1}},
		{"refused while another is certain", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			w2/c0 acquire k 10..11 refused B`,
			map[string]int64{"operations": 2, "granted": 1, "refused": 1, "contended": 1}},
		{"refused when it may have expired", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			w2/c0 acquire k 97..99 refused B`,
			map[string]int64{"operations": 2, "granted": 1, "refused": 1}},
		{"refused what one holds oneself", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			w1/c0 acquire k 10..11 refused B`,
			map[string]int64{"operations": 2, "granted": 1, "refused": 1}},
		{"refused another lock", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			w2/c0 acquire j 10..11 refused B`,
			map[string]int64{"operations": 2, "granted": 1, "refused": 1}},
		{"contended behind holds that are over", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			w1/c0 release k 2..3 ok A
			w1/c0 acquire k 4..5 ok B
			w2/c0 acquire k 1..1.5 refused C
			w2/c0 acquire k 10..11 refused D`,
			map[string]int64{"operations": 5, "granted": 2, "released": 1, "refused": 2, "contended": 2}},
		{"lost", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			w1/c0 lost k 5..5 ok A
			w1/c0 release k 6..7 refused A
			w2/c0 extend k 6..7 refused B`,
			map[string]int64{"operations": 3, "granted": 1, "grants-lost": 2}},
		{"attempts", Contract{}, `
			= w1/c0 read k 1 ok A
			= w1/c0 write k 2 ok A
			= w2/c0 read k 3 refused B
			= w2/c0 write k 4 refused B`,
			map[string]int64{"reads": 2, "reads-refused": 1, "writes": 2, "writes-accepted": 1, "writes-refused": 1}},
		{"a write that a later grant's read kept out", Contract{}, `
			= w1/c0 read k 1 ok A token=1
			= w2/c0 read k 2 ok B token=2
			= w1/c0 write k 3 refused A token=1`,
			map[string]int64{"reads": 2, "writes": 1, "writes-refused": 1, "writes-refused-after-read": 1}},
		{"a write that a later grant's write would have kept out", Contract{}, `
			= w2/c0 read k 2 ok B token=2
			= w2/c0 write k 3 ok B token=2
			= w3/c0 read k 4 ok C token=3
			= w1/c0 write k 5 refused A token=1`,
			map[string]int64{"reads": 2, "writes": 2, "writes-accepted": 1, "writes-refused": 1}},
		{"a write refused for want of a token, or on another key", Contract{}, `
			= w2/c0 read k 2 ok B token=2
			= w1/c0 write k 3 refused A
			= w1/c0 write j 4 refused A token=1`,
			map[string]int64{"reads": 1, "writes": 2, "writes-refused": 2}},
		{"a read that was refused raises nothing", Contract{}, `
			= w2/c0 read k 2 refused B token=2
			= w1/c0 write k 3 refused A token=1`,
			map[string]int64{"reads": 1, "reads-refused": 1, "writes": 1, "writes-refused": 1}},
		{"a write after the expiry", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			= w1/c0 write k 103.1 ok A`,
			map[string]int64{"operations": 1, "granted": 1, "writes": 1, "writes-accepted": 1, "writes-after-expiry": 1}},
		{"a write when it may have expired", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			= w1/c0 write k 103 ok A`,
			map[string]int64{"operations": 1, "granted": 1, "writes": 1, "writes-accepted": 1}},
		{"a write under a grant that never expires", Contract{}, `
			w1/c0 acquire k 0..1 ok A ttl=0
			= w1/c0 write k 5000 ok A`,
			map[string]int64{"operations": 1, "granted": 1, "writes": 1, "writes-accepted": 1}},
		{"a read after the expiry", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			= w1/c0 read k 500 ok A`,
			map[string]int64{"operations": 1, "granted": 1, "reads": 1}},
		{"a write after an extension that may have worked", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			w1/c0 extend k 50..51 unknown A
			= w1/c0 write k 150 ok A`,
			map[string]int64{"operations": 2, "granted": 1, "unknown": 1, "writes": 1, "writes-accepted": 1}},
		{"a write under a lease that renews itself", Contract{Renews: RenewsItself}, `
			w1/c0 acquire k 0..1 ok A
			= w1/c0 write k 5000 ok A`,
			map[string]int64{"operations": 1, "granted": 1, "writes": 1, "writes-accepted": 1}},
		{"the same after its loss was reported", Contract{Renews: RenewsItself}, `
			w1/c0 acquire k 0..1 ok A
			w1/c0 lost k 50..50 ok A
			= w1/c0 write k 5000 ok A`,
			map[string]int64{"operations": 1, "granted": 1, "grants-lost": 1, "writes": 1, "writes-accepted": 1, "writes-after-expiry": 1}},
		{"a late write that a resource without a log was sent", Contract{}, `
			w1/c0 acquire k 0..1 ok A
			w1/c0 write k 104..105 ok A`,
			map[string]int64{"operations": 1, "granted": 1, "writes-after-expiry": 1}},
		{"faults", Contract{}, `
			w1/c0 acquire k 0..1 ok A node=1
			! pause w1 10..20
			! pause valkey/0 2..20
			! missed w1 30
			! died w1 40`,
			map[string]int64{"operations": 1, "granted": 1, "faults": 2, "trap-missed": 1, "worker-deaths": 1}},
		{"held across a fault of the store", Contract{}, `
			w1/c0 acquire k 0..1 ok A node=0
			w1/c0 release k 50..51 ok A
			! pause valkey/0 2..49`,
			map[string]int64{"operations": 2, "granted": 1, "released": 1, "faults": 1, "holds-across-fault": 1}},
		{"let go during it", Contract{}, `
			w1/c0 acquire k 0..1 ok A node=0
			w1/c0 release k 48..49 ok A
			! pause valkey/0 2..49`,
			map[string]int64{"operations": 2, "granted": 1, "released": 1, "faults": 1}},
		{"got during it", Contract{}, `
			w1/c0 acquire k 0..3 ok A node=0
			! pause valkey/0 2..49`,
			map[string]int64{"operations": 1, "granted": 1, "faults": 1}},
		{"held across the instant of a fault", Contract{}, `
			w1/c0 acquire k 0..1 ok A node=0
			! flush valkey/0 50..`,
			map[string]int64{"operations": 1, "granted": 1, "faults": 1, "holds-across-fault": 1}},
		{"held across a fault that was not undone", Contract{}, `
			w1/c0 acquire k 0..1 ok A node=0
			! pause valkey/0 50..`,
			map[string]int64{"operations": 1, "granted": 1, "faults": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Count(prepared(t, c.story, PrepareOptions{Contract: c.contract}))
			for name, n := range got {
				if n == 0 {
					delete(got, name)
				}
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

func TestCountersAreExplained(t *testing.T) {
	counts := Count(prepared(t, ``, PrepareOptions{}))
	for _, c := range Counters() {
		if _, counted := counts[c.Name]; !counted || c.About == "" {
			t.Errorf("%+v", c)
		}
	}
	if len(counts) != len(Counters()) {
		t.Errorf("%d counters are listed and %d counted", len(Counters()), len(counts))
	}
}

func TestTemper(t *testing.T) {
	const grant = "w1/c0 acquire k 0..1 ok A\n w2/c0 acquire k 0..1 refused B\n"
	mayFence, mustFence := Expectation{Must: []string{"lost-update"}, May: []string{"fencing"}}, Expectation{Must: []string{"fencing"}}
	for _, c := range []struct {
		name   string
		check  string
		story  string
		fenced bool
		expect Expectation
		want   Verdict
	}{
		{"a stall", "fencing", grant + "! stall w1 100..126", false, Expectation{Pass: true}, Inconclusive},
		{"a stall that is short", "fencing", grant + "! stall w1 100..125", false, Expectation{Pass: true}, Violation},
		{"a stall of the coordinator", "lost-update", grant + "! stall - 100..126", false, Expectation{Pass: true}, Inconclusive},
		{"a stall, and a fenced resource", "fencing", grant + "! stall w1 100..126", true, Expectation{Pass: true}, Violation},
		{"a stall, and a check that uses measured intervals", "mutual-exclusion", grant + "! stall w1 100..126", false, Expectation{Pass: true}, Violation},
		{"a stall where it must fail", "fencing", grant + "! stall w1 100..126", false, mustFence, Violation},
		{"a stall where it may fail", "fencing", grant + "! stall w1 100..126", false, mayFence, Violation},
		{"a stall where another must fail", "lost-update", grant + "! stall w1 100..126", false, mustFence, Inconclusive},
		{"a pause on purpose", "fencing", grant + "! pause w1 101..800 \n ! stall w1 100..810", false, Expectation{Pass: true}, Violation},
		{"a stall beyond the pause", "fencing", grant + "! pause w1 101..800 \n ! stall w1 100..826", false, Expectation{Pass: true}, Inconclusive},
		{"a stall beyond two pauses at once", "fencing", grant + "! pause w1 101..800\n ! pause w1 300..810\n ! stall w1 100..840", false, Expectation{Pass: true}, Inconclusive},
		{"another's pause", "fencing", grant + "! pause w2 101..800 \n ! stall w1 100..810", false, Expectation{Pass: true}, Inconclusive},
		{"a clock that moved", "linearizable", grant + "! clock w1 100..110 delay=2.1", false, mustFence, Inconclusive},
		{"a clock that drifted as allowed", "linearizable", grant + "! clock w1 100..110 delay=2", false, mustFence, Violation},
		{"a clock that drifted as allowed, for long", "linearizable", grant + "! clock w1 0..1000 delay=11", false, mustFence, Violation},
		{"a clock that moved is no stall", "fencing", grant + "! clock w1 100..300 delay=1", false, Expectation{Pass: true}, Violation},
		{"a clock that moved, and tokens", "token-order", grant + "! clock w1 100..110 delay=50", false, Expectation{Pass: true}, Violation},
		{"a clock that moved, and prompt clients", "fencing", grant + "! clock w1 100..110 delay=50", false, Expectation{Pass: true}, Inconclusive},
		{"a clock that moved, and a fence", "fencing", grant + "! clock w1 100..110 delay=50", true, Expectation{Pass: true}, Violation},
		{"nothing", "fencing", grant, false, Expectation{Pass: true}, Violation},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := prepared(t, c.story, PrepareOptions{Fenced: c.fenced})
			before := []Report{{Check: c.check, Verdict: Violation}, {Check: "fencing", Verdict: Pass}}
			after := Temper(in, c.expect, before)
			if after[0].Verdict != c.want || (c.want == Inconclusive) != (after[0].Reason != "") {
				t.Errorf("%s, %q, want %s", after[0].Verdict, after[0].Reason, c.want)
			}
			if before[0].Verdict != Violation || after[1].Verdict != Pass {
				t.Error("it changed what it should not")
			}
		})
	}
}

// A pass that rests on expiries is none if a real-time clock moved; one that does not rest on them stays.
func TestTemperOfPasses(t *testing.T) {
	const grant = "w1/c0 acquire k 0..1 ok A\n w2/c0 acquire k 0..1 refused B\n"
	for _, c := range []struct {
		name, check, story string
		want               Verdict
	}{
		{"a clock that moved", "linearizable", "! clock w1 100..110 delay=2.1", Inconclusive},
		{"a clock that went back", "mutual-exclusion", "! clock w1 100..110 delay=-50", Inconclusive},
		{"a clock that drifted as allowed", "linearizable", "! clock w1 100..110 delay=2", Pass},
		{"a clock that moved, and tokens", "token-order", "! clock w1 100..110 delay=50", Pass},
		{"a stall", "linearizable", "! stall w1 100..900", Pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := prepared(t, grant+c.story, PrepareOptions{})
			after := Temper(in, Expectation{Pass: true}, []Report{{Check: c.check, Verdict: Pass, Decided: 1}})
			if after[0].Verdict != c.want || (c.want == Inconclusive) != (after[0].Reason != "") {
				t.Errorf("%s, %q, want %s", after[0].Verdict, after[0].Reason, c.want)
			}
		})
	}
}
