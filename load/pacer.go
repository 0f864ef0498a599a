package load

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pacer starts turns when they are due and has clients carry them out.
//
// The open loop never slows down because clients are busy: what becomes due waits, in order, for a free client, and its
// latency counts from when it was due. So a subject that stalls is seen to stall for everybody who would have come
// meanwhile (no coordinated omission). That includes the process itself: after it was stopped, all that was due in the
// meantime is released at once with its true due times.
type Pacer struct {
	// Clock is the run's clock: nanoseconds since its epoch. Safe to call concurrently.
	Clock func() int64
	// Start is when load starts, on that clock; End when no turn starts any more.
	Start, End int64
	Clients    int
	// Turn carries out one turn of a client, from 0. It is called by one goroutine per client; due is the run's time at which
	// it was due, 0 in a closed loop. It should return soon after ctx ends.
	Turn func(ctx context.Context, client int, due int64)
	// Lag, if not nil, is told of each arrival of an open loop how late the pacer released it. It is called by one goroutine.
	Lag func(time.Duration)
}

// Done is what a pacer did.
type Done struct {
	Offered int64 // arrivals that became due; in a closed loop, turns started
	Started int64 // those that a client took
	// Unstarted arrivals were still waiting for a free client when load ended.
	Unstarted int64
}

// Open runs the schedule and returns when load has ended and the last turn has returned. An ended ctx ends load at once.
func (p Pacer) Open(ctx context.Context, schedule Schedule) Done {
	q := newQueue()
	var clients sync.WaitGroup
	for client := range p.Clients {
		clients.Go(func() {
			for ctx.Err() == nil {
				due, ok := q.take()
				if !ok {
					return
				}
				p.Turn(ctx, client, due)
			}
		})
	}

	var offered int64
	released := make(chan struct{})
	go func() {
		defer close(released)
		// A thread of its own: its sleeps end on time, to the kernel's precision, whatever Go's scheduler is busy with.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		offered = p.release(ctx, schedule, q)
		p.sleepUntil(ctx, p.End)
	}()
	<-released
	started, waiting := q.close()
	clients.Wait()
	return Done{Offered: offered, Started: started, Unstarted: waiting}
}

// release puts arrivals into the queue as they become due, all that are due by now at once.
func (p Pacer) release(ctx context.Context, schedule Schedule, q *queue) (offered int64) {
	var batch []int64
	next, more := schedule.Next()
	for more && p.Start+int64(next) < p.End {
		if !p.sleepUntil(ctx, p.Start+int64(next)) {
			return offered
		}
		now := p.Clock()
		batch = batch[:0]
		for more && p.Start+int64(next) <= now && p.Start+int64(next) < p.End && len(batch) < chunk {
			due := p.Start + int64(next)
			batch = append(batch, due)
			if p.Lag != nil {
				p.Lag(time.Duration(now - due))
			}
			next, more = schedule.Next()
		}
		q.put(batch)
		offered += int64(len(batch))
	}
	return offered
}

// longestNap bounds one sleep, and so how late an ended context is noticed.
const longestNap = 10 * time.Millisecond

// sleepUntil returns when the run's clock has reached an instant, or false when ctx has ended.
func (p Pacer) sleepUntil(ctx context.Context, at int64) bool {
	for ctx.Err() == nil {
		left := time.Duration(at - p.Clock())
		if left <= 0 {
			return true
		}
		nap(min(left, longestNap))
	}
	return false
}

// Closed has each client start its next turn when the last ended, from Start to End, and returns when the last has returned.
func (p Pacer) Closed(ctx context.Context) Done {
	var started atomic.Int64
	var clients sync.WaitGroup
	for client := range p.Clients {
		clients.Go(func() {
			if wait := p.Start - p.Clock(); wait > 0 {
				timer := time.NewTimer(time.Duration(wait))
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-ctx.Done():
				}
			}
			for ctx.Err() == nil && p.Clock() < p.End {
				started.Add(1)
				p.Turn(ctx, client, 0)
			}
		})
	}
	clients.Wait()
	return Done{Offered: started.Load(), Started: started.Load()}
}
