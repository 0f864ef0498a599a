// Package reports is what came out of a run: Result, which is verdict.json, and its forms for people and for CI.
package reports

import (
	"fmt"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

// Schema names the version of verdict.json. docs/verdict.schema.json describes it.
const Schema = "fencepost.dev/verdict/1"

// Result is verdict.json: all that a run concluded. Every other report is made from it and the recorded history.
type Result struct {
	Schema   string    `json:"schema"`
	Run      string    `json:"run"` // the run's id
	Scenario string    `json:"scenario"`
	Summary  string    `json:"summary"`
	Subject  string    `json:"subject"`
	Seed     uint64    `json:"seed"`
	Started  time.Time `json:"started"`
	Elapsed  float64   `json:"elapsed_s"`

	Verdict        models.Verdict `json:"verdict"`
	Expected       string         `json:"expected"` // "pass" or "violation"
	ExpectedChecks ExpectedChecks `json:"expected_checks"`
	AsExpected     bool           `json:"as_expected"` // and no threshold is missed
	// Unproven: the run shows neither what was expected nor the contrary. Its verdict can still be a violation, of another
	// check than those that were to fail.
	Unproven bool `json:"unproven,omitempty"`
	// Reasons say why it is not as expected, or proves nothing: one sentence each.
	Reasons  []string `json:"reasons,omitempty"`
	CutShort bool     `json:"cut_short,omitempty"` // interrupted, or its runner died
	// Stopped: the load was ended when a violation was certain, as --stop-on-violation asks. Nil: it went on to its end.
	Stopped *Stopped `json:"stopped,omitempty"`

	Checks     []Check             `json:"checks"`
	Coverage   map[string]Coverage `json:"coverage"`
	Thresholds []Threshold         `json:"thresholds"`
	Load       Load                `json:"load"`
	Faults     []history.Event     `json:"faults"`
	Stalls     []history.Event     `json:"stalls"`

	Environment Environment `json:"environment"`
	Command     string      `json:"command"` // reproduces the run

	// Explains is the scenario's own explanation, Markdown.
	Explains string `json:"explains,omitempty"`
	Pair     string `json:"pair,omitempty"`
}

// Stopped is why and when a run's load was ended before its time. Times are in ns since the run's epoch.
type Stopped struct {
	At        int64  `json:"at_ns"` // when the load was told to stop
	Key       string `json:"key"`
	Violation int64  `json:"violation_ns"` // the answer that made it one
}

// ExpectedChecks are those that must, and those that may, show a violation.
type ExpectedChecks struct {
	Must []string `json:"must"`
	May  []string `json:"may"`
}

// Check is one check's answer.
type Check struct {
	Name     string          `json:"name"`
	About    string          `json:"about,omitempty"`
	Verdict  models.Verdict  `json:"verdict"`
	Severity models.Severity `json:"severity"` // "" unless the check is linearizable and found something
	Reason   string          `json:"reason,omitempty"`
	Decided  int             `json:"decided"`
	Findings []Finding       `json:"findings"`
	More     int             `json:"more_findings,omitempty"`
	// Missed counts the objects whose violation the second engine found and the first, a relaxation, did not.
	Missed int `json:"missed_by_stream,omitempty"`
}

// Finding is one thing that is wrong, with its witness.
type Finding struct {
	Summary    string          `json:"summary"`
	Severity   models.Severity `json:"severity,omitempty"`
	Key        string          `json:"key"`
	At         int64           `json:"at_ns"`
	Operations []Operation     `json:"operations"`
}

// Operation is one operation of a witness, with names instead of numbers.
type Operation struct {
	Kind      string `json:"kind"`
	Primitive string `json:"primitive"`
	Client    string `json:"client"`
	Call      int64  `json:"call_ns"`
	Return    int64  `json:"return_ns"`
	Outcome   string `json:"outcome"`
	Key       string `json:"key"`
	Error     string `json:"error,omitempty"`
	Synthetic bool   `json:"synthetic,omitempty"`
	// Fields are the kind's own, by their names in docs/history.md: token, ttl_ns, grant, generation, version, sequence, …
	Fields map[string]int64 `json:"fields,omitempty"`
	Note   string           `json:"note,omitempty"`
}

// Coverage is the least that must have happened and what did.
type Coverage struct {
	Need int64 `json:"need"`
	Got  int64 `json:"got"`
}

// Threshold is one bound and how the run stood to it.
type Threshold struct {
	Metric string  `json:"metric"`
	Want   string  `json:"want"` // as written
	Got    float64 `json:"got"`
	Unit   string  `json:"unit"` // "s", "share", "per_s"
	Met    bool    `json:"met"`
	// Undecided: it is met by what was measured, and too much is not in it. Met is false then.
	Undecided bool `json:"undecided,omitempty"`
}

// Load is what was asked of the subject and what it did.
type Load struct {
	Operations int64   `json:"operations"`
	Errors     int64   `json:"errors"` // failed and unknown
	Offered    float64 `json:"offered_per_s"`
	Achieved   float64 `json:"achieved_per_s"`
	// Arrivals counts the turns that were due, as far as workers lived to tell.
	Arrivals int64 `json:"arrivals,omitempty"`
	// Unstarted counts arrivals that were still waiting for a free client when load ended.
	Unstarted int64              `json:"unstarted,omitempty"`
	Latency   map[string]Latency `json:"latency_us"`
}

// NeverStarted is the share of arrivals that never were; ok is false if none is on record.
func (l *Load) NeverStarted() (share float64, ok bool) {
	if l.Arrivals <= 0 {
		return 0, false
	}
	return float64(l.Unstarted) / float64(l.Arrivals), true
}

// Starved reports whether more than 1 in 1000 arrivals never started: too many to be left out of a maximum or a mean.
func (l *Load) Starved() bool { return l.Unstarted*1000 > l.Arrivals }

// Warning says how many arrivals never started; "" if all did.
func (l *Load) Warning() string {
	share, known := l.NeverStarted()
	switch {
	case l.Unstarted == 0:
		return ""
	case !known:
		return count(l.Unstarted, "arrival") + " never started"
	}
	return fmt.Sprintf("%s of %s (%s) never started", grouped(l.Unstarted), count(l.Arrivals, "arrival"), measured(share, "share"))
}

// Latency summarizes one kind of operation, in microseconds, from when each was due.
type Latency struct {
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
	Count int64   `json:"count"`
}

// Environment is where it ran.
type Environment struct {
	Version  string            `json:"version"` // of Fencepost
	OS       string            `json:"os"`
	Arch     string            `json:"arch"`
	CPUs     int               `json:"cpus"`
	Kernel   string            `json:"kernel,omitempty"`
	Go       string            `json:"go"`
	Provider map[string]string `json:"provider"` // by store
	Topology map[string]string `json:"topology"` // by store
	Servers  map[string]string `json:"servers"`  // by store: what it says it is
	Workers  []Worker          `json:"workers"`
}

// Worker is one incarnation of a worker and how well its clock is known.
type Worker struct {
	Name        string `json:"name"`
	Incarnation int    `json:"incarnation"`
	Machine     string `json:"machine"`
	ClockError  int64  `json:"clock_error_ns"`
	SameClock   bool   `json:"same_clock"` // proven to share the coordinator's clock
	Died        bool   `json:"died,omitempty"`
}
