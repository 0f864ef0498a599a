package harness

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/plane"
)

// traps is the coordinator's side of them: it arms, and hands the first client that announces itself to the schedule.
type traps struct {
	conn *plane.Conn
	// name says who a client is: worker ("w1") and client ("w1/c3").
	name func(process, client uint16) (worker, who string)

	mu    sync.Mutex
	next  int
	armed map[int]*armedTrap
}

type armedTrap struct {
	trap
	taken  bool
	caught chan caught // room for the one that was first
}

// caught is an announcement that waits to be answered.
type caught struct {
	sprung
	letGo chan struct{} // closed when the client may go on
	ended *atomic.Bool  // set by whichever comes first: the release, or the end of the client's patience
}

func newTraps(conn *plane.Conn, name func(process, client uint16) (worker, who string)) *traps {
	return &traps{conn: conn, name: name, armed: map[int]*armedTrap{}}
}

// current lists what is armed, for a worker that has just come.
func (t *traps) current() []trap {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []trap
	for _, a := range t.armed {
		list = append(list, a.trap)
	}
	return list
}

// Arm is faults.Traps.
func (t *traps) Arm(ctx context.Context, point string, workers []string) (faults.Sprung, error) {
	t.mu.Lock()
	t.next++
	a := &armedTrap{trap: trap{ID: t.next, Point: point, Workers: workers}, caught: make(chan caught, 1)}
	t.armed[a.ID] = a
	t.mu.Unlock()
	defer t.disarm(a)
	if err := t.conn.Publish(subjectArm, a.trap); err != nil {
		return faults.Sprung{}, fmt.Errorf("harness: arming a trap at %s: %w", point, err)
	}
	select {
	case <-ctx.Done():
		return faults.Sprung{}, ctx.Err()
	case c := <-a.caught:
		return t.sprung(c), nil
	}
}

func (t *traps) sprung(c caught) faults.Sprung {
	worker, who := t.name(c.Process, c.Client)
	return faults.Sprung{
		Worker: worker, Process: int(c.Process), Client: who, Grant: c.Grant, At: c.At,
		Release: func() bool {
			waiting := c.ended.CompareAndSwap(false, true)
			close(c.letGo)
			return waiting || !c.Waits
		},
	}
}

// disarm takes the trap away everywhere, and lets a client go that came too late.
func (t *traps) disarm(a *armedTrap) {
	t.mu.Lock()
	delete(t.armed, a.ID)
	t.mu.Unlock()
	_ = t.conn.Publish(subjectDisarm, a.trap) // a worker that misses it announces in vain, and is let go at once
	select {
	case c := <-a.caught:
		close(c.letGo)
	default:
	}
}

// announced serves a worker's announcement: it returns when the client may go on.
func (t *traps) announced(ctx context.Context, m plane.Message) (any, error) {
	var s sprung
	if err := m.Decode(&s); err != nil {
		return nil, err
	}
	c := caught{sprung: s, letGo: make(chan struct{}), ended: new(atomic.Bool)}
	if !t.take(c) || !s.Waits {
		return struct{}{}, nil
	}
	select {
	case <-c.letGo:
	case <-ctx.Done():
	case <-time.After(trapPatience):
		c.ended.Store(true)
	}
	return struct{}{}, nil
}

// take hands the announcement to whoever armed the trap, unless another was first.
func (t *traps) take(c caught) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.armed[c.Trap]
	if a == nil || a.taken {
		return false
	}
	a.taken = true
	a.caught <- c
	return true
}
