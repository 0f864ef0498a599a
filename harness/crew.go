package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/plane"
)

// workerTarget is how faults name the workers; worker/w1 is one of them.
const workerTarget = "worker"

// crew is the coordinator's view of the workers: which there are, which incarnation of each is alive, where it runs. It
// resolves fault targets named worker, worker/w1.
type crew struct {
	fleet *plane.Fleet
	// assign makes the assignment of a new incarnation.
	assign func(worker string, index, incarnation int, process uint16) assignment
	emit   func(history.Event)
	logs   string // where local workers' logs are
	now    func() int64

	workers  []*worker
	watching sync.WaitGroup

	mu        sync.Mutex
	processes []*incarnation // by number: history.Operation.Worker
}

// worker is one simulated application server over all its incarnations. Faults pause, kill and start it.
type worker struct {
	crew  *crew
	name  string
	index int
	agent plane.AgentInfo

	mu      sync.Mutex
	current *incarnation
}

// incarnation is one process of a worker.
type incarnation struct {
	worker  *worker
	number  int    // from 1
	process uint16 // over all workers
	handle  *plane.Worker
	isReady chan struct{} // closed when it has said that it is ready, or that it can't be
	over    chan struct{} // closed when its end has been noted

	mu         sync.Mutex
	readySaid  *ready
	clockError int64
	turns      int64 // begun so far
	doomed     bool  // its end is on purpose
	died       bool  // it ended before it was asked to finish
	drained    bool
	unstarted  int64
}

// enlist makes n workers. None is started yet.
func (c *crew) enlist(n int) {
	for i := range n {
		c.workers = append(c.workers, &worker{crew: c, name: fmt.Sprintf("w%d", i+1), index: i})
	}
}

// spread gives each worker an agent, in turn.
func (c *crew) spread(agents []plane.AgentInfo) {
	for i, w := range c.workers {
		w.agent = agents[i%len(agents)]
	}
}

// launch starts a worker's next incarnation and returns when its process runs.
func (c *crew) launch(ctx context.Context, w *worker) (*incarnation, error) {
	c.mu.Lock()
	inc := &incarnation{worker: w, number: 1, process: uint16(len(c.processes)), isReady: make(chan struct{}), over: make(chan struct{})}
	if last := w.incarnation(); last != nil {
		inc.number = last.number + 1
	}
	c.processes = append(c.processes, inc)
	c.mu.Unlock()

	a := c.assign(w.name, w.index, inc.number, inc.process)
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("harness: assignment of %s: %w", w.name, err)
	}
	inc.handle, err = c.fleet.Launch(ctx, w.agent.ID, plane.Launch{Worker: w.name, Incarnation: inc.number, Assignment: raw, Log: inc.logName()})
	if err != nil {
		inc.died = true
		close(inc.over) // it has a number, and no process
		return nil, fmt.Errorf("starting worker %s: %w", w.name, err)
	}
	w.mu.Lock()
	w.current = inc
	w.mu.Unlock()
	c.watching.Go(func() { c.watch(inc) })
	return inc, nil
}

// watch notes the end of a process. The time is when we saw it, which is after it: what rests on it waits rather too long.
func (c *crew) watch(inc *incarnation) {
	defer close(inc.over)
	<-inc.handle.Done()
	inc.mu.Lock()
	finished := inc.drained && !inc.doomed
	inc.died = !finished
	doomed := inc.doomed
	inc.mu.Unlock()
	if finished {
		return
	}
	e := history.Event{Kind: history.EventWorkerDied, At: c.now(), Target: inc.worker.name, Process: int(inc.process), Node: -1}
	if !doomed {
		e.Detail = "unexpected: " + inc.handle.Exit().String()
	}
	c.emit(e)
}

// processNumbered is the incarnation of that number, or nil.
func (c *crew) processNumbered(n uint16) *incarnation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int(n) >= len(c.processes) {
		return nil
	}
	return c.processes[n]
}

// known is the incarnation of a number that a message names.
func (c *crew) known(n uint16) (*incarnation, error) {
	inc := c.processNumbered(n)
	if inc == nil {
		return nil, fmt.Errorf("no process is numbered %d", n)
	}
	return inc, nil
}

// incarnations lists all there have been, by number.
func (c *crew) incarnations() []*incarnation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.processes)
}

// alive lists the incarnations that have not ended.
func (c *crew) alive() []*incarnation {
	return slices.DeleteFunc(c.incarnations(), func(inc *incarnation) bool { return inc.ended() })
}

// clientName says who a client is.
func (c *crew) clientName(process, client uint16) (worker, who string) {
	inc := c.processNumbered(process)
	if inc == nil {
		return "", fmt.Sprintf("?%d/c%d", process, client)
	}
	p := history.Process{Worker: inc.worker.name, Incarnation: inc.number}
	return inc.worker.name, fmt.Sprintf("%s/c%d", p, client)
}

// Resolve is faults.Directory for workers.
func (c *crew) Resolve(_ context.Context, name string) ([]faults.Target, error) {
	_, which, one := strings.Cut(name, "/")
	var targets []faults.Target
	var names []string
	for _, w := range c.workers {
		names = append(names, workerTarget+"/"+w.name)
		if !one || w.name == which {
			targets = append(targets, w)
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("there is no target %q; there are %s, %s", name, workerTarget, strings.Join(names, ", "))
	}
	return targets, nil
}

// Name is faults.Target.
func (w *worker) Name() string { return w.name }

// Place is faults.Placed.
func (w *worker) Place() (process, node int) { return int(w.incarnation().process), -1 }

// Alive is faults.Mortal.
func (w *worker) Alive() bool {
	inc := w.incarnation()
	return inc != nil && !inc.ended()
}

func (w *worker) incarnation() *incarnation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current
}

// Pause is faults.Pausable.
func (w *worker) Pause(ctx context.Context) error { return w.incarnation().handle.Pause(ctx) }

// Resume is faults.Pausable.
func (w *worker) Resume(ctx context.Context) error { return w.incarnation().handle.Resume(ctx) }

// Kill is faults.Killable.
func (w *worker) Kill(ctx context.Context) error { return w.incarnation().end(ctx) }

// Start is faults.Killable: a new incarnation, which takes part in the load when it returns.
func (w *worker) Start(ctx context.Context) error {
	inc, err := w.crew.launch(ctx, w)
	if err != nil {
		return err
	}
	return inc.awaitReady(ctx)
}

// end kills the incarnation, on purpose, and returns when its end has been noted.
func (inc *incarnation) end(ctx context.Context) error {
	inc.mu.Lock()
	inc.doomed = true
	inc.mu.Unlock()
	if err := inc.handle.Kill(ctx); err != nil {
		return err
	}
	select {
	case <-inc.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitReady waits until the incarnation is ready.
func (inc *incarnation) awaitReady(ctx context.Context) error {
	select {
	case <-inc.isReady:
	case <-inc.over:
	case <-ctx.Done():
		return fmt.Errorf("worker %s did not get ready: %w", inc.worker.name, ctx.Err())
	}
	inc.mu.Lock()
	defer inc.mu.Unlock()
	switch {
	case inc.readySaid == nil:
		return fmt.Errorf("worker %s ended before it was ready (%s): %s", inc.worker.name, inc.handle.Exit(), inc.lastWords())
	case inc.readySaid.Error != "":
		return fmt.Errorf("worker %s: %s", inc.worker.name, inc.readySaid.Error)
	}
	return nil
}

// base names the incarnation's files.
func (inc *incarnation) base() string { return baseOf(inc.worker.name, inc.number) }

// logName is the name of the incarnation's log.
func (inc *incarnation) logName() string { return inc.base() + ".log" }

// lastWords is the end of the incarnation's log, if it is on this machine.
func (inc *incarnation) lastWords() string {
	text, err := os.ReadFile(filepath.Join(inc.worker.crew.logs, inc.logName()))
	if words := strings.TrimSpace(string(text)); err == nil && words != "" {
		return words[max(0, len(words)-500):]
	}
	return "its log did not come from its agent"
}

func (inc *incarnation) isDrained() bool {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	return inc.drained
}

func (inc *incarnation) ended() bool {
	select {
	case <-inc.over:
		return true
	default:
		return false
	}
}
