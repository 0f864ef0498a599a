package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// said is what a process writes to its stderr.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// interruptible starts a run of a minute with turns of 30 s, and returns when its load has begun.
func interruptible(t *testing.T, mark string, args ...string) (run *exec.Cmd, stderr *said, out string) {
	t.Helper()
	bench, err := exec.LookPath("bench")
	if err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(t.TempDir(), "out")
	run = exec.Command(bench, append([]string{"run", "lock-baseline", "--for", "1m", "--out", out}, args...)...)
	run.Env = append(os.Environ(), "FENCEPOST_TEST_MARK="+mark, "XDG_STATE_HOME="+t.TempDir())
	stderr = &said{}
	run.Stderr = stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill() })
	until(t, time.Minute, "the load begins", func() bool {
		text, err := os.ReadFile(filepath.Join(out, "faults.jsonl"))
		return err == nil && bytes.Contains(text, []byte("load-started"))
	})
	return run, stderr, out
}

func until(t *testing.T, d time.Duration, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", d, what)
		}
	}
}

// carriers counts the processes that inherited the mark.
func carriers(t *testing.T, mark string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte("FENCEPOST_TEST_MARK="+mark+"\x00")) {
			n++
		}
	}
	return n
}

// TestInterruptOnce ends a run in order: what there is is decided, and the exit status is 130.
func TestInterruptOnce(t *testing.T) {
	run, stderr, out := interruptible(t, t.Name())
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait()
	if code := run.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit status %d, want %d: %s", code, exitInterrupted, stderr)
	}
	if !strings.Contains(stderr.String(), "a second Ctrl-C ends at once") {
		t.Errorf("the interrupt is not answered: %s", stderr)
	}
	if text, err := os.ReadFile(filepath.Join(out, "verdict.json")); err != nil || !bytes.Contains(text, []byte(`"cut_short": true`)) {
		t.Errorf("the verdict does not say that the run was cut short: %v", err)
	}
	if n := carriers(t, t.Name()); n > 0 {
		t.Errorf("%d processes are left", n)
	}
}

// TestInterruptTwice ends a run at once that would wait for its turns of 30 s; the guard leaves nothing behind.
func TestInterruptTwice(t *testing.T) {
	run, stderr, _ := interruptible(t, t.Name(), "--set", "workload.hold=30s")
	// A line a second: by the second one, turns are under way.
	until(t, 30*time.Second, "the progress is told", func() bool { return strings.Count(stderr.String(), "\n") >= 2 })
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	until(t, 30*time.Second, "it says for whom it waits, and how to end it", func() bool {
		return strings.Contains(stderr.String(), "a second Ctrl-C ends at once") && strings.Contains(stderr.String(), "settling: w")
	})
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	_ = run.Wait()
	// Waiting for the turns would take most of their 30 s.
	if took := time.Since(ended); took > 15*time.Second {
		t.Errorf("it ended %s after the second interrupt", took)
	}
	if status := run.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v, which a shell doesn't report as 130", run.ProcessState)
	}
	// That the guard needs less than 5 s is shown without the race detector, by make kill9.
	until(t, 30*time.Second, "the guard has ended all that was left", func() bool { return carriers(t, t.Name()) == 0 })
}
