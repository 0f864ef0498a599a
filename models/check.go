package models

import (
	"context"
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

// Check judges a recorded history by one rule. Run does not modify its Input and is safe to call concurrently. A cancelled
// context or an exhausted Limit gives Inconclusive with a reason, never a pass; a panic inside is turned into Inconclusive by
// Judge.
type Check struct {
	// Name is how scenarios call it, such as "mutual-exclusion".
	Name string
	// About says in a sentence what holds if it passes.
	About string
	// Primitives lists those it applies to.
	Primitives []string
	// Severities are those that its findings have, for expectations that name one; nil: its findings have none.
	Severities []Severity
	// Prompt: it assumes that clients act promptly where the resource is unfenced or the store is away; a long stall makes a
	// violation of it inconclusive in a scenario that expects it to pass (docs/semantics.md, "Stalls").
	Prompt bool
	// expires: it rests on time-to-lives, and so on the real-time clocks of stores.
	expires bool
	// needsCalls and needsAttempts: what is missing of the clients' operations, or of the witness's log, can make an honest
	// subject look like one that broke it. A violation of any other check stands on what is there.
	needsCalls, needsAttempts bool

	Run func(context.Context, *Input) Report
}

// Input is all that checks may look at. It is the recorded run, after Prepare.
type Input struct {
	Primitive string
	Contract  Contract
	// Operations of clients in order of Call: intervals widened by each process's clock error, unknown ones marked Optional
	// with their bound as Return (Unbounded if none).
	Operations []history.Operation
	// Resource holds the witness's own log, in Sequence order per key. Fenced: it enforced tokens.
	Resource []history.Operation
	Fenced   bool
	Events   []history.Event
	// Gap says what of the clients' operations is missing, in words, and ResourceGap what of the witness's log; "" if nothing
	// is. What rests on nothing missing can't accuse anybody then.
	Gap, ResourceGap string
	Names            *history.Names
	// End is when the last final read was done: no operation was open after it.
	End   int64
	Limit Limit
	// Drift is ρ: how much faster or slower than the coordinator's a store's clock may run (0.001 is 0.1%).
	Drift float64
	// Granularity is g: the store's expiry granularity, and a client's own lag in noticing it.
	Granularity time.Duration
	// Parameters are the workload's, for specs that need them (a bucket's capacity and rate).
	Parameters map[string]any
}

// Limit bounds what deciding may cost.
type Limit struct {
	Time   time.Duration // per check; 0: a minute
	Memory int64         // bytes, per check; 0: 1 GiB
	// Engine decides linearizability; "": Porcupine where an object has at most a few thousand operations, and the stream engine
	// where it has more or Porcupine can't decide it in its memory or half of the time that is left.
	Engine Engine
	// Parallel is how many partitions are decided at once; 0: as many as there are CPUs.
	Parallel int
	// Progress, if not nil, is told now and then how many operations have been decided. It must not block.
	Progress func(decided int)
}

// Engine names who decides linearizability.
type Engine string

const (
	EngineStream    Engine = "stream"
	EnginePorcupine Engine = "porcupine"
	// EngineBoth runs both and compares: a difference is an error of ours, and loud.
	EngineBoth Engine = "both"
)
