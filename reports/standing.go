package reports

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/models"
)

// Standing is how what came out stands to what was expected.
type Standing string

const (
	AsExpected   Standing = "as expected"
	Contrary     Standing = "contrary"     // a contradiction of what was expected, or a threshold missed
	Inconclusive Standing = "inconclusive" // it proves nothing
	Skipped      Standing = "skipped"      // nothing was run; suites only
)

// Standing is how a result stands to what was expected of it. A missed threshold makes it contrary.
func (r *Result) Standing() Standing {
	switch {
	case missed(r):
		return Contrary
	case r.AsExpected:
		return AsExpected
	case r.Unproven:
		return Inconclusive
	}
	return Contrary
}

// missed reports whether a threshold is.
func missed(r *Result) bool {
	return slices.ContainsFunc(r.Thresholds, func(t Threshold) bool { return !t.Met && !t.Undecided })
}

// expectation says what the scenario expects.
func expectation(r *Result) string {
	if r.Expected == "violation" {
		if len(r.ExpectedChecks.Must) == 0 {
			return "a violation"
		}
		return "a violation of " + cleanText(and(r.ExpectedChecks.Must))
	}
	return "no violation"
}

// standingSentence says how the verdict stands to what was expected.
func standingSentence(r *Result) string {
	expected := expectation(r)
	switch r.Standing() {
	case AsExpected:
		return "As expected: " + expected + "."
	case Inconclusive:
		if r.Verdict == models.Violation {
			return unsettled(r)
		}
		return "It proves nothing. Expected: " + expected + "."
	}
	amiss := func(c Check) bool { _, amiss := remark(r, &c); return amiss }
	if missed(r) && !slices.ContainsFunc(r.Checks, amiss) {
		return "A threshold is missed."
	}
	return "Not as expected: it was to show " + expected + "."
}

// unsettled says of a run that proves a violation, and not what it was to show, which check is which.
func unsettled(r *Result) string {
	var proven, open []string
	for i := range r.Checks {
		c := &r.Checks[i]
		role, severity := role(r, c.Name)
		name := cleanName(c.Name)
		text, _ := remark(r, c)
		if c.Verdict == models.Violation {
			if severity != "" && c.Severity != severity {
				proven = append(proven, name+" ("+string(c.Severity)+")")
			} else {
				proven = append(proven, name)
			}
		}
		if role == "must" && text != "expected" {
			if severity != "" {
				name += ":" + string(severity)
			}
			open = append(open, name)
		}
	}
	text := "A violation is proven"
	if len(proven) > 0 {
		text += ": " + and(proven)
	}
	if len(open) > 0 {
		return text + ". Not settled: " + and(open) + ", where one was expected."
	}
	return text + ". Not settled: whether the run is otherwise as expected (" + expectation(r) + ")."
}

// role is what a scenario expects of a check: that it must, or may, show a violation, and at which severity ("": any).
func role(r *Result, check string) (role string, severity models.Severity) {
	named := func(entries []string) (models.Severity, bool) {
		i := slices.IndexFunc(entries, func(e string) bool { name, _, _ := strings.Cut(e, ":"); return name == check })
		if i < 0 {
			return "", false
		}
		_, graded, _ := strings.Cut(entries[i], ":")
		return models.Severity(graded), true
	}
	if severity, ok := named(r.ExpectedChecks.Must); ok {
		return "must", severity
	}
	if severity, ok := named(r.ExpectedChecks.May); ok {
		return "may", severity
	}
	return "", ""
}

// remark says how a check stands to what was expected of it; "" where there is nothing to say. amiss: it is what makes a run
// contrary that is.
func remark(r *Result, c *Check) (text string, amiss bool) {
	role, severity := role(r, c.Name)
	violated := c.Verdict == models.Violation
	graver := violated && severity == models.Availability && c.Severity == models.Safety
	anything := r.Expected == "violation" && len(r.ExpectedChecks.Must) == 0 // any violation will do
	switch {
	case graver:
		return "graver than expected", true
	case role == "must" && violated && (severity == "" || severity == c.Severity):
		return "expected", false
	case role == "must":
		kind := "a violation"
		if severity != "" {
			kind = "a violation of " + string(severity)
		}
		return kind + " was expected", c.Verdict != models.Inconclusive
	case role == "may" && violated:
		return "may fail here", false
	case violated && !anything:
		return "not expected", true
	}
	return "", false
}

// drawnAs is the verdict whose sign and colour a check gets: a pass that keeps the run from showing what it is there to show
// gets no tick.
func drawnAs(r *Result, c *Check) models.Verdict {
	if _, amiss := remark(r, c); amiss && c.Verdict == models.Pass {
		return models.Inconclusive
	}
	return c.Verdict
}

// sentence says that the load was ended, and why.
func (s *Stopped) sentence() string {
	return fmt.Sprintf("The load was stopped at %s, when a violation on %s was certain: the answer that made it one came at %s.",
		clock(s.At, 3), cleanName(s.Key), clock(s.Violation, 3))
}
