package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is a run's clock that began now.
func clock() func() int64 {
	base := time.Now()
	return func() int64 { return int64(time.Since(base)) }
}

// A subject that answers at once but for one stall: whoever was due during the stall waited for it, and is seen to have
// waited. Measured from when each turn started, only one turn would look slow.
func TestStallIsSeenByAllThatWereDue(t *testing.T) {
	const (
		stall  = 600 * time.Millisecond
		begins = 200 * time.Millisecond
	)
	now := clock()
	var mutex sync.Mutex
	var fromDue, fromStart []time.Duration
	var stalled atomic.Bool
	p := Pacer{Clock: now, End: int64(2 * time.Second), Clients: 1, Turn: func(_ context.Context, _ int, due int64) {
		start := now()
		if start >= int64(begins) && !stalled.Swap(true) {
			time.Sleep(stall)
		}
		mutex.Lock()
		defer mutex.Unlock()
		end := now()
		fromDue, fromStart = append(fromDue, time.Duration(end-due)), append(fromStart, time.Duration(end-start))
	}}
	done := p.Open(t.Context(), NewStages([]Stage{Constant(200, time.Second, Even)}, 0))
	if done != (Done{Offered: 200, Started: 200}) {
		t.Fatalf("did %+v, want all of 200", done)
	}
	slow := func(latencies []time.Duration) (n int) {
		for _, l := range latencies {
			if l >= stall/2 {
				n++
			}
		}
		return n
	}
	// 60 turns are due in the first half of the stall and so wait for half of it or more. A machine that stalls by itself adds
	// to them and takes none away.
	if n := slow(fromDue); n < 58 {
		t.Errorf("%d turns waited for half the stall or longer, want about 60", n)
	}
	if n := slow(fromStart); n < 1 || n > 20 {
		t.Errorf("%d turns took half the stall from their start, want the one that stalled", n)
	}
}

// Clients that are busy for good don't hold arrivals back; those are counted, and not carried out after the end.
func TestUnstartedAreCounted(t *testing.T) {
	now := clock()
	release := make(chan struct{})
	var started atomic.Int64
	p := Pacer{Clock: now, End: int64(300 * time.Millisecond), Clients: 3, Turn: func(context.Context, int, int64) {
		started.Add(1)
		<-release
	}}
	time.AfterFunc(500*time.Millisecond, func() { close(release) })
	done := p.Open(t.Context(), NewStages([]Stage{Constant(10000, time.Hour, Even)}, 0))
	if want := (Done{Offered: 3000, Started: 3, Unstarted: 2997}); done != want {
		t.Errorf("did %+v, want %+v", done, want)
	}
	if started.Load() != 3 {
		t.Errorf("%d turns were started", started.Load())
	}
}

// Arrivals are taken in the order in which they became due, each once, by clients that exist.
func TestArrivalsAreTakenInOrder(t *testing.T) {
	now := clock()
	var mutex sync.Mutex
	var dues []int64
	p := Pacer{Clock: now, Start: int64(20 * time.Millisecond), End: int64(time.Second), Clients: 1,
		Turn: func(_ context.Context, client int, due int64) {
			mutex.Lock()
			defer mutex.Unlock()
			if due > now() {
				t.Errorf("started %s before it was due", time.Duration(due-now()))
			}
			dues = append(dues, due)
		}}
	want := []int64{}
	for _, due := range all(NewStages([]Stage{Constant(20000, 200*time.Millisecond, Poisson)}, 1)) {
		want = append(want, p.Start+int64(due))
	}
	p.Open(t.Context(), NewStages([]Stage{Constant(20000, 200*time.Millisecond, Poisson)}, 1))
	if !slices.Equal(dues, want) {
		t.Errorf("%d turns, want %d in the schedule's order", len(dues), len(want))
	}
}

func TestEndedContextEndsLoad(t *testing.T) {
	for name, run := range map[string]func(Pacer, context.Context) Done{
		"open": func(p Pacer, ctx context.Context) Done {
			return p.Open(ctx, NewStages([]Stage{Constant(100, time.Hour, Even)}, 0))
		},
		"closed": Pacer.Closed,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			begun := time.Now()
			done := run(Pacer{Clock: clock(), End: int64(time.Hour), Clients: 4, Turn: func(ctx context.Context, _ int, _ int64) {
				<-ctx.Done()
			}}, ctx)
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("ended after %s", took)
			}
			if done.Started > 4 || done.Offered != done.Started+done.Unstarted {
				t.Errorf("did %+v", done)
			}
		})
	}
}

func TestClosedLoop(t *testing.T) {
	now := clock()
	var turns atomic.Int64
	busy := make([]atomic.Bool, 4)
	done := Pacer{Clock: now, Start: int64(20 * time.Millisecond), End: int64(120 * time.Millisecond), Clients: 4,
		Turn: func(_ context.Context, client int, due int64) {
			if due != 0 || busy[client].Swap(true) {
				t.Errorf("due %d, or client %d in two turns at once", due, client)
			}
			turns.Add(1)
			time.Sleep(time.Millisecond)
			busy[client].Store(false)
		}}.Closed(t.Context())
	if done.Started != turns.Load() || done.Started < 4 || done.Unstarted != 0 {
		t.Errorf("did %+v in %d turns", done, turns.Load())
	}
	if end := now(); end < int64(120*time.Millisecond) {
		t.Errorf("ended at %s", time.Duration(end))
	}
}

// How late arrivals are released: p50 and p99 over a second of load.
func BenchmarkPacing(b *testing.B) {
	for _, rate := range []float64{1000, 20000} {
		b.Run(time.Duration(float64(time.Second)/rate).String(), func(b *testing.B) {
			var lags []time.Duration
			for b.Loop() {
				p := Pacer{Clock: clock(), End: int64(time.Second), Clients: 8, Turn: func(context.Context, int, int64) {},
					Lag: func(lag time.Duration) { lags = append(lags, lag) }}
				if done := p.Open(b.Context(), NewStages([]Stage{Constant(rate, time.Second, Even)}, 0)); done.Offered != int64(rate) {
					b.Fatalf("offered %d of %v", done.Offered, rate)
				}
			}
			slices.Sort(lags)
			b.ReportMetric(float64(lags[len(lags)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(lags[len(lags)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(lags[len(lags)-1].Microseconds()), "max-µs")
		})
	}
}
