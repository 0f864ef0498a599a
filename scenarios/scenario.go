// Package scenarios is what to run: one YAML file each, embedded in the binary, and the loader that explains a mistake by
// line. It knows the shape of a scenario and not what subjects, workloads, faults or checks there are: those come in a
// Vocabulary.
package scenarios

import (
	"time"
)

// Scenario binds subject, workload, topology, load, faults, checks and the verdict that is expected. It is plain data: what
// is written as the resolved scenario.yaml and what a worker's assignment carries.
type Scenario struct {
	Name     string
	Summary  string
	Explains string // Markdown: why it happens and what fixes it
	Tags     []string
	Subject  string
	Options  map[string]any // for the subject
	Workload Workload
	Topology map[string]Store // by store: "valkey"
	Load     Load
	Faults   []Fault
	Checks   []string
	Coverage map[string]int64 // the least that must have happened
	// Thresholds by metric expression, such as "errors" or "acquire p99".
	Thresholds map[string]Threshold
	Expect     Expect
	// Control overrides fields of this scenario, as a scenario file would, to take the cause away. Kept as YAML.
	Control map[string]any
	Pair    string // the scenario that shows the fix
	Seed    uint64 // 0 in a file: chosen per run
}

// Workload is what simulated clients do. Parameters are those of its Kind, as decoded and defaulted by the loader into the
// struct that the Vocabulary gives for it.
type Workload struct {
	Kind       string
	Parameters any
}

// Store is one store of the topology.
type Store struct {
	Kind     string         // "standalone", "sentinel", …
	Provider string         // "process" (default), "docker", "external"
	Options  map[string]any // of the kind: persistence, configuration
}

// Load says when turns of the workload start.
type Load struct {
	Workers int // processes
	Clients int // per worker
	Arrival Arrival
	Stages  []Arrival // one after another, instead of Arrival
	Closed  bool      // closed loop: each client starts its next turn when the last ended; Arrival.For says how long
	// Settle is how long to wait after load and faults end before the final reads.
	Settle time.Duration
}

// Arrival is a rate of turns, over all workers together.
type Arrival struct {
	Rate    float64       // turns per second
	For     time.Duration // how long
	Spacing Spacing       // even or poisson
	// To is the rate at the end, if it changes linearly over the stage; 0: constant.
	To float64
}

// Spacing is how arrivals of a rate are spread.
type Spacing string

const (
	Even    Spacing = "even"    // one each 1/rate: the default
	Poisson Spacing = "poisson" // independent: exponential gaps
)

// Fault is one line of the schedule.
type Fault struct {
	At    time.Duration // after load starts
	Every time.Duration // again and again until load ends; 0: once
	Times int           // at most so often; 0: no limit beyond the load
	Do    string        // "pause", "kill", "restart", …
	On    string        // "worker", "worker/w1", "valkey", "valkey/primary", …
	For   time.Duration // how long it is in force
	When  string        // the point at which a trap catches a client; empty: at its time
	// Options of the fault: persistence: false, by: 30s, …
	Options map[string]any
}

// Expect is the verdict that the scenario is there to show.
type Expect struct {
	Pass bool
	// Violation names the checks that must fail, "linearizable:safety" for one at that severity.
	Violation []string
	May       []string // free to fail
	// Loose: from --expect: any violation will do.
	Loose bool
}

// Threshold bounds a metric.
type Threshold struct {
	Below   float64 // in the metric's unit: share for errors, seconds for latencies
	Above   float64
	Outside string // "faults": time under fault does not count
	Text    string // as written, for reports
}
