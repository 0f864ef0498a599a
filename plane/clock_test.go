package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSameClock(t *testing.T) {
	h, c := hub(t)
	coordinator := NewClock()
	cancel, err := coordinator.Serve(h.Conn())
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	time.Sleep(20 * time.Millisecond)
	joined, err := JoinClock(t.Context(), coordinator.Share(), c)
	if err != nil {
		t.Fatal(err)
	}
	if identity().Boot == "" {
		t.Skip("this machine does not tell its clock's identity")
	}
	if !joined.Same() || joined.Error() > int64(20*time.Microsecond) {
		t.Fatalf("same: %v, error %d ns", joined.Same(), joined.Error())
	}
	sideBySide(t, coordinator, joined)
}

func TestIdentity(t *testing.T) {
	a := Identity{Boot: "b", Namespace: 1}
	for other, shares := range map[Identity]bool{a: true, {Boot: "b", Namespace: 2}: false, {Boot: "c", Namespace: 1}: false, {}: false} {
		if a.Shares(other) != shares || other.Shares(a) != shares {
			t.Errorf("%+v and %+v share a clock: not %v", a, other, shares)
		}
	}
	if unknown := (Identity{}); unknown.Shares(unknown) {
		t.Error("two that know nothing share a clock")
	}
}

// sideBySide holds two clocks of one process side by side: what one tells between two readings of the other is between them,
// give or take the bound.
func sideBySide(t *testing.T, coordinator, joined *Clock) {
	t.Helper()
	for range 1000 {
		before := coordinator.Now()
		told := joined.Now()
		after := coordinator.Now()
		if bound := joined.Error(); told < before-bound || told > after+bound {
			t.Fatalf("it tells %d, between %d and %d, with a bound of %d", told, before, after, bound)
		}
	}
}

// A name that is equal by chance, as in the clones of a virtual machine, is found out.
func TestSameNameOtherClock(t *testing.T) {
	h, c := hub(t)
	coordinator := NewClock()
	cancel, err := coordinator.Serve(h.Conn())
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	share := coordinator.Share()
	share.Identity = Identity{Boot: "cloned"}
	share.Epoch += int64(time.Hour) // the clone's clock shows something else
	joined, err := joinClock(t.Context(), share, c, Identity{Boot: "cloned"})
	if err != nil {
		t.Fatal(err)
	}
	if joined.Same() {
		t.Error("it was believed")
	}
	sideBySide(t, coordinator, joined)
}

func TestMeasuredClock(t *testing.T) {
	h, c := hub(t)
	coordinator := NewClock()
	cancel, err := coordinator.Serve(h.Conn())
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	joined, err := joinClock(t.Context(), coordinator.Share(), c, Identity{Boot: "elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	if joined.Same() {
		t.Fatal("another machine's clock was taken for ours")
	}
	t.Logf("error after the first probes: %v", time.Duration(joined.Error()))
	var kept sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	kept.Go(func() { joined.Keep(ctx, c) })
	last := int64(0)
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(time.Millisecond) {
		now := joined.Now()
		if now < last {
			t.Fatalf("it ran backwards by %d ns", last-now)
		}
		last = now
		sideBySide(t, coordinator, joined)
	}
	end()
	kept.Wait()
	t.Logf("error after a second: %v", time.Duration(joined.Error()))

	if _, err := joinClock(t.Context(), coordinator.Share(), nil, Identity{Boot: "elsewhere"}); err == nil {
		t.Error("an offset was found without measuring")
	}
	cancel()
	if _, err := joinClock(t.Context(), coordinator.Share(), c, Identity{Boot: "elsewhere"}); err == nil {
		t.Error("an offset was found without an answer")
	}
}

// Whatever the network's delays and the clock's drift within its bound, every time told is within the error that is admitted
// at the end, and time never runs backwards. The clocks are simulated: u is true time.
func TestRevisionsAreCovered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := 1 + rapid.Float64Range(-drift, drift).Draw(t, "drift")/2
		ahead := rapid.Int64Range(-1e12, 1e12).Draw(t, "offset")
		sleeps := rapid.Bool().Draw(t, "sleeps")
		// A sleep shorter than a round trip would go unseen, and this holds only for longer ones.
		jump := int64(0)                                                    // the machine slept: its clock stood still by so much
		own := func(u int64) int64 { return int64(float64(u)*rate) - jump } // the process's clock at u
		run := func(u int64) int64 { return u + ahead }                     // the run's clock at u
		probe := func(u int64) (interval, int64) {                          // sent at u
			to, back := rapid.Int64Range(1e4, 5e7).Draw(t, "to"), rapid.Int64Range(1e4, 5e7).Draw(t, "back")
			return measured(own(u), run(u+to), own(u+to+back)), u + to + back
		}
		c := &Clock{}
		seen, u := probe(0)
		c.known = seen
		c.line.Store(&line{offset: seen.middle()})
		type told struct{ told, true int64 }
		var all []told
		last := int64(-1 << 62)
		tell := func(u int64) {
			l, o := c.line.Load(), own(u)
			now := o + l.offsetAt(o)
			if now < last {
				t.Fatalf("it ran backwards by %d ns", last-now)
			}
			last = now
			all = append(all, told{now, run(u)})
		}
		for range rapid.IntRange(1, 12).Draw(t, "probes") {
			gap := rapid.Int64Range(1e6, 2e9).Draw(t, "gap") / 5
			for range 5 {
				tell(u)
				u += gap
			}
			if sleeps && rapid.IntRange(0, 3).Draw(t, "asleep") == 0 {
				slept := rapid.Int64Range(2e8, 2e9).Draw(t, "slept")
				jump += int64(float64(slept) * rate)
				u += slept
			}
			tell(u)
			seen, u = probe(u)
			tell(u)
			c.revise(seen, own(u))
			tell(u)
		}
		c.foldIn(own(u))
		for _, a := range all {
			if off := a.told - a.true; off > c.worst+2 || -off > c.worst+2 { // 2 ns of rounding in the simulation
				t.Fatalf("a time told was off by %d ns; the error admitted is %d", off, c.worst)
			}
		}
	})
}

// playClock joins the clock and says what it makes of it, then tells its time whenever it is asked.
func playClock() {
	conn := playDial()
	var share ClockShare
	must(0, json.Unmarshal([]byte(os.Getenv("PLANE_SHARE")), &share))
	ctx := context.Background()
	clock := must(JoinClock(ctx, share, conn))
	go clock.Keep(ctx, conn)
	must(conn.Serve("tell", func(context.Context, Message) (any, error) { return clock.Now(), nil }))
	must(conn.Serve("bound", func(context.Context, Message) (any, error) { return clock.Error(), nil }))
	fmt.Println(clock.Same())
	waitForStdin()
	os.Exit(0)
}

// A process in a time namespace of its own has the same boot id, the same machine, and another monotonic clock.
func TestOtherTimeNamespace(t *testing.T) {
	for _, c := range []struct {
		name    string
		through []string
		same    string
	}{
		{"ours", nil, "true"},
		{"ahead", []string{"unshare", "-T", "--monotonic", "100000", "--"}, "false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.through != nil && !canUnshare() {
				t.Skip("time namespaces can't be made here (needs Linux, unshare and root)")
			}
			h, conn := hub(t)
			coordinator := NewClock()
			cancel, err := coordinator.Serve(h.Conn())
			if err != nil {
				t.Fatal(err)
			}
			defer cancel()
			share, err := json.Marshal(coordinator.Share())
			if err != nil {
				t.Fatal(err)
			}
			worker := play(t, "clock", c.through, append(at(h), "PLANE_SHARE="+string(share))...)
			if same := worker.line(t); same != c.same {
				t.Fatalf("same clock: %s", same)
			}
			type reading struct{ before, told, after int64 }
			var all []reading
			for range 200 {
				r := reading{before: coordinator.Now()}
				if err := conn.Request(t.Context(), "tell", nil, &r.told); err != nil {
					t.Fatal(err)
				}
				r.after = coordinator.Now()
				all = append(all, r)
				time.Sleep(3 * time.Millisecond)
			}
			var bound int64
			if err := conn.Request(t.Context(), "bound", nil, &bound); err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				if r.told < r.before-bound || r.told > r.after+bound {
					t.Fatalf("it tells %d between %d and %d, with a bound of %v", r.told, r.before, r.after, time.Duration(bound))
				}
			}
			t.Logf("bound: %v", time.Duration(bound))
		})
	}
}

func canUnshare() bool { return exec.Command("unshare", "-T", "--monotonic", "1", "true").Run() == nil }

func BenchmarkNow(b *testing.B) {
	c := NewClock()
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}
