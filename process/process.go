// Package process starts, owns, pauses and ends operating-system processes, and keeps a guard that cleans up after us when
// we die. It imports nothing else of Fencepost.
//
// Three lines of defence keep a process from outliving us:
//
//  1. We end what we started, and a process's whole group with it.
//  2. On Linux the kernel kills each direct child when we die (PR_SET_PDEATHSIG).
//  3. The guard, a process in a session of its own, sees our end of a pipe close and replays the journal: whatever we did
//     not undo, it does. If the guard is dead too, the journal is found later (Orphans) and replayed then.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Command says what to start.
type Command struct {
	Name  string   // how events and reports call it: "w1", "valkey/0"
	Path  string   // a path, or a name to look for on PATH
	Args  []string // without the program's own name
	Env   []string // added to the inherited environment, from which roles and secrets are removed first
	Dir   string   // working directory; "" is ours
	Stdin io.Reader
	Log   string // file that stdout and stderr are appended to, made if absent; "" discards them
}

// Process is one process that we started, with everything in its group. All methods may be called concurrently.
//
// Methods on a process that has ended return an error that is os.ErrProcessDone, except for Kill and Stop: what they want
// is then the case.
type Process struct {
	name string
	pid  int // also its group
	done chan struct{}

	// control lets one Pause or Resume at a time wait for its effect.
	control sync.Mutex

	// mu keeps the group from being signalled once its number may belong to somebody else.
	mu     sync.Mutex
	reaped bool
	state  *os.ProcessState
}

// record is the data of a journal entry of kind "process".
type record struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Group   int    `json:"group"`
	Session int    `json:"session"`
	Start   uint64 `json:"start"` // as the kernel tells it; with PID it names a process for as long as the machine is up
}

const processKind = "process"

// Start starts a process in a group of its own and journals it. It returns when the program has been executed; an
// executable that is missing or cannot run is an error here.
//
// Between fork and the journal's line lie some microseconds. In them the kernel's parent-death signal holds (Linux), and the
// journal's mark in the environment, by which Replay finds what it has no line for. A nil journal journals nothing.
//
// A Stdin that is not an *os.File is copied until it ends or the process does; a Read that never returns leaks a goroutine.
func Start(cmd Command, j *Journal) (*Process, error) {
	p, err := start(cmd, j)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Name, err)
	}
	return p, nil
}

func start(cmd Command, j *Journal) (*Process, error) {
	c := exec.Command(cmd.Path, cmd.Args...)
	c.Dir = cmd.Dir
	c.Env = childEnv(os.Environ(), j.markEnv(), cmd.Env)
	c.SysProcAttr = ownGroup()

	if cmd.Log != "" {
		if err := os.MkdirAll(filepath.Dir(cmd.Log), 0o755); err != nil {
			return nil, err
		}
		log, err := os.OpenFile(cmd.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		defer log.Close()
		c.Stdout, c.Stderr = log, log
	}
	var feed *os.File // our end of stdin, if we copy
	switch in := cmd.Stdin.(type) {
	case nil:
	case *os.File:
		c.Stdin = in
	default:
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		c.Stdin, feed = r, w
	}

	p := &Process{name: cmd.Name, done: make(chan struct{})}
	undone := func() error { return nil }
	spawner.join()
	err := spawner.do(c.Start)
	if err == nil {
		p.pid = c.Process.Pid
		undone, err = p.journal(j)
		if err != nil {
			_ = syscall.Kill(-p.pid, syscall.SIGKILL)
			_, _ = c.Process.Wait()
		}
	}
	if err != nil {
		spawner.leave()
		if feed != nil {
			feed.Close()
		}
		return nil, err
	}
	if feed != nil {
		go func() {
			_, _ = io.Copy(feed, cmd.Stdin) // EPIPE when the process ends first
			feed.Close()
		}()
	}
	go p.reap(c.Process, undone)
	return p, nil
}

func (p *Process) journal(j *Journal) (func() error, error) {
	self, err := lookup(p.pid)
	if err != nil {
		return nil, fmt.Errorf("find the start time of pid %d: %w", p.pid, err)
	}
	if j == nil {
		return func() error { return nil }, nil
	}
	return j.Begin(processKind, record{
		Name: p.name, PID: p.pid, Group: p.pid, Session: self.session, Start: self.start,
	})
}

// reap waits for the process to end, ends what is left of its group, and lets go of its number last: until then the group's
// number cannot be given to anybody else, so the signal can't hit a stranger.
func (p *Process) reap(child *os.Process, undone func() error) {
	awaitExit(p.pid)
	p.mu.Lock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	p.state, _ = child.Wait()
	p.reaped = true
	p.mu.Unlock()
	awaitGroup(p.pid, time.Second)
	_ = undone()
	spawner.leave()
	close(p.done)
}

// scanEvery is how often the whole process table is gone through while we wait.
const scanEvery = 2 * time.Millisecond

// awaitGroup waits until nothing of a group runs any more. What is left of it was orphaned, so others reap it; where
// nobody does (a container without an init), zombies stay, and count as gone.
func awaitGroup(group int, limit time.Duration) {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(scanEvery) {
		if syscall.Kill(-group, 0) != nil {
			return
		}
		if left, err := members(group); err != nil || len(left) == 0 {
			return
		}
	}
}

// Name is what the command called it.
func (p *Process) Name() string { return p.name }

// PID is its process id, and its group's.
func (p *Process) PID() int { return p.pid }

// Done is closed when the process has ended and was reaped, and its group was killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitState tells how it ended; nil until Done.
func (p *Process) ExitState() *os.ProcessState {
	select {
	case <-p.done:
		return p.state
	default:
		return nil
	}
}

// Kill ends the whole group without warning (SIGKILL), stopped or not. It returns when Done is closed, or ctx ends; the
// signal is then on its way all the same.
func (p *Process) Kill(ctx context.Context) error {
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return p.wrap("kill", err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return p.wrap("kill", ctx.Err())
	}
}

// Stop asks the whole group to end (SIGTERM, and SIGCONT in case it is paused), gives it some time, and then kills it. A
// ctx that ends cuts the grace short: the group is killed, and the error is ctx's.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := p.signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return p.wrap("stop", err)
		}
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.Kill(ctx)
}

// signal sends a signal to the whole group, unless the process was reaped.
func (p *Process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	return syscall.Kill(-p.pid, sig)
}

func (p *Process) wrap(doing string, err error) error {
	return fmt.Errorf("%s %s (pid %d): %w", doing, p.name, p.pid, err)
}
