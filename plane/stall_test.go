package plane

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// playStalls watches itself, and tells what it sees.
func playStalls() {
	clock := NewClock()
	var mu sync.Mutex
	stop := must(StartStalls(clock, 25*time.Millisecond, func(s Stall) {
		line, _ := json.Marshal(s)
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(string(line))
	}))
	time.Sleep(50 * time.Millisecond)
	mu.Lock()
	fmt.Println(`"ready"`)
	mu.Unlock()
	waitForStdin()
	stop()
	os.Exit(0)
}

// A process that is really stopped sees it, as long as it was or longer.
func TestStoppedProcessSeesIt(t *testing.T) {
	const pause = 400 * time.Millisecond
	c := play(t, "stalls", nil)
	for c.line(t) != `"ready"` {
	}
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(pause)
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for {
		var s Stall
		c.decode(t, &s)
		// It may have been late before or after too: this machine is shared.
		if s.Kind == StallProcess && s.Length > pause-2*stallSample {
			return
		}
	}
}

// playCrowd runs many goroutines that compute on one processor beside the watch.
func playCrowd() {
	runtime.GOMAXPROCS(1)
	clock := NewClock()
	var longest atomic.Int64
	stop := must(StartStalls(clock, 25*time.Millisecond, func(s Stall) {
		if s.Kind == StallWake {
			longest.Store(max(longest.Load(), int64(s.Length)))
		}
	}))
	var over atomic.Bool
	var crowd sync.WaitGroup
	for range 20 {
		crowd.Go(func() {
			for !over.Load() {
			}
		})
	}
	for began := time.Now(); longest.Load() == 0 && time.Since(began) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
	}
	over.Store(true)
	crowd.Wait()
	stop()
	fmt.Println(longest.Load())
	os.Exit(0)
}

// In a crowd of goroutines those that wait for bytes run late, although the process runs all the time.
func TestCrowdedProcessSeesIt(t *testing.T) {
	var longest time.Duration
	play(t, "crowd", nil).decode(t, &longest)
	if longest < 25*time.Millisecond {
		t.Error("no goroutine was late")
	}
	t.Logf("late by %v", longest)
}

func TestClockMovement(t *testing.T) {
	for _, c := range []struct {
		name   string
		moved  func(since time.Duration) time.Duration // of the real-time clock, after the beginning
		expect func(Stall) bool                        // nil: no movement is to be seen
	}{
		{"still", func(time.Duration) time.Duration { return 0 }, nil},
		{"slewed within the drift that is allowed for", func(d time.Duration) time.Duration { return d / 4000 }, nil},
		{"stepped back", func(d time.Duration) time.Duration {
			if d > 100*time.Millisecond {
				return -time.Hour
			}
			return 0
		}, func(s Stall) bool {
			return s.Moved > -time.Hour-time.Millisecond && s.Moved < -time.Hour+time.Millisecond
		}},
		{"slewed by a hundredth", func(d time.Duration) time.Duration { return d / 100 }, func(s Stall) bool {
			return s.Moved > clockMoved && s.Length >= s.Moved*90 && s.Length <= s.Moved*110
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			var mu sync.Mutex
			var seen []Stall
			stop, err := startStalls(NewClock(), time.Minute, func(s Stall) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, s)
			}, func() int64 {
				since := time.Since(began)
				return began.UnixNano() + int64(since) + int64(c.moved(since))
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(400 * time.Millisecond)
			stop()
			switch {
			case c.expect == nil && len(seen) > 0:
				t.Errorf("seen: %v", seen)
			case c.expect != nil && len(seen) == 0:
				t.Error("nothing was seen")
			case c.expect != nil && !c.expect(seen[0]):
				t.Errorf("seen: %+v", seen)
			}
			for _, s := range seen {
				if s.Kind != StallClock {
					t.Errorf("seen: %v", s)
				}
			}
		})
	}
}
