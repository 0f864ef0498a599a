package harness

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/plane"
	"fencepost.dev/workloads"
)

// trapBench is a coordinator's traps and the points of two workers, over a real plane.
type trapBench struct {
	traps   *traps
	workers []*points
}

func newTrapBench(t *testing.T) *trapBench {
	t.Helper()
	hub, err := plane.Listen(t.Context(), plane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	conn := hub.Conn()
	b := &trapBench{traps: newTraps(conn, func(process, client uint16) (string, string) {
		return fmt.Sprintf("w%d", process+1), fmt.Sprintf("w%d/c%d", process+1, client)
	})}
	stop, err := conn.Serve(subjectSprung, b.traps.announced)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	for i := range uint16(2) {
		p := &points{worker: fmt.Sprintf("w%d", i+1), process: i, now: func() int64 { return 42 }}
		p.announce = func(ctx context.Context, s sprung) error { return conn.Request(ctx, subjectSprung, s, nil) }
		b.workers = append(b.workers, p)
		c := &client{points: p}
		for subject, f := range map[string]func(trap){subjectArm: p.arm, subjectDisarm: func(t trap) { p.disarm(t.ID) }} {
			stop, err := conn.Subscribe(subject, func(m plane.Message) { c.withTrap(m, f) })
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
		}
		t.Cleanup(p.announcing.Wait)
	}
	return b
}

// awaitArmed waits until a worker's trap is armed.
func (b *trapBench) awaitArmed(t *testing.T, worker int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !b.workers[worker].armed.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the trap was never armed")
		}
	}
}

func TestTrapCatchesOneClientUntilReleased(t *testing.T) {
	b := newTrapBench(t)
	b.workers[0].pass(t.Context(), "holding", 0, 0) // nothing is armed: nobody is caught

	caught := make(chan faults.Sprung, 1)
	go func() {
		s, err := b.traps.Arm(t.Context(), "holding", nil)
		if err != nil {
			t.Error(err)
		}
		caught <- s
	}()
	b.awaitArmed(t, 0)
	b.awaitArmed(t, 1)
	b.workers[0].pass(t.Context(), "before-write", 0, 0) // another point: nobody is caught
	var passed [2]chan struct{}
	for i := range passed {
		passed[i] = make(chan struct{})
		go func() {
			b.workers[i].pass(t.Context(), "holding", 3, history.NewGrantID(uint16(i), 3, 1))
			close(passed[i])
		}()
	}
	s := <-caught
	if s.At != 42 || s.Grant == 0 || s.Client != fmt.Sprintf("%s/c3", s.Worker) {
		t.Errorf("caught %+v", s)
	}
	<-passed[1-s.Process] // the other is let go at once
	select {
	case <-passed[s.Process]:
		t.Error("the client went on before it was released")
	case <-time.After(20 * time.Millisecond):
	}
	if !s.Release() {
		t.Error("the client is said to have been missed, and was waiting")
	}
	<-passed[s.Process]
	if len(b.traps.current()) != 0 {
		t.Error("a trap that was sprung is still armed")
	}
}

func TestTrapMissedAfterASecond(t *testing.T) {
	b := newTrapBench(t)
	caught := make(chan faults.Sprung, 1)
	go func() {
		s, err := b.traps.Arm(t.Context(), "holding", []string{"w2"})
		if err != nil {
			t.Error(err)
		}
		caught <- s
	}()
	b.awaitArmed(t, 1)
	if b.workers[0].armed.Load() {
		t.Error("w1 was armed with a trap for w2")
	}
	started := time.Now()
	b.workers[1].pass(t.Context(), "holding", 0, 0)
	if waited := time.Since(started); waited < trapPatience {
		t.Errorf("the client went on after %s, before anybody released it", waited)
	}
	if s := <-caught; s.Release() {
		t.Error("the client had gone on, and is said to have waited")
	}
}

func TestRequestInFlightDoesNotWait(t *testing.T) {
	b := newTrapBench(t)
	var arming sync.WaitGroup
	arming.Go(func() {
		s, err := b.traps.Arm(t.Context(), workloads.RequestInFlight, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if !s.Release() {
			t.Error("nobody waits there, so nobody can be missed")
		}
	})
	b.awaitArmed(t, 0)
	b.workers[0].pass(t.Context(), workloads.RequestInFlight, 1, 0)
	arming.Wait() // only the announcement can have ended it
}

func TestTrapThatNobodySpringsEndsWithItsContext(t *testing.T) {
	b := newTrapBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := b.traps.Arm(ctx, "holding", nil); err == nil {
		t.Error("a trap that nobody sprang gives no error")
	}
	for deadline := time.Now().Add(10 * time.Second); b.workers[0].armed.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the trap stays armed")
		}
	}
}
