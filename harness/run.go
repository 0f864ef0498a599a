package harness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"fencepost.dev/load"
	"fencepost.dev/models"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
	"fencepost.dev/subjects"
	"fencepost.dev/topology"
	"fencepost.dev/topology/endpoint"
	"fencepost.dev/workloads"
)

// Options say what to run and how.
type Options struct {
	Scenario *scenarios.Scenario
	// Out is the results directory: absent or empty.
	Out string
	// Listen and Remote: the workers run on this many agents elsewhere, which join at the address. 0: on this machine.
	Listen string
	Remote int
	// External are stores that are already there, by name.
	External    map[string]endpoint.Endpoint
	AllowFaults bool
	Limit       models.Limit
	// StopOnViolation ends the load as soon as a violation is certain.
	StopOnViolation bool
	// Command is the command line that reproduces the run, without its seed.
	Command string
	// Progress is told where the run stands, about five times a second, from one goroutine at a time. May be nil.
	Progress func(reports.Tick)
	// Notice is told what a person has to know while it runs (how agents can join). May be nil.
	Notice func(string)
}

// Run runs a scenario, from start to verdict, and writes its results directory. When ctx ends it stops the load, undoes
// what was done, and decides from what there is, marked as cut short.
//
// An error that wraps ErrUnproven came after the run began; any other means that nothing was run. Whatever happens, Run
// leaves no process, no fault and no temporary file behind, and if this process dies its guard sees to that.
func Run(ctx context.Context, o Options) (*reports.Material, error) {
	if o.Progress == nil {
		o.Progress = func(reports.Tick) {}
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if err := MakeResults(o.Out); err != nil {
		return nil, err
	}
	if err := roomFor(o); err != nil {
		return nil, err
	}
	c, err := newCoordinator(o)
	if err != nil {
		return nil, errors.Join(err, emptyOut(o.Out))
	}
	err = c.run(ctx)
	closing := c.close()
	switch {
	case errors.Is(err, ErrUnproven):
		return nil, err
	case err != nil:
		return nil, errors.Join(err, closing, emptyOut(o.Out))
	case closing != nil: // it withholds a pass, and hides no violation
		c.complain(closing)
		c.record.Trouble = c.trouble
		if err := c.record.write(c.Out); err != nil {
			return nil, unproven{err}
		}
	}
	o.Progress(reports.Tick{Doing: "deciding"})
	// An interrupted run is decided too, as far as it got: the limits still hold.
	m, err := judge(context.WithoutCancel(ctx), o.Out, o.Limit)
	if err != nil {
		return nil, err
	}
	if err := reports.Write(o.Out, *m); err != nil {
		return nil, unproven{err}
	}
	if err := c.record.concluded(o.Out); err != nil {
		return nil, unproven{err}
	}
	return m, nil
}

// emptyOut takes back what a run that never began has put into its results directory, which was empty.
func emptyOut(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// NewSeed gives a seed for a run that was given none: never 0, and short enough to type.
func NewSeed() uint64 { return 1 + rand.Uint64N(1<<32) }

// newCoordinator gathers what the scenario names. Nothing is started yet.
func newCoordinator(o Options) (*coordinator, error) {
	c := &coordinator{Options: o, scenario: o.Scenario, started: time.Now(), stores: map[string]topology.Topology{}, tally: load.NewLog(), inForce: map[int]string{}}
	var known bool
	if c.subject, known = subjects.Find(o.Scenario.Subject); !known {
		return nil, fmt.Errorf("harness: no subject is called %q", o.Scenario.Subject)
	}
	if c.workload, known = workloads.Find(o.Scenario.Workload.Kind); !known {
		return nil, fmt.Errorf("harness: no workload is called %q", o.Scenario.Workload.Kind)
	}
	if c.fenced() && !c.subject.Contract.Tokens {
		return nil, fmt.Errorf("clients that send fencing tokens need a subject that gives them, such as lock/valkey-fenced: %s gives none", c.subject.Name)
	}
	if o.StopOnViolation {
		var err error
		if c.watcher, err = newWatcher(c); err != nil {
			return nil, err
		}
	}
	c.seed = o.Scenario.Seed
	if c.seed == 0 {
		c.seed = NewSeed()
	}
	c.id = fmt.Sprintf("%s-%x", c.started.UTC().Format("20060102-150405"), rand.Uint32())
	c.rand = rand.New(rand.NewPCG(c.seed, 0))
	for _, dir := range []string{historyDir, logsDir} {
		if err := os.MkdirAll(filepath.Join(o.Out, dir), 0o777); err != nil {
			return nil, fmt.Errorf("the results directory %s can't be written to: %w; choose another with --out", o.Out, reason(err))
		}
	}
	log, err := openLog(filepath.Join(o.Out, logsDir, coordinatorLog))
	if err != nil {
		return nil, err
	}
	text, err := o.Scenario.YAML()
	if err != nil {
		return nil, err
	}
	c.resolved = string(text)
	if err := os.WriteFile(filepath.Join(o.Out, scenarioFile), text, 0o666); err != nil {
		return nil, fmt.Errorf("the results directory %s can't be written to: %w; choose another with --out", o.Out, reason(err))
	}
	c.logFile, c.log = log, slog.New(slog.NewJSONHandler(log, nil))
	return c, nil
}

// fenced says whether the witness enforces tokens.
func (c *coordinator) fenced() bool {
	return c.workload.Fenced != nil && c.workload.Fenced(c.scenario.Workload.Parameters)
}

// openLog opens a log for appending.
func openLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return f, nil
}
