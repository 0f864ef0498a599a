//go:build linux

package harness

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/internal/valkeytest"
	"fencepost.dev/models"
	"fencepost.dev/reports"
	"fencepost.dev/topology/endpoint"
)

// markVariable is inherited by every process of a run, so that what is left of one can be found whatever its parent is.
const markVariable = "FENCEPOST_TEST_MARK"

const killScenario = `
name: killed
summary: A worker and the store are stopped for most of the run.
tags: [lock]
subject: lock/valkey
workload: {kind: critical-section, ttl: 300ms, hold: 20ms}
load: {workers: 3, clients: 4, arrival: {rate: 200, for: 6s}}
faults:
  - {at: 300ms, every: 1s, do: pause, on: worker, for: 900ms, when: holding}
  - {at: 500ms, every: 1s, do: pause, on: valkey, for: 600ms}
checks: [linearizable, mutual-exclusion, fencing, lost-update]
expect: {violation: [fencing], may: [lost-update]}
control: {faults: []}
`

// TestRunnerKilled kills the runner with SIGKILL at random moments while a worker and the store's node are stopped. Within
// 5 s nothing of the run is left, and what it had recorded can be checked.
func TestRunnerKilled(t *testing.T) {
	if raceDetector {
		t.Skip("the 5 s are the program's own: the race detector looks at each of the megabytes that the guard reads; make kill9 runs this without it")
	}
	const times = 10
	checked := 0
	for i := range times {
		dir := t.TempDir()
		file := filepath.Join(dir, "killed.yaml")
		if err := os.WriteFile(file, []byte(killScenario), 0o600); err != nil {
			t.Fatal(err)
		}
		mark := fmt.Sprintf("%s-%d-%d", t.Name(), os.Getpid(), i)
		run := exec.Command(os.Args[0])
		run.Env = append(os.Environ(), runnerVariable+"="+file, markVariable+"="+mark, "XDG_STATE_HOME="+dir)
		var said bytes.Buffer
		run.Stderr = &said
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		awaitLoad(t, resultsOf(file), &said)
		delay := time.Duration(rand.Int64N(int64(3 * time.Second)))
		time.Sleep(delay)
		if err := run.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = run.Wait()
		killed := time.Now()
		for len(marked(t, mark)) > 0 {
			if time.Since(killed) > 5*time.Second {
				t.Fatalf("5 s after a kill at %s, these processes of the run are left: %v", delay, marked(t, mark))
			}
			time.Sleep(20 * time.Millisecond)
		}
		if orphans, err := filepath.Glob(filepath.Join(dir, "fencepost", "runs", "*.journal")); err != nil || len(orphans) > 0 {
			t.Errorf("the guard left a journal behind: %v %v", orphans, err)
		}
		m, err := Check(t.Context(), resultsOf(file), models.Limit{})
		switch {
		case err != nil:
			t.Errorf("killed at %s: what was recorded can't be checked: %v", delay, err)
		case !m.Result.CutShort:
			t.Errorf("killed at %s: the run is not marked as cut short", delay)
		case m.Result.Verdict == models.Pass:
			t.Errorf("killed at %s: a run that was cut short passes", delay)
		default:
			checked += m.Result.Checks[0].Decided
		}
		if r, err := readRunRecord(resultsOf(file)); err != nil || !r.Finished || len(r.Files) < 3 {
			t.Errorf("killed at %s: the guard does not vouch for what it finished: %v", delay, err)
		}
		t.Logf("killed %s into the load: clean after %s, %s", delay.Round(time.Millisecond), time.Since(killed).Round(time.Millisecond), m.Result.Verdict)
	}
	if checked == 0 {
		t.Error("none of the runs had recorded anything that could be checked")
	}
}

// TestRunnerKilledOnAForeignServer kills a runner whose store is somebody else's and wants a password. Its fencing counters
// would stay there for ever.
func TestRunnerKilledOnAForeignServer(t *testing.T) {
	server := valkeytest.StartWith(t, redis.Options{Password: "secret"}, "--requirepass", "secret")
	if err := server.Direct.Set(t.Context(), "theirs", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "killed.yaml")
	foreign := strings.Replace(killScenario, "lock/valkey", "lock/valkey-fenced", 1)
	foreign = foreign[:strings.Index(foreign, "faults:")] + `topology: {valkey: {kind: standalone, provider: external}}
checks: [linearizable]
expect: pass
`
	if err := os.WriteFile(file, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(os.Args[0])
	run.Env = append(os.Environ(), runnerVariable+"="+file, foreignVariable+"="+server.Address,
		endpoint.PasswordVariable+"=secret", "XDG_STATE_HOME="+dir)
	var said bytes.Buffer
	run.Stderr = &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	awaitLoad(t, resultsOf(file), &said)
	keys := func() []string { return server.Direct.Keys(t.Context(), "*").Val() }
	for deadline := time.Now().Add(30 * time.Second); len(keys()) < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the run made no keys")
		}
	}
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait()
	journals := func() []string {
		left, _ := filepath.Glob(filepath.Join(dir, "fencepost", "runs", "*.journal"))
		return left
	}
	for deadline := time.Now().Add(30 * time.Second); len(keys()) != 1 || len(journals()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the keys %q and the journals %v are left", keys(), journals())
		}
	}
	if got := server.Direct.Get(t.Context(), "theirs").Val(); got != "kept" {
		t.Errorf("theirs is %q", got)
	}
}

// awaitLoad waits until the run has begun its load.
func awaitLoad(t *testing.T, results string, said *bytes.Buffer) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(results, faultsFile))
		if err == nil && bytes.Contains(text, []byte("load-started")) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run did not begin: %s", said)
		}
	}
}

// marked lists the processes that carry the mark in their environment, zombies left out: those are gone, and only wait for
// their parent to take note.
func marked(t *testing.T, mark string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && bytes.Contains(environment, []byte(markVariable+"="+mark+"\x00")) {
			list = append(list, pid)
		}
	}
	return list
}

// TestInterrupted ends a run by its context: it stops the load, undoes its faults, and decides from what there is.
func TestInterrupted(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := filepath.Join(t.TempDir(), "out")
	// A pause that would outlast the load by far ends only by the interrupt, which comes once it is seen in force.
	s := scenarioOf(t, "lock-pause", "faults[0].for=10m")
	started := time.Now()
	m, err := Run(ctx, Options{Scenario: s, Out: out, Progress: func(tick reports.Tick) {
		if len(tick.Faults) > 0 {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !m.Result.CutShort || m.Result.Verdict == models.Pass {
		t.Errorf("cut short: %v, verdict %s; want true and no pass", m.Result.CutShort, m.Result.Verdict)
	}
	if took := time.Since(started); took > 60*time.Second {
		t.Errorf("it took %s to end", took)
	}
	for _, f := range m.Result.Faults {
		if f.Kind == "fault" && f.End == 0 {
			t.Errorf("a fault was not undone: %+v", f)
		}
	}
}
