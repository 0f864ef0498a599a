package topology

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fencepost.dev/faults"
)

func timeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func testLog(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// watched runs a topology's Watch for the length of the test and gives the reports.
func watched(t *testing.T, topology Topology) <-chan time.Time {
	t.Helper()
	reports := make(chan time.Time, 100)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { topology.Watch(ctx, func(int, time.Duration) { reports <- time.Now() }) })
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return reports
}

// report waits for a report, and checks that it didn't come before the node could answer.
func report(t *testing.T, reports <-chan time.Time, after time.Time, what string) {
	t.Helper()
	select {
	case at := <-reports:
		if at.Before(after) {
			t.Errorf("%s: reported %v before it could answer", what, after.Sub(at))
		}
		t.Logf("%s: reported %v after", what, at.Sub(after))
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: no report", what)
	}
}

func TestWatchReportsANodeThatAnswersAgain(t *testing.T) {
	topology := up(t, standaloneOrder(t, nil))
	reports := watched(t, topology)
	node := resolve(t, topology, "0").(*server)
	for _, fault := range []string{"pause", "restart"} {
		undo := inject(t, fault, node, faults.Order{})
		time.Sleep(400 * time.Millisecond)
		drain(reports) // a slow machine may have been taken for an outage before
		before := time.Now()
		undo()
		report(t, reports, before, fault)
	}
	// What nobody tells it about: a process that stops without our doing.
	pid := node.PID()
	if err := syscall.Kill(-pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(800 * time.Millisecond)
	drain(reports)
	before := time.Now()
	if err := syscall.Kill(-pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	report(t, reports, before, "a stop from elsewhere")
}

func drain(reports <-chan time.Time) {
	for {
		select {
		case <-reports:
		default:
			return
		}
	}
}

// fakeNode answers a PING after a delay, or not before it is up.
type fakeNode struct {
	up    atomic.Bool
	hangs atomic.Bool // down as a stopped process is, not as a closed port
	delay time.Duration
	asked atomic.Int64
}

func (f *fakeNode) ping(ctx context.Context) error {
	f.asked.Add(1)
	for !f.up.Load() {
		if !f.hangs.Load() {
			return syscall.ECONNREFUSED
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	time.Sleep(f.delay)
	return ctx.Err()
}

// reported is when a node was said to answer again, and for how long it was said to have been silent.
type reported struct{ at, silence time.Duration }

// TestPulse has a clock of its own, so that its times are exact.
func TestPulse(t *testing.T) {
	watch := func(t *testing.T, f *fakeNode, script func(p *pulse, reports func() []reported)) {
		synctest.Test(t, func(t *testing.T) {
			epoch := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			var p pulse
			var mu sync.Mutex
			var reports []reported
			var watching sync.WaitGroup
			watching.Go(func() {
				p.watch(ctx, f.ping, func(silence time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, reported{time.Since(epoch), silence})
				})
			})
			time.Sleep(time.Second)
			synctest.Wait()
			script(&p, func() []reported {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(reports)
			})
			cancel()
			watching.Wait()
		})
	}
	// The node fell silent at fell, and was asked at most one probeCalm and a question's time before.
	one := func(t *testing.T, got []reported, fell, from, to time.Duration) {
		t.Helper()
		if len(got) != 1 || got[0].at < from || got[0].at > to {
			t.Errorf("reports %+v, not one from %v to %v", got, from, to)
			return
		}
		if began := got[0].at - got[0].silence; began > fell || began < fell-probeCalm-150*time.Millisecond {
			t.Errorf("silent from %v, and it fell silent at %v", began, fell)
		}
	}
	after := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

	t.Run("a node that answers is asked seldom and never reported", func(t *testing.T) {
		f := &fakeNode{}
		f.up.Store(true)
		watch(t, f, func(_ *pulse, reports func() []reported) {
			after(9 * time.Second)
			if n := f.asked.Load(); len(reports()) != 0 || n < 90 || n > 110 {
				t.Errorf("reports %v after %d questions", reports(), n)
			}
		})
	})
	for name, hangs := range map[string]bool{"refuses": false, "hangs": true} {
		t.Run("a node that "+name+" is reported soon after it is back", func(t *testing.T) {
			f := &fakeNode{}
			f.up.Store(true)
			watch(t, f, func(_ *pulse, reports func() []reported) {
				f.hangs.Store(hangs)
				f.up.Store(false)
				after(time.Second)
				f.up.Store(true)
				after(time.Second)
				one(t, reports(), time.Second, 2*time.Second, 2*time.Second+20*time.Millisecond)
			})
		})
	}
	t.Run("a node that we took down is not asked, and not reported before it is back", func(t *testing.T) {
		f := &fakeNode{}
		f.up.Store(true)
		watch(t, f, func(p *pulse, reports func() []reported) {
			p.fell() // it would answer: the stop takes effect later
			asked := f.asked.Load()
			after(time.Second)
			if f.asked.Load() > asked || len(reports()) > 0 {
				t.Errorf("asked %d times, reported %v", f.asked.Load()-asked, reports())
			}
			p.rose()
			after(time.Second)
			one(t, reports(), time.Second, 2*time.Second, 2*time.Second)
		})
	})
	t.Run("an answer to a question from before the fault does not count", func(t *testing.T) {
		f := &fakeNode{delay: 100 * time.Millisecond} // asked at 1.0 s, 1.2 s, …: in flight at 1.05 s
		f.up.Store(true)
		watch(t, f, func(p *pulse, reports func() []reported) {
			after(50 * time.Millisecond)
			p.fell()
			p.rose()
			after(20 * time.Millisecond)
			if len(reports()) > 0 {
				t.Errorf("reports %v", reports())
			}
			after(time.Second)
			one(t, reports(), 1050*time.Millisecond, 1200*time.Millisecond, 1210*time.Millisecond) // the second question's answer
		})
	})
	t.Run("nor does one to a question that was asked because of an outage before", func(t *testing.T) {
		f := &fakeNode{delay: 100 * time.Millisecond}
		f.up.Store(true)
		watch(t, f, func(p *pulse, reports func() []reported) {
			f.up.Store(false)
			after(time.Second)
			f.up.Store(true)
			after(50 * time.Millisecond) // asked about now, for the node is suspected; answered at 2.1 s
			p.fell()
			after(450 * time.Millisecond)
			if len(reports()) > 0 {
				t.Errorf("reports %v", reports())
			}
			p.rose()
			after(time.Second)
			one(t, reports(), time.Second, 2600*time.Millisecond, 2610*time.Millisecond)
		})
	})
	t.Run("a late answer is a sign of an outage, and the next one its end", func(t *testing.T) {
		f := &fakeNode{}
		f.up.Store(true)
		watch(t, f, func(_ *pulse, reports func() []reported) {
			f.hangs.Store(true)
			f.up.Store(false)
			after(290 * time.Millisecond) // asked at 1.1 s, and answered 190 ms later, within its patience
			f.up.Store(true)
			after(time.Second)
			one(t, reports(), 1090*time.Millisecond, 1290*time.Millisecond, 1310*time.Millisecond)
		})
	})
}

func ExampleKinds() {
	for _, kind := range Kinds() {
		fmt.Printf("%v: %s\n", kind, kind.Summary)
	}
	// Output:
	// valkey standalone (process): one server that we run
	// valkey standalone (external): one server that is already there
}
