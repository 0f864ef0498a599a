package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
	"fencepost.dev/reports"
)

// joinVariable makes the test binary an agent that joins the coordinator there.
const joinVariable = "FENCEPOST_TEST_JOIN"

// TestTwoAgents runs the workers of lock-pause on two agents that were started by hand, each a process of its own, which
// stream what they record.
func TestTwoAgents(t *testing.T) {
	m, out := runOnTwoAgents(t, "lock-pause")
	if !m.Result.AsExpected || m.Result.Verdict != models.Violation {
		t.Errorf("verdict %s, as expected %v: %v", m.Result.Verdict, m.Result.AsExpected, m.Result.Reasons)
	}
	for _, s := range m.Input.Names.Workers {
		if s.ClockError == 0 {
			t.Errorf("worker %s came without a bound on its clock's error", s)
		}
	}
	again, err := Check(t.Context(), out, models.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Result.Verdict != m.Result.Verdict || again.Result.AsExpected != m.Result.AsExpected {
		t.Errorf("the stored history is judged %s, the run was %s", again.Result.Verdict, m.Result.Verdict)
	}
}

// runOnTwoAgents runs a scenario whose workers are on two agents that join it, and gives its results directory too.
func runOnTwoAgents(t *testing.T, scenario string) (m *reports.Material, out string) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out = filepath.Join(t.TempDir(), "out")
	var agents sync.WaitGroup
	defer agents.Wait()
	m, err := Run(ctx, Options{
		Scenario: scenarioOf(t, scenario), Out: out, Listen: "127.0.0.1:0", Remote: 2,
		Notice: func(line string) { joinTwo(ctx, t, &agents, strings.Fields(line)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, out
}

// joinTwo starts the agents that a notice of these words asks for.
func joinTwo(ctx context.Context, t *testing.T, agents *sync.WaitGroup, words []string) {
	for i := range 2 {
		agent := exec.CommandContext(ctx, os.Args[0])
		agent.Env = append(os.Environ(), joinVariable+"="+words[len(words)-1], tokenOf(t, words), "XDG_STATE_HOME="+t.TempDir())
		said := &strings.Builder{}
		agent.Stderr = said
		if err := agent.Start(); err != nil {
			t.Error(err)
			return
		}
		agents.Go(func() {
			if err := agent.Wait(); err != nil {
				t.Errorf("agent %d: %v: %s", i, err, said)
			}
			if t.Failed() {
				t.Logf("agent %d said: %s", i, said)
			}
		})
	}
}

// tokenOf finds the token in what the run says of how to join.
func tokenOf(t *testing.T, words []string) string {
	t.Helper()
	for _, word := range words {
		if strings.HasPrefix(word, "FENCEPOST_TOKEN=") {
			return word
		}
	}
	t.Fatalf("no token in %q", words)
	return ""
}

// TestKilledRemoteWorker kills a worker on an agent that was started by hand: what it had recorded and not sent comes from
// its agent, so the record is whole and decided, and so does its log.
func TestKilledRemoteWorker(t *testing.T) {
	m, out := runOnTwoAgents(t, "lock-setnx-then-expire")
	if !m.Result.AsExpected {
		t.Errorf("verdict %s, as expected %v: %v", m.Result.Verdict, m.Result.AsExpected, m.Result.Reasons)
	}
	for _, c := range m.Result.Checks {
		if c.Verdict == models.Inconclusive {
			t.Errorf("inconclusive: %+v", c)
		}
	}
	recorded, err := history.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	killed := 0
	for _, s := range recorded.Sources() {
		if !s.Streamed && s.Base != history.ResourceBase || !s.Closed {
			t.Errorf("the record of %s: %+v", s.Base, s)
		}
		if s.Base == history.ResourceBase {
			continue
		}
		if log, err := os.ReadFile(filepath.Join(out, logsDir, s.Base+".log")); err != nil {
			t.Errorf("the log of %s: %v: %s", s.Base, err, log)
		}
		if !strings.HasSuffix(s.Base, ".1") {
			killed++ // the one before it
		}
	}
	if killed == 0 {
		t.Error("no worker was killed")
	}
}
