package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/load"
	"fencepost.dev/plane"
	"fencepost.dev/scenarios"
	"fencepost.dev/subjects"
	"fencepost.dev/witness"
	"fencepost.dev/workloads"
)

const (
	progressEvery  = 100 * time.Millisecond
	stallThreshold = 25 * time.Millisecond
	// hardStop is how long turns may go on after load has ended, in a worker that nobody tells to finish.
	hardStop = 60 * time.Second
	// sendPatience is how long the coordinator may take to accept a piece of the history.
	sendPatience = 10 * time.Second
)

// serveClient is the body of the client role: one incarnation of a worker. Its stdout and stderr are its log.
func serveClient(stdin io.Reader) int {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	// An interrupt from the terminal is the coordinator's to handle: it tells us to stop when the time comes.
	signal.Ignore(os.Interrupt)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := runClient(ctx, stdin, log); err != nil {
		log.Error("the worker ends", "error", err)
		return 1
	}
	return 0
}

// client is one incarnation of a worker.
type client struct {
	assignment
	scenario *scenarios.Scenario
	kind     workloads.Kind
	log      *slog.Logger

	conn     *plane.Conn
	clock    *plane.Clock
	recorder *history.Recorder
	unsent   *history.Cursor // what is still to be sent; nil if nothing is
	batch    []byte          // of it, on its way
	latency  *load.Recorder
	points   *points
	workload workloads.Workload
	clients  []*workloads.Client
	turns    atomic.Int64

	stop   chan struct{} // closed when no further turn may start
	finish chan struct{} // closed when the coordinator has all it wants
	once   struct{ stop, finish sync.Once }

	mu     sync.Mutex
	stalls []stall
}

func runClient(ctx context.Context, stdin io.Reader, log *slog.Logger) error {
	begin, err := plane.ReadClientStart(stdin)
	if err != nil {
		return err
	}
	c := &client{log: log.With("worker", begin.Worker, "incarnation", begin.Incarnation), stop: make(chan struct{}), finish: make(chan struct{})}
	if err := json.Unmarshal(begin.Assignment, &c.assignment); err != nil {
		return fmt.Errorf("reading the assignment: %w", err)
	}
	if c.conn, err = plane.Dial(ctx, begin.URL, begin.Token, c.base()); err != nil {
		return err
	}
	defer c.conn.Close()
	closers, err := c.build(ctx, begin)
	defer func() {
		for i := len(closers) - 1; i >= 0; i-- {
			if err := closers[i](); err != nil {
				c.log.Error("closing", "error", err)
			}
		}
	}()
	start := barrier{}
	said := ready{Process: c.Process}
	if err == nil { // what the coordinator says from the barrier on must find us listening
		var unsubscribe func()
		unsubscribe, err = c.listen()
		defer unsubscribe()
	}
	if err != nil {
		said.Error = err.Error()
	} else {
		said.ClockError, said.SameClock = c.clock.Error(), c.clock.Same()
	}
	if failed := c.conn.Request(ctx, subjectReady, said, &start); failed != nil || err != nil {
		return errors.Join(err, failed)
	}
	return c.perform(ctx, start)
}

// build makes all that the worker needs; closers undo it, last first, also after an error.
func (c *client) build(ctx context.Context, begin plane.ClientStart) (closers []func() error, err error) {
	if c.scenario, err = scenarios.Parse("assignment", []byte(c.Scenario), Vocabulary()); err != nil {
		return nil, err
	}
	subject, known := subjects.Find(c.scenario.Subject)
	if !known {
		return nil, fmt.Errorf("no subject is called %q here", c.scenario.Subject)
	}
	if c.kind, known = workloads.Find(c.scenario.Workload.Kind); !known {
		return nil, fmt.Errorf("no workload is called %q here", c.scenario.Workload.Kind)
	}
	if c.clock, err = plane.JoinClock(ctx, begin.Share, c.conn); err != nil {
		return nil, err
	}
	keeping, stopKeeping := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		c.clock.Keep(keeping, c.conn)
	}()
	closers = append(closers, func() error { stopKeeping(); <-kept; return nil })
	closer, err := c.record()
	if closer != nil {
		closers = append(closers, closer)
	}
	if err != nil {
		return closers, err
	}
	c.points = &points{worker: c.Worker, process: c.Process, now: c.clock.Now, announce: func(ctx context.Context, s sprung) error {
		return c.conn.Request(ctx, subjectSprung, s, nil)
	}}
	closers = append(closers, func() error { c.points.announcing.Wait(); return nil })
	implementation, err := subject.New(ctx, subjects.Env{
		Worker: c.Worker, Endpoints: c.Endpoints, Now: time.Now, Point: c.points.atSubjectPoint,
		Options: c.scenario.Options, Clients: c.scenario.Load.Clients, Log: c.log.With("subject", subject.Name),
	})
	if err != nil {
		return closers, err
	}
	if closable, ok := implementation.(io.Closer); ok {
		closers = append(closers, closable.Close)
	}
	c.workload, err = c.kind.New(implementation, c.scenario.Workload.Parameters, workloads.Env{
		Register: witness.Dial(c.conn), Point: c.points.atPoint, Log: c.log,
	})
	if err != nil {
		return closers, err
	}
	for i := range c.scenario.Load.Clients {
		c.clients = append(c.clients, c.newClient(uint16(i)))
	}
	return closers, nil
}

// record opens the history: where the assignment says, or in a temporary directory from which it is streamed.
func (c *client) record() (closer func() error, err error) {
	dir := c.HistoryDir
	if dir == "" {
		dir = c.streamedDir()
		if err = os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	c.recorder, err = history.NewRecorder(dir, c.base(), history.RecorderOptions{Run: c.Run, Process: c.incarnation(), Number: c.Process})
	if err != nil {
		if c.HistoryDir == "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return nil, err
	}
	c.recorder.SetClockError(c.clock.Error())
	c.latency = load.NewRecorder(c.scenario.Load.Clients)
	if c.HistoryDir == "" || c.Watched {
		c.unsent = c.recorder.Cursor()
	}
	return func() error {
		c.recorder.SetClockError(c.clock.Error())
		err := c.recorder.Close()
		if c.HistoryDir == "" {
			c.stream() // the last batch says that the record was closed
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return err
	}, nil
}

func (c *client) newClient(number uint16) *workloads.Client {
	return &workloads.Client{
		Process: c.Process, Number: number, Now: time.Now,
		Rand:     rand.New(rand.NewPCG(c.Seed, uint64(c.Process)<<16|uint64(number)+1)),
		Recorder: newClientRecorder(c, number),
	}
}

// perform takes part in the load until the coordinator has all it wants.
func (c *client) perform(ctx context.Context, b barrier) error {
	for _, t := range b.Armed {
		c.points.arm(t)
	}
	stopStalls, err := plane.StartStalls(c.clock, stallThreshold, c.stalled)
	if err != nil {
		return err
	}
	defer stopStalls()
	reporting, stopReporting := context.WithCancel(ctx)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		c.report(reporting)
	}()
	defer func() { stopReporting(); <-reported }()

	done := c.drive(ctx, b.Start)
	c.tell(load.All) // before the coordinator counts us as drained
	if err := c.conn.Request(ctx, subjectDrained, drained{Process: c.Process, Turns: done.Started, Unstarted: done.Unstarted}, nil); err != nil {
		return err
	}
	select {
	case <-c.finish:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.conn.Closed():
		return errors.New("the coordinator is gone")
	}
}

// drive makes this worker's share of the load, and returns when its last turn is over.
func (c *client) drive(ctx context.Context, start int64) load.Done {
	loading, stopLoading := context.WithCancel(ctx)
	defer stopLoading()
	end := start + int64(c.scenario.Load.Length())
	// Load ends at once when the coordinator says so; turns under way may go on, but not for ever.
	turning, stopTurning := context.WithCancel(ctx)
	defer stopTurning()
	defer time.AfterFunc(time.Duration(end-c.clock.Now())+hardStop, stopTurning).Stop()
	go func() {
		select {
		case <-c.stop:
			stopLoading()
		case <-loading.Done():
		}
	}()
	pacer := load.Pacer{
		Clock: c.clock.Now, Start: start, End: end, Clients: len(c.clients),
		Turn: func(_ context.Context, n int, due int64) {
			c.turns.Add(1)
			who := c.clients[n]
			who.Recorder.(*clientRecorder).begin(due)
			c.workload.Turn(withClient(turning, who), who)
		},
	}
	if c.scenario.Load.Closed {
		return pacer.Closed(loading)
	}
	whole := load.NewStages(stagesOf(c.scenario.Load), c.Seed)
	share := &load.Share{Of: whole, Worker: c.Index, N: c.scenario.Load.Workers}
	if late := c.clock.Now() - start; late > 0 { // a new incarnation leaves what was due before it came
		return pacer.Open(loading, &load.After{Of: share, From: time.Duration(late)})
	}
	return pacer.Open(loading, share)
}

// stagesOf is the scenario's arrivals, as the load package has them.
func stagesOf(l scenarios.Load) []load.Stage {
	arrivals := l.Stages
	if len(arrivals) == 0 {
		arrivals = []scenarios.Arrival{l.Arrival}
	}
	stages := make([]load.Stage, len(arrivals))
	for i, a := range arrivals {
		stages[i] = load.Constant(a.Rate, a.For, load.Even)
		if a.To != 0 {
			stages[i].To = a.To
		}
		if a.Spacing == scenarios.Poisson {
			stages[i].Spacing = load.Poisson
		}
	}
	return stages
}

// listen serves what the coordinator says during the load.
func (c *client) listen() (unsubscribe func(), err error) {
	var cancels []func()
	unsubscribe = func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
	subscribe := func(subject string, f func(plane.Message)) {
		if err != nil {
			return
		}
		var cancel func()
		if cancel, err = c.conn.Subscribe(subject, f); err == nil {
			cancels = append(cancels, cancel)
		}
	}
	subscribe(subjectArm, func(m plane.Message) { c.withTrap(m, c.points.arm) })
	subscribe(subjectDisarm, func(m plane.Message) { c.withTrap(m, func(t trap) { c.points.disarm(t.ID) }) })
	subscribe(subjectStop, func(plane.Message) { c.once.stop.Do(func() { close(c.stop) }) })
	subscribe(subjectFinish, func(plane.Message) { c.once.finish.Do(func() { close(c.finish) }) })
	if err != nil {
		return unsubscribe, err
	}
	cancel, err := c.conn.Serve(finalSubject(c.Process), func(ctx context.Context, _ plane.Message) (any, error) {
		if f, ok := c.workload.(workloads.Finisher); ok {
			who := c.clients[0]
			who.Recorder.(*clientRecorder).begin(0)
			f.Final(withClient(ctx, who), who)
		}
		return struct{}{}, nil
	})
	if err == nil {
		cancels = append(cancels, cancel)
	}
	return unsubscribe, err
}

func (c *client) withTrap(m plane.Message, f func(trap)) {
	var t trap
	if err := m.Decode(&t); err != nil {
		c.log.Error("a trap could not be read", "error", err)
		return
	}
	f(t)
}
