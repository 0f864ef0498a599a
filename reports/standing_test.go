package reports

import (
	"strings"
	"testing"

	"fencepost.dev/models"
)

// What was found and what was to be shown are two things: a violation that is proven is never said to prove nothing.
func TestStandingSentence(t *testing.T) {
	must := ExpectedChecks{Must: []string{"fencing", "lost-update"}}
	for _, c := range []struct {
		name   string
		result Result
		want   string
	}{
		{"as expected", Result{Expected: "violation", ExpectedChecks: must, Verdict: models.Violation, AsExpected: true}, "As expected: a violation of fencing and lost-update."},
		{"nothing", Result{Expected: "pass", Verdict: models.Inconclusive, Unproven: true}, "It proves nothing. Expected: no violation."},
		{"half of it", Result{Expected: "violation", ExpectedChecks: must, Verdict: models.Violation, Unproven: true, Checks: []Check{
			{Name: "fencing", Verdict: models.Violation}, {Name: "lost-update", Verdict: models.Inconclusive}}},
			"A violation is proven: fencing. Not settled: lost-update, where one was expected."},
		{"another, and none of it", Result{Expected: "violation", ExpectedChecks: ExpectedChecks{Must: must.Must, May: []string{"linearizable"}},
			Verdict: models.Violation, Unproven: true, Checks: []Check{{Name: "linearizable", Verdict: models.Violation, Severity: models.Safety},
				{Name: "fencing", Verdict: models.Inconclusive}, {Name: "lost-update"}}},
			"A violation is proven: linearizable. Not settled: fencing and lost-update, where one was expected."},
		{"a lesser one", Result{Expected: "violation", ExpectedChecks: ExpectedChecks{Must: []string{"linearizable:safety"}}, Verdict: models.Violation, Unproven: true,
			Checks: []Check{{Name: "linearizable", Verdict: models.Violation, Severity: models.Availability}}},
			"A violation is proven: linearizable (availability). Not settled: linearizable:safety, where one was expected."},
		{"all of it, and a threshold that is open", Result{Expected: "violation", ExpectedChecks: ExpectedChecks{Must: []string{"fencing"}}, Verdict: models.Violation,
			Unproven: true, Thresholds: []Threshold{{Undecided: true}}, Checks: []Check{{Name: "fencing", Verdict: models.Violation}}},
			"A violation is proven: fencing. Not settled: whether the run is otherwise as expected (a violation of fencing)."},
		{"something else", Result{Expected: "violation", ExpectedChecks: must, Verdict: models.Pass}, "Not as expected"},
	} {
		if got := standingSentence(&c.result); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What never started is told in every form for people, and a threshold that it leaves open is neither met nor missed.
func TestWhatNeverStartedIsTold(t *testing.T) {
	m := lockPause(true)
	m.Result.Load.Arrivals, m.Result.Load.Unstarted = 4000, 100
	m.Result.Thresholds = []Threshold{{Metric: "acquire p99", Want: "below 5ms", Got: 0.001, Unit: "s", Undecided: true}}
	m.Result.AsExpected, m.Result.Unproven = false, true
	page, err := renderHTML(&m, nil)
	if err != nil {
		t.Fatal(err)
	}
	const warning = "100 of 4,000 arrivals (2.5%) never started"
	for form, text := range map[string][]byte{"terminal": terminal(t, m, Options{Width: 120}), "Markdown": md(t, m), "HTML": page} {
		if !strings.Contains(string(text), warning) {
			t.Errorf("%s doesn't say %q", form, warning)
		}
	}
	if s := m.Result.Standing(); s != Inconclusive {
		t.Errorf("an undecided threshold makes the run %s", s)
	}
	for _, c := range parseJUnit(t, junit(t, m)).Suites[0].Cases {
		if c.Name == "threshold acquire p99" && (c.Error == nil || c.Failure != nil) {
			t.Errorf("JUnit has it as %+v", c)
		}
	}
	m.Result.Load.Unstarted = 0
	if strings.Contains(string(md(t, m)), "never started") {
		t.Error("a warning of nothing")
	}
}
