package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fencepost.dev/models"
	"fencepost.dev/reports"
)

// TestWorkerStoppedByAStranger stops a worker from outside of the run and lets it lie: the run says for whom it waits, ends
// without it, and passes nothing.
func TestWorkerStoppedByAStranger(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	out := filepath.Join(t.TempDir(), "out")
	var stopped int
	var settling time.Time
	var phases, notices []string
	m, err := Run(t.Context(), Options{
		Scenario: scenarioOf(t, "lock-baseline", "load.arrival.for=2s", "coverage={}", "thresholds={}"), Out: out,
		Notice: func(line string) { notices = append(notices, line) },
		Progress: func(tick reports.Tick) {
			switch {
			case stopped == 0 && tick.Count > 0:
				stopped = startedWorker(t, out, "w1.1")
				if err := syscall.Kill(stopped, syscall.SIGSTOP); err != nil {
					t.Error(err)
				}
			case tick.Doing != "" && settling.IsZero():
				settling = time.Now()
			}
			phases = append(phases, tick.Doing)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if m.Result.Verdict == models.Pass || !strings.Contains(strings.Join(m.Result.Reasons, " "), "worker w1 (process") {
		t.Errorf("verdict %s: %v", m.Result.Verdict, m.Result.Reasons)
	}
	if all := strings.Join(phases, "\n"); !strings.Contains(all, ": w1") {
		t.Errorf("the phases don't name w1: %q", all)
	}
	if all := strings.Join(notices, "\n"); !strings.Contains(all, "kill -CONT") {
		t.Errorf("nobody was told what to do: %q", all)
	}
	// It was killed while the run waited for its turns: nobody's patience was used up. How long the rest takes is the machine's.
	if all := strings.Join(m.Result.Reasons, "\n"); strings.Contains(all, "did not end within") {
		t.Errorf("the run waited for the stopped worker to the end: %s", all)
	}
	t.Logf("after its load the run took %s", time.Since(settling))
}

// startedWorker gives the process of a worker's incarnation, which its log is open in.
func startedWorker(t *testing.T, out, name string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/2")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == filepath.Join(out, logsDir, name+".log") {
			pid, err := strconv.Atoi(strings.Split(link, "/")[2])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("no process writes the log of %s", name)
	return 0
}
