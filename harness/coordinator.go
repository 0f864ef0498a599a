package harness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/load"
	"fencepost.dev/plane"
	"fencepost.dev/process"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
	"fencepost.dev/subjects"
	"fencepost.dev/topology"
	"fencepost.dev/topology/endpoint"
	"fencepost.dev/witness"
	"fencepost.dev/workloads"
)

// How long the parts of a run may take before it is given up. A machine that runs several at once is slow.
const (
	readyPatience  = 60 * time.Second // workers to connect and build their subjects
	drainPatience  = 20 * time.Second // beyond what a turn may take: turns to end after load has
	finishPatience = 60 * time.Second // workers to close their histories
	stopPatience   = 5 * time.Second  // a worker that somebody else has stopped to be set going again
	startDelay     = 150 * time.Millisecond
)

// coordinator is one run on the coordinator's side, from start to a results directory that can be judged.
type coordinator struct {
	Options
	id       string
	scenario *scenarios.Scenario
	resolved string // the scenario as YAML
	subject  subjects.Subject
	workload workloads.Kind
	seed     uint64
	rand     *rand.Rand
	started  time.Time
	log      *slog.Logger
	logFile  *os.File

	journal  *process.Journal
	guard    *process.Guard
	hub      *plane.Hub
	clock    *plane.Clock
	epoch    time.Time // of the clock, for people and logs
	stores   map[string]topology.Topology
	events   *history.EventLog
	register *witness.Registers
	resource *history.Recorder
	crew     *crew
	traps    *traps
	record   *runRecord
	tally    *load.Log
	watcher  *watcher // nil: the run is not watched

	open     chan struct{}     // closed when the barrier opens
	start    int64             // of load; read after open is closed
	receiver *history.Receiver // of remote workers' histories; nil: they are on this machine
	cleanup  []func() error

	mu      sync.Mutex // guards what follows
	doing   string
	inForce map[int]string   // faults, by event
	changes []reports.Change // of inForce, not told yet
	trouble []string         // what keeps the run from proving anything
}

// later adds what close undoes, last first.
func (c *coordinator) later(undo func() error) { c.cleanup = append(c.cleanup, undo) }

// close ends all that run started. It is called once, whether or not run succeeded.
func (c *coordinator) close() error {
	var errs []error
	for i := len(c.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, c.cleanup[i]())
	}
	errs = append(errs, c.logFile.Close())
	return errors.Join(errs...)
}

// run takes the run to its end. The results directory then holds all that judge reads.
func (c *coordinator) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{c.protect, c.connect, c.faultsFit, c.bringUp, c.recruit} {
		if err := step(ctx); err != nil {
			return interrupted(ctx, err)
		}
	}
	if err := c.record.write(c.Out); err != nil {
		return err
	}
	// From here on, whatever happens, what there is gets written and decided.
	if err := c.perform(ctx); err != nil {
		return unproven{err}
	}
	return nil
}

// interrupted says in one sentence that the run was ended before it began.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted before the load began: %w", ctx.Err())
	}
	return err
}

// protect opens the journal and starts the guard: the first child of the run.
func (c *coordinator) protect(context.Context) error {
	path, err := newJournalPath()
	if err != nil {
		return err
	}
	if c.journal, err = process.OpenJournal(path); err != nil {
		return err
	}
	if c.guard, err = process.StartGuard(path, c.guardSecrets()...); err != nil {
		return errors.Join(err, c.journal.Close())
	}
	c.later(c.guard.Close) // after the journal, which it would replay
	c.later(c.journal.Close)
	// If we die, what the workers recorded is finished by the guard.
	finished, err := c.journal.Begin(finishEntry, finishRecord{Dir: absolute(c.Out)})
	if err != nil {
		return err
	}
	c.later(finished)
	return nil
}

// guardSecrets is what the guard needs besides the journal, as its environment: the password of the stores that are not ours.
func (c *coordinator) guardSecrets() []string {
	for _, at := range c.External {
		if at.Password != "" {
			return []string{endpoint.PasswordVariable + "=" + at.Password}
		}
	}
	return nil
}

// connect starts the plane and what is served on it, and the logs that events and the witness write.
func (c *coordinator) connect(ctx context.Context) (err error) {
	if c.events, err = history.NewEventLog(filepath.Join(c.Out, faultsFile), c.id); err != nil {
		return err
	}
	c.later(c.events.Close)
	// The plane outlives an interrupt: workers must still be told to stop.
	if c.hub, err = plane.Listen(context.WithoutCancel(ctx), plane.Options{Addr: c.Listen}); err != nil {
		return err
	}
	c.later(func() error { c.hub.Close(); return nil })
	c.clock, c.epoch = plane.NewClock(), time.Now()
	c.open = make(chan struct{})
	c.crew = &crew{assign: c.assign, emit: c.emit, now: c.clock.Now, logs: filepath.Join(c.Out, logsDir)}
	c.crew.enlist(c.scenario.Load.Workers)
	c.traps = newTraps(c.hub.Conn(), c.crew.clientName)
	if err := c.guardResource(); err != nil {
		return err
	}
	conn := c.hub.Conn()
	serve := func(subject string, f func(context.Context, plane.Message) (any, error)) {
		cancel, failed := conn.Serve(subject, f)
		if failed != nil {
			err = errors.Join(err, failed)
			return
		}
		c.later(func() error { cancel(); return nil })
	}
	serve(subjectReady, c.workerReady)
	serve(subjectSprung, c.traps.announced)
	serve(subjectDrained, c.workerDrained)
	stop, failed := conn.Subscribe(subjectProgress, c.workerProgress)
	if failed != nil {
		return errors.Join(err, failed)
	}
	c.later(func() error { stop(); return nil })
	if c.watcher != nil {
		err = errors.Join(err, c.watcher.serve(c))
	}
	return err
}

// guardResource starts the witness, whose log goes beside the history.
func (c *coordinator) guardResource() (err error) {
	if c.resource, err = history.NewRecorder(c.Out, history.ResourceBase, history.RecorderOptions{Run: c.id}); err != nil {
		return fmt.Errorf("recording the protected resource: %w", err)
	}
	c.register = witness.NewRegisters(c.fenced(), c.clock.Now, func(key string, op history.Operation) {
		op.Key = c.resource.Key(key)
		c.resource.End(c.resource.Begin(&op), &op)
	})
	stop, err := witness.Serve(c.hub.Conn(), c.register)
	if err != nil {
		return err
	}
	c.later(func() error { stop(); return c.closeResource() })
	return nil
}

// closeReceiver ends the taking in of remote histories; it may be called again.
func (c *coordinator) closeReceiver() error {
	if err := c.receiver.Close(); !errors.Is(err, history.ErrClosed) {
		return err
	}
	return nil
}

// closeResource ends the witness's log; it may be called again.
func (c *coordinator) closeResource() error {
	if err := c.resource.Close(); !errors.Is(err, history.ErrClosed) {
		return err
	}
	return nil
}

// tell records an event: a new one, which is given its ID, or one that has ended.
func (c *coordinator) tell(e history.Event) (_ history.Event, err error) {
	if e.ID == 0 {
		e, err = c.events.Append(e)
	} else {
		err = c.events.End(e, e.End)
	}
	if err == nil && c.watcher != nil {
		c.watcher.happened(e)
	}
	if e.Kind == history.EventFault {
		c.changed(e)
	}
	return e, err
}

// changed keeps what is in force, and what is to be told of it: a fault that was not seen to be in force is not.
func (c *coordinator) changed(e history.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change := reports.Change{At: time.Duration(e.At - c.start), Fault: e.Fault + " " + e.Target}
	if e.End == 0 {
		c.inForce[e.ID] = change.Fault
	} else {
		delete(c.inForce, e.ID)
		change.At, change.Ended, change.Lasted = time.Duration(e.End-c.start), true, time.Duration(e.End-e.At)
	}
	if e.Confirmed {
		c.changes = append(c.changes, change)
	}
}

// faulted reports whether a fault of ours is in force on the target of that name.
func (c *coordinator) faulted(target string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fault := range c.inForce {
		if strings.HasSuffix(fault, " "+target) {
			return true
		}
	}
	return false
}

// emit is tell for events without which the record proves less, but nothing wrong.
func (c *coordinator) emit(e history.Event) {
	// What comes after the record was closed is not of the run.
	if _, err := c.tell(e); err != nil && !errors.Is(err, history.ErrClosed) {
		c.complain(err)
	}
}

// assign makes the assignment of an incarnation.
func (c *coordinator) assign(worker string, index, incarnation int, number uint16) assignment {
	a := assignment{
		Run: c.id, Worker: worker, Index: index, Incarnation: incarnation, Process: number,
		Scenario: c.resolved, Seed: c.seed, Endpoints: c.endpoints(),
	}
	c.resource.SetProcess(number, a.incarnation()) // its rows name their workers
	if c.Remote == 0 {
		a.HistoryDir = absolute(filepath.Join(c.Out, historyDir))
	}
	if c.watcher != nil {
		a.Watched = true
		c.watcher.join(number, a.base())
	}
	return a
}
