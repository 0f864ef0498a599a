package harness

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/plane"
)

// clientRecorder is where one client's operations go: into the history, and their latencies into the histograms. It belongs
// to the client's goroutine.
type clientRecorder struct {
	client *client
	number uint16
	due    int64 // what the next operation's latency counts from; 0: its call
	// calling is a time before the Call of an operation that is being begun, or notCalling. Anybody may read it.
	calling atomic.Int64
}

const notCalling = math.MaxInt64

func newClientRecorder(c *client, number uint16) *clientRecorder {
	r := &clientRecorder{client: c, number: number}
	r.calling.Store(notCalling)
	return r
}

// begin is the start of a turn that was due then; 0 in a closed loop.
func (r *clientRecorder) begin(due int64) { r.due = due }

// Key is workloads.Recorder.
func (r *clientRecorder) Key(name string) uint32 { return r.client.recorder.Key(name) }

// Error is workloads.Recorder.
func (r *clientRecorder) Error(err error) uint16 {
	if err == nil {
		return 0
	}
	return r.client.recorder.Error(err.Error())
}

// Begin is workloads.Recorder.
func (r *clientRecorder) Begin(op *history.Operation) history.Slot {
	op.Worker, op.Client = r.client.Process, r.number
	if !r.client.Watched {
		op.Call = r.client.clock.Now()
		return r.client.recorder.Begin(op)
	}
	// Whoever finds us not calling, after it looked at the clock, knows that Call comes later than what it saw.
	r.calling.Store(r.client.clock.Now())
	op.Call = r.client.clock.Now()
	slot := r.client.recorder.Begin(op)
	r.calling.Store(notCalling)
	return slot
}

// settledUntil is an instant: whatever was called before it is in the recorder, if only as called.
func (c *client) settledUntil() int64 {
	until := c.clock.Now()
	for _, who := range c.clients {
		until = min(until, who.Recorder.(*clientRecorder).calling.Load())
	}
	if c.clock.Same() {
		return until
	}
	return until - 2*c.clock.Error() // the clock may be set back by as much
}

// End is workloads.Recorder.
func (r *clientRecorder) End(slot history.Slot, op *history.Operation) {
	op.Return = r.client.clock.Now()
	r.client.recorder.End(slot, op)
	from := op.Call
	if r.due != 0 {
		from, r.due = r.due, 0
	}
	r.client.latency.Record(int(r.number), op, from)
}

// stalled keeps a stall until the next report.
func (c *client) stalled(s plane.Stall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalls = append(c.stalls, stallOf(s))
}

func stallOf(s plane.Stall) stall {
	told := stall{Kind: string(s.Kind), At: s.At, Length: int64(s.Length), Delay: int64(s.Length), Detail: s.String()}
	if s.Kind == plane.StallClock {
		told.Delay = int64(s.Moved.Abs())
	}
	return told
}

// report tells the coordinator every 100 ms what was done, until ctx ends, and once more then.
func (c *client) report(ctx context.Context) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for last := false; !last; {
		select {
		case <-ctx.Done():
			last = true
		case <-ticker.C:
		}
		c.tell(c.clock.Now())
		c.stream()
	}
}

// tell sends one report, of the intervals that ended before an instant.
func (c *client) tell(before int64) {
	c.mu.Lock()
	stalls := c.stalls
	c.stalls = nil
	c.mu.Unlock()
	clockError := c.clock.Error()
	c.recorder.SetClockError(clockError)
	err := c.conn.Publish(subjectProgress, progress{
		Process: c.Process, ClockError: clockError, Intervals: c.latency.Take(before),
		Turns: c.turns.Load(), Stalls: stalls,
	})
	if err != nil {
		c.log.Error("reporting", "error", err)
	}
}

// stream sends what is new in the history, if the coordinator can't read it here or watches the run.
func (c *client) stream() {
	settled := settledUntil{Process: c.Process}
	if c.Watched { // before the record is looked at
		settled.Until = c.settledUntil()
	}
	for c.unsent != nil {
		var err error
		if c.batch == nil {
			if c.batch, err = c.unsent.Next(); err != nil && !errors.Is(err, history.ErrClosed) {
				c.log.Error("reading the history to send it", "error", err)
			}
		}
		if c.batch == nil {
			if err == nil && c.Watched {
				if err := c.conn.Publish(subjectSettled, settled); err != nil {
					c.log.Error("reporting", "error", err)
				}
			}
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), sendPatience)
		err = c.conn.Request(ctx, subjectHistory, c.batch, nil)
		cancel()
		if err != nil { // the same batch is sent again: the coordinator knows one that it has
			c.log.Error("sending the history", "error", err)
			return
		}
		c.batch = nil
	}
}
