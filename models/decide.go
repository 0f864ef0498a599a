package models

import (
	"fmt"
	"slices"
	"strings"
)

// Expectation is the verdict that a scenario is there to show.
type Expectation struct {
	// Pass: no check but those of May finds a violation. Otherwise each of Must does, and none outside Must and May.
	Pass bool
	// Must and May name checks, "linearizable:safety" for one at that severity.
	Must, May []string
	// Loose: as said on the command line. Any violation will do, or none at all may be found.
	Loose bool
}

// Evidence is what a run has to show.
type Evidence struct {
	Reports []Report
	// Need is the least that must have happened, by counter, and Got what did.
	Need, Got map[string]int64
	// Troubles say what else keeps the run from proving anything: a program that died, files that are missing. Like thin
	// coverage they withhold a pass and never hide a violation.
	Troubles []string
}

// Standing is how a run stands to what was expected of it.
type Standing uint8

const (
	AsExpected    Standing = iota
	Contrary               // it shows something else
	ProvesNothing          // it shows neither
)

// Decision is what a run concludes.
type Decision struct {
	Verdict  Verdict
	Standing Standing
	// Reasons say why it does not stand as expected, one sentence each.
	Reasons []string
}

// AsExpected reports whether the run shows what it was expected to.
func (d Decision) AsExpected() bool { return d.Standing == AsExpected }

// Exit is the exit status that the decision calls for, thresholds apart: 0, 1 or 3.
func (d Decision) Exit() int {
	switch d.Standing {
	case AsExpected:
		return 0
	case Contrary:
		return 1
	default:
		return 3
	}
}

var _ = fmt.Sprint
var _ = slices.Contains[[]string]
var _ = strings.Cut

// Validate says what is wrong with an expectation of a run with these checks, before it is run.
func (e Expectation) Validate(checks []string) error { return nil }

// Decide combines the reports into one verdict and holds it against the expectation. An error is a configuration error: an
// expectation of a check that did not run.
func Decide(e Expectation, v Evidence) (Decision, error) { return Decision{}, nil }
