// Package scenarios is what to run: one YAML file each, embedded in the binary, and the loader that explains a mistake by
// line. It knows the shape of a scenario and not what subjects, workloads, faults or checks there are: those come in a
// Vocabulary.
package scenarios

import (
	"time"
)

// Scenario binds subject, workload, topology, load, faults, checks and the verdict that is expected. It is plain data: what
// is written as the resolved scenario.yaml and what a worker's assignment carries.
//
// Lists and maps that a file leaves empty are nil, so that a scenario equals what is loaded from its own YAML.
type Scenario struct {
	Name     string           `yaml:"name" json:"name"`
	Summary  string           `yaml:"summary" json:"summary,omitempty"`
	Explains string           `yaml:"explains" json:"explains,omitempty"` // Markdown: why it happens and what fixes it
	Tags     []string         `yaml:"tags" json:"tags,omitempty"`
	Subject  string           `yaml:"subject" json:"subject"`
	Options  map[string]any   `yaml:"options" json:"options,omitempty"` // for the subject
	Workload Workload         `yaml:"workload" json:"workload"`
	Topology map[string]Store `yaml:"topology" json:"topology,omitempty"` // by store: "valkey"
	Load     Load             `yaml:"load" json:"load"`
	Faults   []Fault          `yaml:"faults" json:"faults,omitempty"`
	Checks   []string         `yaml:"checks" json:"checks"`
	Coverage map[string]int64 `yaml:"coverage" json:"coverage,omitempty"` // the least that must have happened
	// Thresholds by metric expression, such as "errors" or "acquire p99".
	Thresholds map[string]Threshold `yaml:"thresholds" json:"thresholds,omitempty"`
	Expect     Expect               `yaml:"expect" json:"expect"`
	// Control overrides fields of this scenario, as a scenario file would, to take the cause away. See Control.
	Control map[string]any `yaml:"control" json:"control,omitempty"`
	Pair    string         `yaml:"pair" json:"pair,omitempty"` // the scenario that shows the fix
	Seed    uint64         `yaml:"seed" json:"seed,omitempty"` // 0 in a file: chosen per run
}

// Workload is what simulated clients do. Parameters are those of its Kind, as decoded and defaulted by the loader into the
// struct that the Vocabulary gives for it.
type Workload struct {
	Kind       string `json:"kind"`
	Parameters any    `json:"parameters,omitempty"` // a pointer to that struct; nil if the kind has none
}

// Store is one store of the topology.
type Store struct {
	Kind     string         `yaml:"kind" json:"kind"`                 // "standalone", "sentinel", …
	Provider string         `yaml:"provider" json:"provider"`         // "process" (default), "docker", "external"
	Options  map[string]any `yaml:"options" json:"options,omitempty"` // of the kind: persistence, configuration
}

// Load says when turns of the workload start.
type Load struct {
	Workers int       `yaml:"workers" json:"workers"` // processes
	Clients int       `yaml:"clients" json:"clients"` // per worker
	Arrival Arrival   `yaml:"arrival" json:"arrival,omitzero"`
	Stages  []Arrival `yaml:"stages" json:"stages,omitempty"` // one after another, instead of Arrival
	// Closed loop: each client starts its next turn when the last ended; Arrival.For says how long (a file writes that as
	// load.for).
	Closed bool `yaml:"closed" json:"closed,omitempty"`
	// Settle is how long to wait after load and faults end before the final reads.
	Settle time.Duration `yaml:"settle" json:"settle_ns"`
}

// Length is how long load goes on.
func (l *Load) Length() time.Duration {
	length := l.Arrival.For
	for _, stage := range l.Stages {
		length += stage.For
	}
	return length
}

// Arrival is a rate of turns, over all workers together.
type Arrival struct {
	Rate    float64       `yaml:"rate" json:"rate"` // turns per second; a stage may be idle (0)
	For     time.Duration `yaml:"for" json:"for_ns"`
	Spacing Spacing       `yaml:"spacing" json:"spacing"` // even or poisson
	// To is the rate at the end, if it changes linearly over the stage; 0: constant. Stages only.
	To float64 `yaml:"to" json:"to,omitempty"`
}

// Spacing is how arrivals of a rate are spread.
type Spacing string

const (
	Even    Spacing = "even"    // one each 1/rate: the default
	Poisson Spacing = "poisson" // independent: exponential gaps
)

// Fault is one line of the schedule.
type Fault struct {
	At    time.Duration `yaml:"at" json:"at_ns"`                 // after load starts
	Every time.Duration `yaml:"every" json:"every_ns,omitempty"` // again and again until load ends; 0: once
	Times int           `yaml:"times" json:"times,omitempty"`    // at most so often; 0: no limit beyond the load
	Do    string        `yaml:"do" json:"do"`                    // "pause", "kill", "restart", …
	On    string        `yaml:"on" json:"on"`                    // "worker", "worker/w1", "valkey", "valkey/primary", …
	For   time.Duration `yaml:"for" json:"for_ns,omitempty"`     // how long it is in force; 0: as the fault has it
	When  string        `yaml:"when" json:"when,omitempty"`      // the point at which a trap catches a client; empty: at its time
	// Options are the fault's own (persistence: false, by: 30s), as decoded and defaulted by the loader: a pointer to the
	// struct that the Vocabulary gives for it, which is what faults.Order.Options takes. Nil if the fault has none.
	Options any `yaml:"-" json:"options,omitempty"`
}

// Expect is the verdict that the scenario is there to show.
type Expect struct {
	Pass bool `json:"pass,omitempty"`
	// Violation names the checks that must fail, "linearizable:safety" for one at that severity.
	Violation []string `json:"violation,omitempty"`
	May       []string `json:"may,omitempty"` // free to fail
	// Loose: any violation will do (--expect violation).
	Loose bool `json:"loose,omitempty"`
	// Not, in a control: none of these may show a violation; what other checks find is not the question.
	Not []string `json:"not,omitempty"`
}

// Threshold bounds a metric. Bounds are inclusive, so that "errors: 0%" can be met.
type Threshold struct {
	// Below and Above are in the metric's unit: a share for errors, seconds for latencies, operations per second for rates.
	Below   *float64 `json:"below,omitempty"`
	Above   *float64 `json:"above,omitempty"`
	Unit    Unit     `json:"unit"`
	Outside string   `json:"outside,omitempty"` // "faults": time under fault does not count
	Text    string   `json:"text"`              // as people write it, for reports: "below 50ms outside faults"
}
