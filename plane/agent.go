package plane

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"fencepost.dev/process"
)

// ErrCoordinatorGone: nothing was heard of the coordinator for longer than AgentOptions.Lost.
var ErrCoordinatorGone = errors.New("plane: the coordinator is gone")

const (
	// beatEvery is how often the fleet asks each agent whether it is there.
	beatEvery = 250 * time.Millisecond
	// defaultLost is after how much silence either side takes the other for gone.
	defaultLost = 5 * time.Second
	// endGrace is how long an agent that ends waits for its processes to be reaped after killing them.
	endGrace = 3 * time.Second
	// leftPatience bounds AgentOptions.Ended.
	leftPatience = 10 * time.Second
)

// AgentOptions say what an agent is.
type AgentOptions struct {
	ID         string // letters, digits, - and _; unique in the run
	Version    string // of Fencepost
	Executable string // what client processes run; empty is this program
	Dir        string // where workers' logs go
	Journal    *process.Journal
	Log        *slog.Logger // nil discards
	// Ended, if not nil, is called when a worker's process has ended, before that is reported: what it left here is still to be
	// dealt with. ctx bounds it. It may be called for several workers at once.
	Ended func(ctx context.Context, left Left)
	Lost  time.Duration // after how much silence the coordinator counts as gone; 0 is 5 s
}

// Left is what a worker's process leaves on its agent's machine.
type Left struct {
	Assignment json.RawMessage // as it was launched with
	Log        string          // the path of its log
}

// Agent starts workers' client processes as its own children and does to them what the fleet asks. The one in the
// coordinator's process and the one on another machine run the same code.
//
// Its children never outlive it: Run kills those that are left before it returns, whatever ended it, and the kernel kills
// them (Linux) if the agent is killed itself.
type Agent struct {
	conn    *Conn
	o       AgentOptions
	info    AgentInfo
	heard   atomic.Bool // a beat came since the last look
	over    chan struct{}
	dismiss func()        // closes over, once
	closing chan struct{} // closed by killAll, under mu: no more launches, and reports are tried only once more

	mu      sync.Mutex
	workers map[string]*process.Process
	watches sync.WaitGroup // one goroutine a worker, until its exit is reported
	used    bool           // a worker ran here
}

// NewAgent makes an agent that will speak over conn. Run does the rest.
func NewAgent(conn *Conn, o AgentOptions) *Agent {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Lost == 0 {
		o.Lost = defaultLost
	}
	host, _ := os.Hostname()
	instance := make([]byte, 8)
	rand.Read(instance)
	a := &Agent{
		conn: conn, o: o,
		info: AgentInfo{
			ID: o.ID, Version: o.Version, Hostname: host,
			OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), PID: os.Getpid(),
			Clock: identity(), Instance: hex.EncodeToString(instance),
		},
		over:    make(chan struct{}),
		closing: make(chan struct{}),
		workers: map[string]*process.Process{},
	}
	a.dismiss = sync.OnceFunc(func() { close(a.over) })
	return a
}

// Run says hello and serves the fleet until ctx ends or the fleet dismisses it (nil), the fleet refuses it (an error that
// says why), or the coordinator is gone (ErrCoordinatorGone). When it returns, none of its processes is left.
func (a *Agent) Run(ctx context.Context) (err error) {
	if !idPattern.MatchString(a.o.ID) {
		return fmt.Errorf("plane: %q is no agent's name: use letters, digits, - and _", a.o.ID)
	}
	if a.o.Executable == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("plane: finding the program that clients run: %w", err)
		}
		a.o.Executable = self
	}
	defer func() {
		if !errors.Is(err, ErrCoordinatorGone) {
			a.bye()
		}
	}()
	defer a.watches.Wait()
	defer a.killAll()
	for verb, serve := range map[string]func(context.Context, Message) (any, error){
		verbBeat:    a.beat,
		verbLaunch:  a.launch,
		verbHandle:  a.handle,
		verbDismiss: func(context.Context, Message) (any, error) { a.dismiss(); return nil, nil },
	} {
		cancel, err := a.conn.Serve(agentSubject(a.o.ID, verb), serve)
		if err != nil {
			return err
		}
		defer cancel()
	}
	if err := a.hello(ctx); err != nil {
		return err
	}
	a.o.Log.Info("joined", "agent", a.o.ID, "hub", a.conn.URL())
	return a.listen(ctx)
}

// hello tells the fleet of this agent until it answers. Nobody answering yet is no error for a while: the hub is up a moment
// before the fleet.
func (a *Agent) hello(ctx context.Context) error {
	deadline := time.Now().Add(a.o.Lost)
	for {
		attempt, cancel := context.WithTimeout(ctx, a.o.Lost)
		err := a.conn.Request(attempt, helloSubject, a.info, nil)
		cancel()
		if remote := (*Remote)(nil); errors.As(err, &remote) {
			return fmt.Errorf("plane: the coordinator refuses this agent: %w", err)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return nil // told to end before it began
		case time.Now().After(deadline):
			return fmt.Errorf("%w: nobody at %s answered the agent's hello: %w", ErrCoordinatorGone, a.conn.URL(), err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// listen waits for the end. Silence is counted in looks that found nothing new, not by the clock: an agent whose own machine
// or process stood still must not take that for the coordinator's absence.
func (a *Agent) listen(ctx context.Context) error {
	const looks = 10
	tick := time.NewTicker(a.o.Lost / looks)
	defer tick.Stop()
	silent := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.over:
			return nil
		case <-a.conn.Closed():
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("%w: the connection was closed", ErrCoordinatorGone)
		case <-tick.C:
			if silent++; a.heard.Swap(false) {
				silent = 0
			}
			if silent >= looks {
				return fmt.Errorf("%w: nothing heard of it for %v", ErrCoordinatorGone, a.o.Lost)
			}
		}
	}
}

// bye tells the fleet that this agent leaves, if there is one to tell.
func (a *Agent) bye() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := a.conn.Request(ctx, byeSubject, a.info, nil); err != nil {
		a.o.Log.Debug("leaving untold", "error", err)
	}
}

// Used says whether a worker ever ran here: what ended the agent ended a run then.
func (a *Agent) Used() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

func (a *Agent) beat(context.Context, Message) (any, error) {
	a.heard.Store(true)
	return a.info.Instance, nil
}

func (a *Agent) launch(ctx context.Context, m Message) (any, error) {
	var order launchOrder
	if err := m.Decode(&order); err != nil {
		return nil, err
	}
	name := order.name()
	log := order.Log
	if log == "" {
		log = name + ".log"
	}
	if !filepath.IsLocal(log) {
		return nil, fmt.Errorf("agent %s: a worker's log must be within the agent's directory, not %q", a.o.ID, log)
	}
	path := filepath.Join(a.o.Dir, log)
	start, err := json.Marshal(ClientStart{
		URL: a.conn.url, Token: a.conn.token,
		Worker: order.Worker, Incarnation: order.Incarnation, Assignment: order.Assignment, Share: order.Share,
	})
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if closed(a.closing) {
		return nil, fmt.Errorf("agent %s is ending", a.o.ID)
	}
	if _, taken := a.workers[name]; taken {
		return nil, fmt.Errorf("agent %s: worker %s runs already", a.o.ID, name)
	}
	p, err := process.Start(process.Command{
		Name:  name,
		Path:  a.o.Executable,
		Env:   []string{"FENCEPOST_ROLE=client", "FENCEPOST_PLANE=" + a.conn.url},
		Stdin: bytes.NewReader(start),
		Log:   path,
	}, a.o.Journal)
	if err != nil {
		return nil, fmt.Errorf("agent %s: starting worker %s: %w", a.o.ID, name, err)
	}
	a.workers[name], a.used = p, true
	a.watches.Add(1)
	go a.watch(name, p, Left{Assignment: order.Assignment, Log: path})
	a.o.Log.Info("started", "worker", name, "pid", p.PID())
	return launchReply{PID: p.PID()}, nil
}

// watch waits for a worker's end, has what it left dealt with, and tells the fleet until it has answered, the agent ends, or
// the coordinator is gone.
func (a *Agent) watch(name string, p *process.Process, left Left) {
	defer a.watches.Done()
	<-p.Done()
	ended := time.Now()
	a.mu.Lock()
	delete(a.workers, name)
	a.mu.Unlock()
	report := exitReport{Agent: a.o.ID, Instance: a.info.Instance, Name: name, Code: p.ExitState().ExitCode()}
	if status, ok := p.ExitState().Sys().(syscall.WaitStatus); ok && status.Signaled() {
		report.Signal = status.Signal().String()
	}
	a.o.Log.Info("ended", "worker", name, "code", report.Code, "signal", report.Signal)
	if a.o.Ended != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leftPatience)
		a.o.Ended(ctx, left)
		cancel()
	}
	for until := time.Now().Add(a.o.Lost); time.Now().Before(until); {
		report.Ago = time.Since(ended)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := a.conn.Request(ctx, exitSubject, report, nil)
		cancel()
		if remote := (*Remote)(nil); err == nil || errors.As(err, &remote) || closed(a.closing) {
			return
		}
		select {
		case <-a.closing:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (a *Agent) handle(ctx context.Context, m Message) (any, error) {
	var order handleOrder
	if err := m.Decode(&order); err != nil {
		return nil, err
	}
	a.mu.Lock()
	p := a.workers[order.Name]
	a.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("agent %s: worker %s does not run", a.o.ID, order.Name)
	}
	var err error
	switch order.Do {
	case "pause":
		err = p.Pause(ctx)
	case "resume":
		err = p.Resume(ctx)
	case "kill":
		err = p.Kill(ctx)
	case "stop":
		err = p.Stop(ctx, order.Grace)
	default:
		err = fmt.Errorf("an agent cannot %q a worker", order.Do)
	}
	if err != nil {
		return nil, fmt.Errorf("agent %s: %s of worker %s: %w", a.o.ID, order.Do, order.Name, err)
	}
	a.o.Log.Info("done", "do", order.Do, "worker", order.Name)
	return nil, nil
}

// killAll takes no more launches and kills what still runs.
func (a *Agent) killAll() {
	a.mu.Lock()
	close(a.closing)
	left := make([]*process.Process, 0, len(a.workers))
	for _, p := range a.workers {
		left = append(left, p)
	}
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endGrace)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range left {
		all.Go(func() {
			if err := p.Kill(ctx); err != nil {
				a.o.Log.Error("killing", "worker", p.Name(), "error", err)
			}
		})
	}
	all.Wait()
}
