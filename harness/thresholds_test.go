package harness

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/history"
	"fencepost.dev/load"
	"fencepost.dev/models"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
)

// TestLatencyWithoutWhatNeverStarted: arrivals that never started are in no percentile, so too many of them leave open what
// the others meet; what those miss stays missed, and what is bounded from below stays met.
func TestLatencyWithoutWhatNeverStarted(t *testing.T) {
	recorder := load.NewRecorder(1)
	for at := int64(1e9); at < 2e9; at += 1e7 {
		recorder.Record(0, &history.Operation{Kind: history.Acquire, Outcome: history.OK, Call: at, Return: at + 1e6}, at)
		slow := int64(1e6)
		if at%1e8 == 0 { // one in ten
			slow = 2e7
		}
		recorder.Record(0, &history.Operation{Kind: history.Release, Outcome: history.OK, Call: at, Return: at + slow}, at)
	}
	log := load.NewLog()
	for _, i := range recorder.Take(3e9) {
		if err := log.Add(i); err != nil {
			t.Fatal(err)
		}
	}
	bound := func(v float64) *float64 { return &v }
	below, above := func(v float64) scenarios.Threshold { return scenarios.Threshold{Below: bound(v), Text: "below"} }, scenarios.Threshold{Above: bound(1e-6), Text: "above"}
	for _, c := range []struct {
		name      string
		unstarted int64 // of 10,000
		metric    string
		bound     scenarios.Threshold
		met, open bool
	}{
		{"all started", 0, "acquire p99", below(0.01), true, false},
		{"1 in 1000", 10, "acquire max", below(0.01), true, false},
		{"more, of the longest", 11, "acquire max", below(0.01), false, true},
		{"a percentile that holds with all of them", 11, "acquire p99", below(0.01), true, false},
		{"more than are above it", 101, "acquire p99", below(0.01), false, true},
		{"as many as leave it among the quick", 100, "release p88", below(0.01), true, false},
		{"as many as put it among the slow", 300, "release p88", below(0.01), false, true},
		{"among the slow, which are quick enough", 300, "release p88", below(0.03), true, false},
		{"missed all the same", 11, "mean", below(1e-6), false, false},
		{"bounded from below", 101, "p99", above, true, false},
		{"no latency", 11, "errors", below(0.01), true, false},
		{"bounded itself", 10, "never-started", below(0.001), true, false},
		{"bounded itself, missed", 11, "never-started", below(0.001), false, false},
	} {
		e := &evidence{log: log, record: &runRecord{}, history: &history.History{}, scenario: &scenarios.Scenario{Thresholds: map[string]scenarios.Threshold{c.metric: c.bound}}}
		r := &reports.Result{AsExpected: true, Load: reports.Load{Arrivals: 10_000, Unstarted: c.unstarted}}
		e.holdThresholds(r)
		if len(r.Thresholds) != 1 || r.Thresholds[0].Met != c.met || r.Thresholds[0].Undecided != c.open {
			t.Errorf("%s: %+v", c.name, r.Thresholds)
			continue
		}
		want := map[bool]reports.Standing{true: reports.AsExpected, false: reports.Contrary}[c.met]
		if c.open {
			want = reports.Inconclusive
			if r.Verdict != models.Inconclusive || !strings.Contains(strings.Join(r.Reasons, " "), fmt.Sprintf("%d of 10,000 arrivals", c.unstarted)) {
				t.Errorf("%s: %s, because %q", c.name, r.Verdict, r.Reasons)
			}
		}
		if got := r.Standing(); got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}
