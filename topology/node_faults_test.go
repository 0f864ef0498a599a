package topology

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/process"
	"fencepost.dev/scenarios"
)

// inject does one fault to the target.
func inject(t *testing.T, name string, target faults.Target, order faults.Order) (undo func()) {
	t.Helper()
	fault, _ := faults.Find(name)
	back, err := fault.Inject(t.Context(), target, order)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := back(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPausedServerAnswersWhenItRunsOn(t *testing.T) {
	topology := up(t, standaloneOrder(t, nil))
	c := client(t, topology, 300*time.Millisecond)
	set(t, c, "k")
	resume := inject(t, "pause", resolve(t, topology, "primary"), faults.Order{})
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a paused server answered")
	}
	resume()
	if patient := client(t, topology, 10*time.Second); get(t, patient, "k") != "kept" {
		t.Error("it forgot")
	}
}

func TestWhatAKilledServerKeeps(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name, fault string
		keeps       bool
		options     any
		want        string
	}{
		{"nothing, without persistence", "kill", false, nil, ""},
		{"everything acknowledged, with persistence", "kill", true, nil, "kept"},
		{"what its configuration keeps, when restarted", "restart", true, nil, "kept"},
		{"everything, when restarted with persistence", "restart", true, &faults.RestartOptions{Persistence: &yes}, "kept"},
		{"nothing, when restarted without, though it persists", "restart", true, &faults.RestartOptions{Persistence: &no}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			topology := up(t, standaloneOrder(t, map[string]any{"persistence": c.keeps}))
			address := topology.Endpoint().Addresses[0]
			target := resolve(t, topology, "0")
			patient := client(t, topology, 10*time.Second)
			set(t, patient, "k")
			start := inject(t, c.fault, target, faults.Order{For: time.Second, Options: c.options})
			if err := patient.Ping(t.Context()).Err(); err == nil {
				t.Error("a killed server answered")
			}
			if target.(faults.Mortal).Alive() || target.(faults.Local).PID() != 0 {
				t.Error("it counts as alive")
			}
			start()
			if got := topology.Endpoint().Addresses[0]; got != address {
				t.Errorf("it is at %s now, not %s", got, address)
			}
			if got := get(t, client(t, topology, 10*time.Second), "k"); got != c.want {
				t.Errorf("it has %q, not %q", got, c.want)
			}
		})
	}
}

func TestADeadServerCanNotBePausedAndARunningOneNotStarted(t *testing.T) {
	topology := up(t, standaloneOrder(t, nil))
	node := resolve(t, topology, "0").(*server)
	if err := node.Start(t.Context()); err == nil {
		t.Error("it was started twice")
	}
	if err := node.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := node.Pause(t.Context()); !errors.Is(err, errNotRunning) {
		t.Errorf("pausing it: %v", err)
	}
}

// TestAScheduleOnARealServer plays pause and restart on a running server and compares what a client saw with the events.
func TestAScheduleOnARealServer(t *testing.T) {
	order := standaloneOrder(t, nil)
	topology := up(t, order)
	epoch := time.Now()
	events := map[int]history.Event{}
	err := faults.Play(t.Context(), []scenarios.Fault{
		{At: 50 * time.Millisecond, Every: 200 * time.Millisecond, Times: 2, Do: "pause", On: "", For: 100 * time.Millisecond},
		{At: 100 * time.Millisecond, Do: "restart", On: "primary", For: 50 * time.Millisecond},
	}, faults.Env{
		Directory: topology,
		Journal:   order.Journal,
		Now:       func() int64 { return int64(time.Since(epoch)) },
		Emit: func(event history.Event) (history.Event, error) {
			if event.ID == 0 {
				event.ID = len(events) + 1
			}
			events[event.ID] = event
			return event, nil
		},
		LoadEnd: int64(time.Minute),
		Log:     testLog(t),
	})
	if err != nil || len(events) != 3 {
		t.Fatalf("%v, %+v", err, events)
	}
	for _, event := range events {
		if !event.Confirmed || event.End <= event.At || event.Node != 0 || event.Target != "valkey/0" {
			t.Errorf("%+v", event)
		}
	}
	set(t, client(t, topology, 10*time.Second), "k")
}

// TestHealResumesWhatIsStillStopped leaves a fault in a journal of its own, as an injector that died does.
func TestHealResumesWhatIsStillStopped(t *testing.T) {
	topology := up(t, standaloneOrder(t, nil))
	path := filepath.Join(t.TempDir(), "faults.journal")
	journal, err := process.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	target := resolve(t, topology, "0")
	if _, err := journal.Begin("fault", faults.RecordOf("pause", target)); err != nil {
		t.Fatal(err)
	}
	inject(t, "pause", target, faults.Order{})
	for range 2 {
		if err := process.Replay(path, faults.Undo()); err != nil {
			t.Fatal(err)
		}
		set(t, client(t, topology, 10*time.Second), "k")
	}
}
