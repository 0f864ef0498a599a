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
		{"half of it", Result{Expected: "violation", ExpectedChecks: must, Verdict: models.Violation, Unproven: true}, "The violation is proven, and does not settle"},
		{"something else", Result{Expected: "violation", ExpectedChecks: must, Verdict: models.Pass}, "Not as expected"},
	} {
		if got := standingSentence(&c.result); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
