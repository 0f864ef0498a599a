package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
	"fencepost.dev/plane"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
)

// eventLag is how long after it began a fault may be recorded: when it was seen to be in force.
const eventLag = time.Second

// settledUntil is what a watched worker says, every 100 ms, when all it has of its history has been taken in.
type settledUntil struct {
	Process uint16 `json:"process"`
	Until   int64  `json:"until_ns"` // every operation that was called before is known, if only as called
}

// watcher decides while the run goes, from what the workers stream, and ends the load when a violation is certain. What it
// says ends the run and nothing else: the verdict is the judge's, over the whole record.
//
// It follows each process: until when its operations are known, and which are open. The least of these over all processes is
// how far the engine can decide. A process that is stopped holds it back until it goes on. One that was killed is read from
// what it left; if it ran on another machine, its agent sends that, and nothing here says when it is all: nothing after its
// last report is decided before the end.
type watcher struct {
	now     func() int64
	crew    *crew
	dir     string // of the history; "": the workers are on other machines
	log     func(msg string, args ...any)
	stopped context.CancelFunc // ends the load

	mu        sync.Mutex
	watch     *models.Watch
	names     history.Names
	keys      map[string]uint32
	processes map[uint16]*followed
	found     *reports.Stopped
	silent    bool // there is nothing left to say: it gave up, or the load is over
}

// followed is what is known of one process's operations.
type followed struct {
	base   string
	until  int64
	open   map[uint64]int64 // Call, by ID
	latest map[uint16]int64 // by client, the Call of its latest operation that has been added
	over   bool
}

// newWatcher makes the watcher of a run, or says why the run can't be watched.
func newWatcher(c *coordinator) (*watcher, error) {
	if !slices.Contains(c.scenario.Checks, models.Linearizable) {
		return nil, fmt.Errorf("--stop-on-violation: linearizable is what is decided while a run goes, and it is not among the checks of %s", c.scenario.Name)
	}
	watch, err := models.NewWatch(context.Background(), &history.History{}, models.PrepareOptions{
		Primitive: c.subject.Primitive, Contract: c.subject.Contract, Limit: c.Limit,
	}, leastSeverity(c.scenario))
	if err != nil {
		return nil, fmt.Errorf("--stop-on-violation: %w", err)
	}
	w := &watcher{
		watch: watch, keys: map[string]uint32{"": 0}, processes: map[uint16]*followed{}, stopped: func() {},
		log: func(msg string, args ...any) { c.log.Warn(msg, args...) },
	}
	w.names.Keys = []string{""}
	if c.Remote == 0 {
		w.dir = absolute(filepath.Join(c.Out, historyDir))
	}
	return w, nil
}

// leastSeverity is that of a violation worth ending the run for. Where the scenario asks for a graver one, or permits a
// lesser, a lesser would end it before it has shown anything.
func leastSeverity(s *scenarios.Scenario) models.Severity {
	e := expectationOf(s)
	permitted := slices.ContainsFunc(e.May, func(entry string) bool { return strings.HasPrefix(entry, models.Linearizable) })
	if !e.Loose && (permitted || slices.Contains(e.Must, "linearizable:"+string(models.Safety))) {
		return models.Safety
	}
	return models.Availability
}

// serve takes in what workers on this machine stream; those elsewhere stream to the receiver that keeps it.
func (w *watcher) serve(c *coordinator) error {
	w.now, w.crew = c.clock.Now, c.crew
	conn := c.hub.Conn()
	if c.Remote == 0 {
		receiver, err := history.NewReceiver("", history.ReceiverOptions{Tap: w.tap})
		if err != nil {
			return err
		}
		c.later(receiver.Close)
		stop, err := conn.Serve(subjectHistory, func(_ context.Context, m plane.Message) (any, error) {
			return struct{}{}, receiver.Receive(m.Data())
		})
		if err != nil {
			return err
		}
		c.later(func() error { stop(); return nil })
	}
	stop, err := conn.Subscribe(subjectSettled, func(m plane.Message) {
		var s settledUntil
		if err := m.Decode(&s); err != nil {
			w.log("what a worker said could not be read", "error", err)
			return
		}
		w.settled(s)
	})
	if err != nil {
		return err
	}
	c.later(func() error { stop(); return nil })
	return nil
}

// start gives what ends the load.
func (w *watcher) start(stop context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = stop
}

// end says that the load is over.
func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = true
}

// join begins to follow a process, before it is started.
func (w *watcher) join(process uint16, base string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes[process] = &followed{base: base, until: w.now(), open: map[uint64]int64{}, latest: map[uint16]int64{}}
}

// happened takes an event, or its end.
func (w *watcher) happened(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watch.Happened(e)
}

// tap takes what a batch told.
func (w *watcher) tap(_ string, names *history.Names, updates []history.Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range updates {
		op := u.Operation
		w.know(op.Worker, names)
		p := w.processes[op.Worker]
		switch {
		case p == nil || p.over:
		case op.Commit != history.Completed:
			p.open[u.ID] = op.Call
		default:
			delete(p.open, u.ID)
			w.add(p, names, op)
		}
	}
}

// know takes over what is said of a process.
func (w *watcher) know(process uint16, names *history.Names) {
	for int(process) >= len(w.names.Workers) {
		w.names.Workers = append(w.names.Workers, history.Process{})
	}
	if said := names.Workers[process]; said != w.names.Workers[process] {
		w.names.Workers[process] = said
		w.watch.Know(w.names)
	}
}

// add gives the engine an operation, under our number for its key.
func (w *watcher) add(p *followed, names *history.Names, op history.Operation) {
	name := names.Key(op.Key)
	key, known := w.keys[name]
	if !known {
		key = uint32(len(w.names.Keys))
		w.keys[name] = key
		w.names.Keys = append(w.names.Keys, name)
	}
	p.latest[op.Client] = op.Call
	op.Key, op.Error = key, 0
	w.watch.Add(op)
}

// settled notes how far a process's operations are known, and decides what that lets be decided.
func (w *watcher) settled(s settledUntil) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.processes[s.Process]; p != nil {
		p.until = max(p.until, s.Until)
	}
	if w.found != nil || w.silent {
		return
	}
	now := w.now()
	until := now // what is yet to come is called later, also when all who ran are over
	for number, p := range w.processes {
		if inc := w.crew.processNumbered(number); !p.over && inc != nil && inc.ended() {
			w.bury(number, p)
		}
		if p.over {
			continue
		}
		until = min(until, p.until)
		for _, call := range p.open {
			until = min(until, call)
		}
	}
	key, at, broken := w.watch.Advance(until, now-int64(eventLag))
	if err := w.watch.GaveUp(); err != nil {
		w.silent = true
		w.log("the run can't be watched any longer; it goes on to its end", "error", err)
		return
	}
	if broken {
		w.found = &reports.Stopped{At: now, Key: w.names.Key(key), Violation: at}
		w.stopped()
	}
}

// bury takes in what a process that ended has left, from its files.
func (w *watcher) bury(number uint16, p *followed) {
	if w.dir == "" {
		return // what it left is on its agent's machine: p.until holds back what comes after
	}
	if err := w.leftovers(number, p); err != nil && !errors.Is(err, history.ErrMissing) {
		w.log("what a dead worker left can't be read while the run goes", "worker", p.base, "error", err)
		return
	}
	p.over = true
	p.open = nil
}

func (w *watcher) leftovers(number uint16, p *followed) error {
	dir, err := os.MkdirTemp("", "fencepost-watch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// A reader takes a whole directory, and the others' files are still being written.
	for _, pattern := range []string{p.base + ".names", p.base + "-*"} {
		files, err := filepath.Glob(filepath.Join(w.dir, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := os.Symlink(file, filepath.Join(dir, filepath.Base(file))); err != nil {
				return err
			}
		}
	}
	r, err := history.Open(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	w.know(number, r.Names())
	for op, err := range r.All() {
		if err != nil {
			return err
		}
		if latest, some := p.latest[op.Client]; op.Worker == number && (!some || op.Call > latest) {
			w.add(p, r.Names(), op)
		}
	}
	return nil
}

// result is what ended the load, if the watcher did.
func (w *watcher) result() *reports.Stopped {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}
