package models

import (
	"fmt"
	"time"

	"fencepost.dev/history"
)

// Verdict is what a check, or a run, concludes. Greater outranks lesser when they combine: a crashed check or thin coverage
// never reads as a pass, and nothing hides a proven violation.
type Verdict uint8

const (
	Pass Verdict = iota
	Inconclusive
	Violation
)

var verdictNames = [...]string{"pass", "inconclusive", "violation"}

func (v Verdict) String() string { return verdictNames[v] }

// MarshalText makes verdicts words in JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (v *Verdict) UnmarshalText(text []byte) error {
	for i, name := range verdictNames {
		if name == string(text) {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("models: no verdict is called %q", text)
}

// Severity says how a linearizability violation hurts. Invariants have none.
type Severity string

const (
	// Safety: the history is impossible even if every refusal is excused.
	Safety Severity = "safety"
	// Availability: only a refusal is impossible: refused although free.
	Availability Severity = "availability"
)

// Finding is one thing that is wrong, with the operations that prove it.
type Finding struct {
	Severity Severity
	// Summary is one sentence that a person can act on, with names and times.
	Summary string
	Key     string
	At      int64 // when it became certain, ns since the run's epoch
	// Operations are the witness, in the order in which they should be told. Resource attempts among them are the witness
	// register's own records.
	Operations []history.Operation
	// Notes say, one for each of Operations, what it contributes ("granted at …; could not have expired before …"); "" where
	// there's nothing to add. Nil or as long as Operations.
	Notes []string
}

// Report is a check's answer.
type Report struct {
	Check    string
	Verdict  Verdict
	Reason   string // why it is inconclusive; for people
	Findings []Finding
	// More counts findings beyond those listed (a broken lock breaks a thousand times).
	More int
	// Missed counts the objects on which the stream engine, asked beside Porcupine, passed what Porcupine rejects: what its
	// relaxation of timed specs costs. Their violations are among the findings.
	Missed int
	// Disagreements counts the objects on which the engines differ where they must not. A run that has any proves no pass.
	Disagreements int
	// SeverityOpen says why it could not be decided whether a violation of availability is one of safety too; "" if it could.
	SeverityOpen string
	// Decided counts the operations that the check judged; a check that judged none proves nothing.
	Decided int
	Elapsed time.Duration
}
