package harness

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fencepost.dev/models"
)

// TestNothingHappenedIsNoPass runs a load that ends before its first turn, in a scenario that asks for no coverage.
func TestNothingHappenedIsNoPass(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	m, err := Run(t.Context(), Options{
		Scenario: scenarioOf(t, "lock-baseline", "load={workers: 1, clients: 1, closed: true, for: 1ns}", "coverage={}", "thresholds={}"),
		Out:      filepath.Join(t.TempDir(), "out"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if m.Result.Verdict != models.Inconclusive || !strings.Contains(strings.Join(m.Result.Reasons, " "), "nothing happened") {
		t.Errorf("verdict %s: %v", m.Result.Verdict, m.Result.Reasons)
	}
}

// TestStoreThatDiesIsTold kills the server behind the run's back: no pass, and the reason names the node.
func TestStoreThatDiesIsTold(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	out := filepath.Join(t.TempDir(), "out")
	go killServer(out)
	m, err := Run(t.Context(), Options{Scenario: scenarioOf(t, "lock-baseline", "load.arrival.for=3s", "coverage={}", "thresholds={}"), Out: out})
	if err != nil {
		t.Fatal(err)
	}
	if m.Result.Verdict == models.Pass || !strings.Contains(strings.Join(m.Result.Reasons, " "), "valkey/0 ended") {
		t.Errorf("verdict %s: %v", m.Result.Verdict, m.Result.Reasons)
	}
}

// killServer ends the run's own server when load has begun.
func killServer(out string) {
	started := regexp.MustCompile(`"server started".*"pid":(\d+)`)
	for range 600 {
		time.Sleep(50 * time.Millisecond)
		events, _ := os.ReadFile(filepath.Join(out, faultsFile))
		log, _ := os.ReadFile(filepath.Join(out, logsDir, coordinatorLog))
		found := started.FindSubmatch(log)
		if found == nil || !strings.Contains(string(events), "load-started") {
			continue
		}
		if pid, err := strconv.Atoi(string(found[1])); err == nil {
			time.Sleep(500 * time.Millisecond)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return
	}
}
