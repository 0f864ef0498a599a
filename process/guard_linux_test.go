package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func touch(data json.RawMessage) error {
	var path string
	if err := json.Unmarshal(data, &path); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

func hang(json.RawMessage) error { select {} }

func TestGuardWithNothingToDo(t *testing.T) {
	for _, journaled := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "run.journal")
		g, err := StartGuard(path)
		if err != nil {
			t.Fatal(err)
		}
		if journaled {
			if _, err := OpenJournal(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if exists(path) {
			t.Error("the journal is left")
		}
	}
}

func TestGuardUndoesWhatIsLeftAtClose(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.journal")
	g, err := StartGuard(path)
	if err != nil {
		t.Fatal(err)
	}
	j, err := OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Begin("touch", filepath.Join(dir, "undone")); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Begin("unheard-of", nil); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err == nil || !strings.Contains(err.Error(), "could not undo") {
		t.Errorf("Close says %v of what the guard could not undo", err)
	}
	if !exists(filepath.Join(dir, "undone")) || !exists(path) {
		t.Error("the one was not undone, or the journal of the other is gone")
	}
}

func TestGuardIsBeyondTheTerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.journal")
	g, err := StartGuard(path)
	if err != nil {
		t.Fatal(err)
	}
	self, err := lookup(g.PID())
	if err != nil || self.session != g.PID() || self.group != g.PID() {
		t.Errorf("the guard's session is %d, its group %d, its pid %d (%v)", self.session, self.group, g.PID(), err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(g.PID(), sig); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-g.exited:
		t.Error("a signal ended the guard")
	case <-time.After(200 * time.Millisecond):
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestGuardOfAProgramThatServesNone(t *testing.T) {
	t.Setenv(roleVariable, guardRole)
	if _, err := StartGuard(filepath.Join(t.TempDir(), "run.journal")); err == nil || !strings.Contains(err.Error(), "ServeGuard") {
		t.Errorf("a guard that starts a guard: %v", err)
	}
}

// life is one runner in a process of its own.
type life struct {
	t     *testing.T
	dir   string
	nonce string
	cmd   *exec.Cmd
	said  chan string
	pids  []int // of what it said that it started
	guard int
	begun bool
}

func live(t *testing.T, plan string) *life {
	t.Helper()
	l := &life{t: t, dir: t.TempDir(), nonce: fmt.Sprintf("%s=%d", nonceVariable, rand.Uint64()), said: make(chan string, 100)}
	l.cmd = exec.Command(os.Args[0])
	l.cmd.Env = append(os.Environ(), programVariable+"=runner", dirVariable+"="+l.dir, planVariable+"="+plan, l.nonce)
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell would
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.cmd.Stderr = os.Stderr
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			l.said <- lines.Text()
		}
	}()
	t.Cleanup(func() { // whatever went wrong, nothing of it outlives the test
		left, _ := marked(l.nonce)
		for _, r := range left {
			_ = syscall.Kill(r.pid, syscall.SIGKILL)
		}
	})
	return l
}

// until reads what the runner says up to a word; "" is all.
func (l *life) until(word string) {
	l.t.Helper()
	for s := range l.said {
		var pid int
		switch {
		case strings.HasPrefix(s, "error"):
			l.t.Fatal(s)
		case s == "begun":
			l.begun = true
		}
		if n, _ := fmt.Sscanf(s, "started %d", &pid); n == 1 {
			l.pids = append(l.pids, pid)
		}
		if n, _ := fmt.Sscanf(s, "guard %d", &pid); n == 1 {
			l.guard = pid
		}
		if s == word {
			return
		}
	}
	if word != "" {
		l.t.Fatalf("the runner ended before it said %s", word)
	}
}

// kill ends the runner as nothing can be prepared for, and reads the rest of what it had said.
func (l *life) kill() time.Time {
	l.t.Helper()
	if err := l.cmd.Process.Kill(); err != nil {
		l.t.Fatal(err)
	}
	at := time.Now()
	l.until("")
	var exit *exec.ExitError
	if err := l.cmd.Wait(); !errors.As(err, &exit) {
		l.t.Fatalf("the runner ended with %v", err)
	}
	return at
}

func (l *life) left() []row {
	l.t.Helper()
	left, err := marked(l.nonce)
	if err != nil {
		l.t.Fatal(err)
	}
	return left
}

func (l *life) within5s(killed time.Time) {
	l.t.Helper()
	for left := l.left(); len(left) > 0; left = l.left() {
		if since := time.Since(killed); since > 5*time.Second {
			l.t.Fatalf("%d processes are left after %v, of which the first is %+v", len(left), since, left[0])
		}
		time.Sleep(5 * time.Millisecond)
	}
	l.t.Logf("said %d started, begun %v; gone %v after its death", len(l.pids), l.begun, time.Since(killed).Round(time.Millisecond))
	for _, pid := range l.pids {
		if !gone(pid) {
			l.t.Errorf("pid %d is left", pid)
		}
	}
}

// The promise: kill -9 of a runner at any moment leaves nothing behind. Every other runner does without the kernel's
// parent-death signal, so that the guard is proven by itself.
func TestKilledRunnerLeavesNothing(t *testing.T) {
	whole := live(t, "")
	start := time.Now()
	whole.until("complete")
	took := time.Since(start)
	whole.within5s(whole.kill())

	for i := range 10 {
		plan := []string{"", "no-death-signal"}[i%2]
		moment := time.Duration(rand.Int64N(int64(took) * 5 / 4))
		t.Run(fmt.Sprintf("%v of %v %s", moment.Round(time.Millisecond), took.Round(time.Millisecond), plan), func(t *testing.T) {
			l := live(t, plan)
			time.Sleep(moment)
			l.within5s(l.kill())
			if path := filepath.Join(l.dir, "run.journal"); exists(path) {
				t.Errorf("the journal is left: %s", readLog(t, path))
			}
			if l.begun && !exists(filepath.Join(l.dir, "undone")) {
				t.Error("what was begun is not undone")
			}
		})
	}
}

func TestGuardEndsInTimeThoughUndoHangs(t *testing.T) {
	l := live(t, "hang no-death-signal")
	l.until("complete")
	l.within5s(l.kill())
	if !exists(filepath.Join(l.dir, "run.journal")) {
		t.Error("the journal of what could not be undone is gone")
	}
}

func TestOrphansFindsWhatADeadGuardLeft(t *testing.T) {
	l := live(t, "no-death-signal")
	l.until("complete")
	if err := syscall.Kill(l.guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the guard has ended", func() bool { return gone(l.guard) })
	l.kill()
	// Not the paused one: the kernel sends SIGHUP to a stopped group that has lost its parent.
	eventually(t, "three children and two grandchildren run on", func() bool { return len(l.left()) >= 5 })
	found, err := Orphans(l.dir)
	if err != nil || len(found) != 1 {
		t.Fatalf("orphans are %v, %v", found, err)
	}
	if err := Replay(found[0], testUndo); err != nil {
		t.Fatal(err)
	}
	l.within5s(time.Now())
	if exists(found[0]) || !exists(filepath.Join(l.dir, "undone")) {
		t.Error("the journal is left, or what was begun is not undone")
	}
}
