package harness

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
	"fencepost.dev/reports"
)

// watched runs a scenario that ends when a violation is certain, and looks whether it was watched to its end.
func watched(t *testing.T, name string, assignments ...string) *reports.Material {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out := filepath.Join(t.TempDir(), "out")
	m, err := Run(ctx, Options{Scenario: scenarioOf(t, name, assignments...), Out: out, StopOnViolation: true})
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(out, logsDir, coordinatorLog))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "watched") || strings.Contains(string(log), "dead worker") {
		t.Errorf("it was not watched to its end: %s", log)
	}
	return m
}

// TestStopOnViolation: a lock that is broken within seconds ends a run of half a minute, which is decided as any other.
func TestStopOnViolation(t *testing.T) {
	m := watched(t, "lock-delete-without-owner", "load.arrival.for=30s")
	r := &m.Result
	if r.Stopped == nil {
		t.Fatalf("the run was not stopped: %s %v", r.Verdict, r.Reasons)
	}
	if r.Verdict != models.Violation || r.CutShort {
		t.Errorf("verdict %s, cut short %v: %v", r.Verdict, r.CutShort, r.Reasons)
	}
	// Who is stopped (600 ms) tells of what it has open when it goes on.
	due := r.Stopped.Violation
	for i := range m.Input.Operations {
		if op := &m.Input.Operations[i]; op.Call <= r.Stopped.Violation {
			due = max(due, op.Return)
		}
	}
	for _, f := range r.Faults {
		if f.At <= due {
			due = max(due, f.End)
		}
	}
	const machine = 2 * time.Second // what a crowded machine may add to a second
	if late := time.Duration(r.Stopped.At - due); late > time.Second+machine {
		t.Errorf("the load was stopped %s after all was answered", late)
	}
	for i := range m.Input.Operations {
		op := &m.Input.Operations[i]
		if op.Kind == history.Acquire && op.Call > r.Stopped.At+int64(machine) {
			t.Errorf("a lock was asked for at %s; the load was stopped at %s", history.Since(op.Call), history.Since(r.Stopped.At))
			break
		}
	}
}

// TestWatchedRunGoesOn: nothing stops a run of a lock that is right, also when workers are killed while they hold it; and it
// is watched to its end. TestWatchSeesWhatDeadWorkersLeft shows that what comes after a kill is decided.
func TestWatchedRunGoesOn(t *testing.T) {
	for _, workers := range []string{"1", "2"} {
		t.Run(workers+" workers", func(t *testing.T) {
			m := watched(t, "lock-baseline", "load.workers="+workers, "load.arrival.for=3s", "coverage={granted: 20}",
				"faults=[{at: 500ms, every: 1s, do: restart, on: worker, when: holding}]")
			r := &m.Result
			if r.Stopped != nil || r.Verdict != models.Pass || !r.AsExpected {
				t.Errorf("verdict %s, as expected %v, stopped %+v: %v", r.Verdict, r.AsExpected, r.Stopped, r.Reasons)
			}
			if !slices.ContainsFunc(r.Faults, func(e history.Event) bool { return e.Kind == history.EventWorkerDied }) {
				t.Error("no worker was killed")
			}
		})
	}
}

// TestWatchSeesWhatDeadWorkersLeft: a lock that a killed worker took for ever is a violation only because what that worker
// did last is known, and until when its request could take effect. That only worker of a run is followed by the next.
func TestWatchSeesWhatDeadWorkersLeft(t *testing.T) {
	for _, workers := range []string{"1", "3"} {
		t.Run(workers+" workers", func(t *testing.T) {
			m := watched(t, "lock-setnx-then-expire", "load.workers="+workers, "load.arrival.for=30s")
			r := &m.Result
			if r.Stopped == nil || r.Verdict != models.Violation {
				t.Errorf("verdict %s, stopped %+v: %v", r.Verdict, r.Stopped, r.Reasons)
			}
		})
	}
}

// TestWatchNeedsWhatItDecides: what can't be decided while it runs is refused before anything runs.
func TestWatchNeedsWhatItDecides(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	_, err := Run(t.Context(), Options{Scenario: scenarioOf(t, "lock-pause", "checks=[mutual-exclusion, fencing, lost-update]"), Out: out, StopOnViolation: true})
	if err == nil || !strings.Contains(err.Error(), "--stop-on-violation: linearizable") {
		t.Errorf("a run without the check linearizable: %v", err)
	}
}
