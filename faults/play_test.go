package faults_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/scenarios"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// bubble runs the test with a clock of its own, which moves when everything waits, and fails if a goroutine is left.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

// told compares what happened with what should have, line by line.
func told(t *testing.T, w *world, want string) {
	t.Helper()
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(want), "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	if got := strings.TrimSpace(w.String()); got != strings.Join(lines, "\n") {
		t.Errorf("it went\n%s\nand not\n%s", got, strings.Join(lines, "\n"))
	}
}

func TestAFaultIsJournaledInjectedHeldAndUndone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1", "v0")
		w.targets["v0"].delay = 10 * ms
		w.play(t, 6*s, scenarios.Fault{At: 1 * s, Do: "pause", On: "v0", For: 700 * ms})
		told(t, w, `
			1s journal fault pause v0
			1.01s pause v0
			1.72s resume v0
			1.72s undone pause v0`)
		want := history.Event{
			ID: 1, Kind: history.EventFault, Fault: "pause", Target: "v0", Process: -1, Node: 1, Confirmed: true,
			At: int64(1 * s), End: int64(1720 * ms), // around the whole of it
		}
		if len(w.events) != 1 || w.events[0] != want {
			t.Errorf("events are %+v, not %+v", w.events, want)
		}
	})
}

func TestEveryGoesOnUntilLoadEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.play(t, 6*s, scenarios.Fault{At: 1 * s, Every: 1500 * ms, Do: "pause", On: "worker", For: 700 * ms})
		told(t, w, `
			1s journal fault pause w1
			1s pause w1
			1.7s resume w1
			1.7s undone pause w1
			2.5s journal fault pause w1
			2.5s pause w1
			3.2s resume w1
			3.2s undone pause w1
			4s journal fault pause w1
			4s pause w1
			4.7s resume w1
			4.7s undone pause w1
			5.5s journal fault pause w1
			5.5s pause w1
			6s resume w1
			6s undone pause w1`)
	})
}

func TestTimesBoundsEvery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.play(t, 60*s, scenarios.Fault{Every: 1 * s, Times: 2, Do: "pause", On: "worker", For: 100 * ms})
		if len(w.events) != 2 || w.now() > int64(2*s) {
			t.Errorf("%d faults in %v:\n%s", len(w.events), history.Since(w.now()), w)
		}
	})
}

func TestALineDoesNotOverlapItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.play(t, 2500*ms, scenarios.Fault{Every: 100 * ms, Do: "pause", On: "worker", For: 1 * s})
		if len(w.events) != 3 { // at 0, 1 and 2 s: the target fails when it is paused twice
			t.Errorf("%d faults:\n%s", len(w.events), w)
		}
	})
}

func TestLinesWaitForTheirTarget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.play(t, 10*s,
			scenarios.Fault{At: 1 * s, Do: "pause", On: "worker/w1", For: 2 * s},
			scenarios.Fault{At: 2 * s, Do: "restart", On: "worker", For: 100 * ms})
		told(t, w, `
			1s journal fault pause w1
			1s pause w1
			3s resume w1
			3s undone pause w1
			3s journal fault restart w1
			3s kill w1
			3.1s start w1
			3.1s undone restart w1`)
	})
}

func TestTimesThatWentByAreNotMadeUpFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.play(t, 6*s,
			scenarios.Fault{Do: "pause", On: "worker", For: 3500 * ms},
			scenarios.Fault{At: 100 * ms, Every: 1 * s, Do: "pause", On: "worker", For: 200 * ms})
		var at []time.Duration
		for _, event := range w.events {
			at = append(at, time.Duration(event.At))
		}
		// The second line's first had to wait; its second was due by then; the two others are lost.
		if want := []time.Duration{0, 3500 * ms, 3700 * ms, 4700 * ms, 5700 * ms}; !slices.Equal(at, want) {
			t.Errorf("faults at %v, not %v", at, want)
		}
	})
}

func TestAKillWithoutADurationLasts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1", "w2", "w3")
		w.play(t, 10*s, scenarios.Fault{Every: 1 * s, Do: "kill", On: "worker"})
		killed := map[string]bool{}
		for _, event := range w.events {
			killed[event.Target] = true
			if event.End != 0 || !event.Confirmed {
				t.Errorf("%+v", event)
			}
		}
		if len(killed) != 3 || len(w.events) != 3 {
			t.Errorf("it went\n%s", w)
		}
	})
}

func TestARestartIsMomentaryUnlessItLasts(t *testing.T) {
	no := false
	bubble(t, func(t *testing.T) {
		w := newWorld("v0")
		w.play(t, 10*s,
			scenarios.Fault{At: 1 * s, Do: "restart", On: "v0"},
			scenarios.Fault{At: 2 * s, Do: "restart", On: "v0", For: 1 * s, Options: &faults.RestartOptions{Persistence: &no}},
			scenarios.Fault{At: 4 * s, Do: "kill", On: "v0", For: 1 * s})
		told(t, w, `
			1s journal fault restart v0
			1s kill v0
			1s start v0
			1s undone restart v0
			2s journal fault restart v0
			2s kill v0
			3s start empty v0
			3s undone restart v0
			4s journal fault kill v0
			4s kill v0
			5s start v0
			5s undone kill v0`)
	})
}

func TestAPauseWithoutADurationEndsWithTheLoadOrTheContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.play(t, 3*s, scenarios.Fault{Do: "pause", On: "worker"})
		if w.events[0].End != int64(3*s) {
			t.Errorf("%+v", w.events[0])
		}
	})
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		ctx, cancel := context.WithTimeout(t.Context(), 2*s)
		defer cancel()
		err := faults.Play(ctx, []scenarios.Fault{{Do: "pause", On: "worker"}, {At: 4 * s, Do: "kill", On: "worker"}}, w.env(0))
		if err != nil || len(w.events) != 1 || w.events[0].End != int64(2*s) {
			t.Errorf("%v %+v", err, w.events)
		}
		w.settled(t)
	})
}

func TestAnInjectionUnderWayWhenLoadEndsIsFinishedAndUndone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.targets["w1"].delay = 500 * ms
		w.play(t, 1200*ms, scenarios.Fault{At: 1 * s, Do: "pause", On: "worker", For: 3 * s})
		told(t, w, `
			1s journal fault pause w1
			1.5s pause w1
			2s resume w1
			2s undone pause w1`)
	})
}

func TestChoicesFollowTheSeed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		run := func(seed uint64) string {
			w := newWorld("w1", "w2", "w3")
			env := w.env(20 * s)
			env.Rand = newRand(seed)
			if err := faults.Play(t.Context(), []scenarios.Fault{{Every: 1 * s, Do: "pause", On: "worker", For: 500 * ms}}, env); err != nil {
				t.Fatal(err)
			}
			return w.String()
		}
		first, again := run(7), run(7)
		if first != again {
			t.Error("the same seed chose other targets")
		}
		if first == run(8) || !strings.Contains(first, "w1") || !strings.Contains(first, "w3") {
			t.Errorf("seeds make no difference:\n%s", first)
		}
	})
}

func TestAFailedInjectionEndsTheSchedule(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1", "w2")
		w.targets["w2"].fail = errors.New("permission denied")
		err := faults.Play(t.Context(), []scenarios.Fault{
			{At: 1 * s, Do: "pause", On: "worker/w1", For: 5 * s},
			{At: 2 * s, Do: "pause", On: "worker/w2", For: 5 * s},
			{At: 3 * s, Do: "kill", On: "worker/w1"},
		}, w.env(10*s))
		if err == nil || !strings.Contains(err.Error(), "faults[1]: pausing w2: permission denied") {
			t.Errorf("the error is %v", err)
		}
		told(t, w, `
			1s journal fault pause w1
			1s pause w1
			2s journal fault pause w2
			2s undone pause w2
			2s resume w1
			2s undone pause w1`)
		if last := w.events[1]; last.Confirmed || last.Detail == "" {
			t.Errorf("the failed fault is recorded as %+v", last)
		}
		w.settled(t)
	})
}

func TestAFaultThatCanNotBeUndoneIsAnErrorAndStaysInTheJournal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("v0")
		w.targets["v0"].fail, w.targets["v0"].from = errors.New("the port is taken"), 1500*ms
		err := faults.Play(t.Context(), []scenarios.Fault{{At: 1 * s, Do: "kill", On: "v0", For: 1 * s}}, w.env(10*s))
		if err == nil || !strings.Contains(err.Error(), "starting v0 again: the port is taken") || len(w.open) != 1 {
			t.Errorf("the error is %v, the journal holds %v", err, w.open)
		}
	})
}

func TestATargetThatDiedIsReplacedByAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1", "w2", "w3")
		w.targets["w1"].dead = true
		w.targets["w2"].dies = true
		w.play(t, 30*s, scenarios.Fault{Every: 1 * s, Times: 5, Do: "pause", On: "worker", For: 100 * ms})
		if len(w.events) != 5 {
			t.Errorf("%d faults:\n%s", len(w.events), w)
		}
		for _, event := range w.events {
			if event.Target != "w3" {
				t.Errorf("%+v", event)
			}
		}
	})
}

func TestATargetThatDiesWhilePausedIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.targets["w1"].dies, w.targets["w1"].from = true, 1*s
		w.play(t, 10*s, scenarios.Fault{Do: "pause", On: "worker", For: 2 * s})
		if w.events[0].End != int64(2*s) {
			t.Errorf("%+v", w.events[0])
		}
	})
}

func TestAScheduleOnlyOfTheDeadIsSkipped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.targets["w1"].dead = true
		w.play(t, 3*s, scenarios.Fault{Every: 1 * s, Do: "pause", On: "worker", For: 100 * ms})
		if len(w.events) != 0 {
			t.Errorf("it went\n%s", w)
		}
	})
}
