package process

import (
	"context"
	"os"
	"syscall"
	"time"
)

// pollEvery is how often the process table is looked at while we wait for a change in it. It has no event for a stop that
// is free of our other waits (SIGCHLD with WUNTRACED would tell only of the leader, and needs the one waiter).
const pollEvery = 200 * time.Microsecond

// Pause stops the whole group (SIGSTOP). It returns when every thread of every process in it was seen stopped: none of them
// runs another instruction until Resume. If that can't be seen before ctx ends, the group is set going again.
func (p *Process) Pause(ctx context.Context) error {
	p.control.Lock()
	defer p.control.Unlock()
	err := p.signal(syscall.SIGSTOP)
	if err == nil {
		if err = p.await(ctx, true); err != nil {
			_ = p.signal(syscall.SIGCONT)
		}
	}
	if err != nil {
		return p.wrap("pause", err)
	}
	return nil
}

// Resume sets the whole group going again (SIGCONT) and returns when no thread in it was seen stopped.
func (p *Process) Resume(ctx context.Context) error {
	p.control.Lock()
	defer p.control.Unlock()
	err := p.signal(syscall.SIGCONT)
	if err == nil {
		err = p.await(ctx, false)
	}
	if err != nil {
		return p.wrap("resume", err)
	}
	return nil
}

// await waits until the threads of the group are all stopped, or none is. The leader comes first: it is one directory to
// look at. Then the others, listed once: a signal to a group reaches each member before its next fork completes, so no
// member can be added by one that has the signal.
func (p *Process) await(ctx context.Context, stopped bool) error {
	if err := p.awaitOne(ctx, p.pid, stopped); err != nil {
		return err
	}
	others, err := members(p.pid)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.pid == p.pid {
			continue
		}
		if err := p.awaitOne(ctx, other.pid, stopped); err != nil {
			return err
		}
	}
	return nil
}

// Stopped reports whether every thread of a process of this machine was seen stopped, by whomever.
func Stopped(pid int) bool {
	is, gone := threads(pid)
	return is == allStopped && !gone
}

func (p *Process) awaitOne(ctx context.Context, pid int, stopped bool) error {
	for {
		switch is, gone := threads(pid); {
		case gone && pid == p.pid:
			return os.ErrProcessDone
		case gone, stopped && is == allStopped, !stopped && is == noneStopped:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
			return os.ErrProcessDone
		case <-time.After(pollEvery):
		}
	}
}

// stopping says how many of a process's threads are stopped.
type stopping int

const (
	noneStopped stopping = iota
	someStopped
	allStopped
)
