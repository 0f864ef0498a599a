package reports

import (
	"io"
	"time"

	"fencepost.dev/models"
)

// SuiteSchema names the version of suite.json.
const SuiteSchema = "fencepost.dev/suite/1"

// Suite is suite.json: what `bench verify` found, one entry per scenario.
type Suite struct {
	Schema  string    `json:"schema"`
	Version string    `json:"version"` // of Fencepost
	Started time.Time `json:"started"`
	Elapsed float64   `json:"elapsed_s"`
	// NoSkip: a skipped scenario counts as contrary.
	NoSkip   bool    `json:"no_skip,omitempty"`
	CutShort bool    `json:"cut_short,omitempty"`
	Entries  []Entry `json:"scenarios"`
}

// Entry is one scenario of a suite, or its control.
type Entry struct {
	Scenario string `json:"scenario"`
	Summary  string `json:"summary,omitempty"`
	Control  bool   `json:"control,omitempty"` // the scenario without its cause
	// Expected says what it should come to, in words: "pass", "violation: fencing, lost-update".
	Expected string `json:"expected"`
	// Skipped says why nothing was run; "": it was.
	Skipped string   `json:"skipped,omitempty"`
	Runs    []Repeat `json:"runs"`
}

// Repeat is one run of an entry.
type Repeat struct {
	Number   int            `json:"number"` // from 1
	Verdict  models.Verdict `json:"verdict"`
	Standing Standing       `json:"standing"`
	Reasons  []string       `json:"reasons,omitempty"`
	Elapsed  float64        `json:"elapsed_s"`
	// Dir is the run's results directory, relative to the suite's; "": it has none.
	Dir string `json:"dir,omitempty"`
}

// Standing is how what came out stands to what was expected.
type Standing string

const (
	AsExpected   Standing = "as expected"
	Contrary     Standing = "contrary"     // a proven contradiction, or a threshold missed
	Inconclusive Standing = "inconclusive" // it proves nothing
	Skipped      Standing = "skipped"
)

// Standing is how a result stands to what was expected of it.
func (r *Result) Standing() Standing {
	for _, t := range r.Thresholds {
		if !t.Met {
			return Contrary
		}
	}
	switch {
	case r.AsExpected:
		return AsExpected
	case r.Verdict == models.Inconclusive:
		return Inconclusive
	}
	return Contrary
}

// WriteSuite writes suite.json, junit.xml and index.html.
func WriteSuite(dir string, s Suite) error { return errSkeleton }

// SuiteTerminal prints the table of a suite.
func SuiteTerminal(w io.Writer, s Suite, o Options) error { return errSkeleton }
