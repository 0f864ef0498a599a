package plane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Worker is the coordinator's handle on a worker's client process. Each call returns when the agent has seen it done.
type Worker struct {
	Name        string // "w1"
	Incarnation int
	Agent       string // the id of its agent
	PID         int    // on its agent's machine

	fleet  *Fleet
	member *member
	name   string // "w1.2"
	done   chan struct{}
	exit   Exit // written before done is closed
}

func (w *Worker) String() string { return w.name }

// Pause stops the process and its children (SIGSTOP); it has stopped when Pause returns.
func (w *Worker) Pause(ctx context.Context) error { return w.handle(ctx, handleOrder{Do: "pause"}) }

// Resume sets it going again (SIGCONT).
func (w *Worker) Resume(ctx context.Context) error { return w.handle(ctx, handleOrder{Do: "resume"}) }

// Kill ends it without warning (SIGKILL). It has ended, and Exit is known, when Kill returns. Killing one that has ended
// already is no error.
func (w *Worker) Kill(ctx context.Context) error { return w.finally(ctx, handleOrder{Do: "kill"}) }

// Stop asks it to end (SIGTERM) and kills it after grace. Otherwise it is like Kill.
func (w *Worker) Stop(ctx context.Context, grace time.Duration) error {
	return w.finally(ctx, handleOrder{Do: "stop", Grace: grace})
}

// Done is closed when the process has ended.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Exit is how it ended. It waits for Done.
func (w *Worker) Exit() Exit {
	<-w.done
	return w.exit
}

// finish is called once, by whoever takes the worker out of its member's list, with Fleet.mu held.
func (w *Worker) finish(e Exit) {
	w.exit = e
	close(w.done)
}

func (w *Worker) ended() bool { return closed(w.done) }

func (w *Worker) handle(ctx context.Context, order handleOrder) error {
	if w.ended() {
		return fmt.Errorf("plane: cannot %s worker %s: it has %v", order.Do, w.name, w.exit)
	}
	order.Name = w.name
	return w.ask(ctx, verbHandle, order, nil)
}

func (w *Worker) finally(ctx context.Context, order handleOrder) error {
	order.Name = w.name
	err := w.ask(ctx, verbHandle, order, nil)
	if remote := (*Remote)(nil); err != nil && !errors.As(err, &remote) && !w.ended() {
		return err
	}
	// Refusing to end a process can mean that it has ended a moment ago: then its report is on its way.
	wait, cancel := ctx, context.CancelFunc(func() {})
	if err != nil {
		wait, cancel = context.WithTimeout(ctx, time.Second)
	}
	defer cancel()
	select {
	case <-w.done:
		return nil
	case <-wait.Done():
		return errors.Join(err, ctx.Err())
	}
}

// ask requests something of the worker's agent, and gives up when the agent is.
func (w *Worker) ask(ctx context.Context, verb string, order, reply any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asked := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-w.member.gone:
			cancel(ErrAgentGone)
		case <-asked:
		}
	})
	err := w.fleet.conn.Request(ctx, agentSubject(w.Agent, verb), order, reply)
	close(asked)
	watch.Wait()
	if err != nil && errors.Is(context.Cause(ctx), ErrAgentGone) {
		return fmt.Errorf("plane: %s of worker %s: %w", verb, w.name, ErrAgentGone)
	}
	return err
}
