package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"fencepost.dev/models"
)

// SuiteSchema names the version of suite.json.
const SuiteSchema = "fencepost.dev/suite/1"

// Names of the files that WriteSuite writes beside JUnitFile.
const (
	SuiteFile = "suite.json"
	IndexFile = "index.html"
)

// Suite is suite.json: what `bench verify` found, one entry per scenario.
type Suite struct {
	Schema  string    `json:"schema"`
	Version string    `json:"version"`           // of Fencepost
	Command string    `json:"command,omitempty"` // runs it again
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
	// Expected says what it should come to, in words: "pass", "violation: fencing, lost-update", "none of fencing".
	Expected string `json:"expected"`
	// Skipped says why nothing was run; "": it was.
	Skipped string   `json:"skipped,omitempty"`
	Runs    []Repeat `json:"runs"`
	// Standing is the worst of the runs; AsExpected counts those that were. WriteSuite sets both.
	Standing   Standing `json:"standing"`
	AsExpected int      `json:"as_expected"`
}

// Repeat is one run of an entry.
type Repeat struct {
	Number   int            `json:"number"` // from 1
	Verdict  models.Verdict `json:"verdict"`
	Standing Standing       `json:"standing"`
	// Reasons say why it is contrary or inconclusive.
	Reasons []string `json:"reasons,omitempty"`
	Elapsed float64  `json:"elapsed_s"`
	// Dir is the run's results directory, relative to the suite's, with slashes; "": it has none.
	Dir string `json:"dir,omitempty"`
}

// Stand is the worst of an entry's runs. An entry that was neither run nor skipped proves nothing.
func (e *Entry) Stand() Standing {
	if e.Skipped != "" {
		return Skipped
	}
	worst := AsExpected
	if len(e.Runs) == 0 {
		worst = Inconclusive
	}
	for i := range e.Runs {
		switch e.Runs[i].Standing {
		case Contrary:
			return Contrary
		case AsExpected:
		default:
			worst = Inconclusive
		}
	}
	return worst
}

// Standing is the suite's: contrary if any entry is, else inconclusive if any is or if nothing was run.
func (s *Suite) Standing() Standing {
	worst, ran := AsExpected, false
	for i := range s.Entries {
		switch s.Entries[i].Stand() {
		case Contrary:
			return Contrary
		case Inconclusive:
			worst = Inconclusive
		case Skipped:
			if s.NoSkip {
				return Contrary
			}
			continue
		}
		ran = true
	}
	if !ran {
		return Inconclusive
	}
	return worst
}

// settled is the suite with what follows from its runs filled in, and empty lists instead of none.
func (s Suite) settled() Suite {
	s.Schema = SuiteSchema
	entries := make([]Entry, len(s.Entries))
	for i, e := range s.Entries {
		e.Runs = list(e.Runs)
		e.Standing = e.Stand()
		e.AsExpected = e.asExpected()
		entries[i] = e
	}
	s.Entries = entries
	return s
}

// asExpected is how many runs were.
func (e *Entry) asExpected() int {
	n := 0
	for _, run := range e.Runs {
		if run.Standing == AsExpected {
			n++
		}
	}
	return n
}

// name is what an entry is called in tables.
func (e *Entry) name() string {
	if e.Control {
		return e.Scenario + " (control)"
	}
	return e.Scenario
}

// verdicts says an entry's verdicts: "violation", or "violation ×9, inconclusive ×1".
func (e *Entry) verdicts() string {
	n := map[models.Verdict]int{}
	for _, run := range e.Runs {
		n[run.Verdict]++
	}
	var parts []string
	for _, v := range []models.Verdict{models.Violation, models.Inconclusive, models.Pass} {
		switch {
		case n[v] == 0:
		case n[v] == len(e.Runs):
			return v.String()
		default:
			parts = append(parts, fmt.Sprintf("%s ×%d", v, n[v]))
		}
	}
	return strings.Join(parts, ", ")
}

// slowest is the longest run's time, in seconds.
func (e *Entry) slowest() float64 {
	var most float64
	for _, run := range e.Runs {
		most = max(most, run.Elapsed)
	}
	return most
}

// note says why an entry isn't as expected: the reasons of the first run that isn't. Where one is as expected although its
// verdict reads as if it were not, it says why.
func (e *Entry) note() string {
	if e.Skipped != "" {
		return e.Skipped
	}
	for _, run := range e.Runs {
		if run.Standing != AsExpected {
			return strings.Join(run.Reasons, " ")
		}
	}
	for _, run := range e.Runs {
		if e.Control && run.Verdict == models.Violation {
			return "The violation is not one of those named: only these must a control be without."
		}
	}
	return ""
}

// summary says the suite in a sentence.
func (s *Suite) summary() string {
	n := map[Standing]int64{}
	for i := range s.Entries {
		n[s.Entries[i].Stand()]++
	}
	text := fmt.Sprintf("%s of %s as expected", grouped(n[AsExpected]), grouped(int64(len(s.Entries))))
	for _, standing := range []Standing{Contrary, Inconclusive, Skipped} {
		if n[standing] > 0 {
			text += fmt.Sprintf(", %s %s", grouped(n[standing]), standing)
		}
	}
	return text
}

// WriteSuite writes suite.json, junit.xml and index.html to a directory, which it makes if it has to; each file whole or not
// at all. It may be called again as a suite grows.
func WriteSuite(dir string, s Suite) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("reports: the suite's directory can't be made: %w", err)
	}
	s = s.settled()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&s); err != nil {
		return fmt.Errorf("reports: encoding %s: %w", SuiteFile, err)
	}
	if err := writeFile(dir, SuiteFile, b.Bytes()); err != nil {
		return err
	}
	junit, err := suiteJUnit(&s)
	if err != nil {
		return err
	}
	if err := writeFile(dir, JUnitFile, junit); err != nil {
		return err
	}
	page, err := suiteHTML(&s)
	if err != nil {
		return err
	}
	return writeFile(dir, IndexFile, page)
}
