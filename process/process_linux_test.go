package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen, on a machine that may stall.
const patience = 20 * time.Second

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// begin starts one of the test's own programs, and ends it with the test.
func begin(t *testing.T, program string, j *Journal, more ...func(*Command)) (p *Process, log string) {
	t.Helper()
	cmd := Command{
		Name: program, Path: os.Args[0], Env: []string{programVariable + "=" + program}, Log: filepath.Join(t.TempDir(), "log"),
	}
	for _, f := range more {
		f(&cmd)
	}
	p, err := Start(cmd, j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p, cmd.Log
}

func readLog(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func awaitLog(t *testing.T, path, want string) string {
	t.Helper()
	eventually(t, "the program says "+want, func() bool { return strings.Contains(readLog(t, path), want) })
	return readLog(t, path)
}

// spawned is the pid of the child that a program has said it started.
func spawned(t *testing.T, path string) int {
	t.Helper()
	log := awaitLog(t, path, "child ")
	_, rest, _ := strings.Cut(log, "child ")
	var pid int
	eventually(t, "the child's pid is complete", func() bool {
		_, rest, _ = strings.Cut(readLog(t, path), "child ")
		digits, _, ended := strings.Cut(rest, "\n")
		pid, _ = strconv.Atoi(digits)
		return ended
	})
	return pid
}

func gone(pid int) bool {
	r, err := lookup(pid)
	return errors.Is(err, fs.ErrNotExist) || err == nil && r.ended()
}

func awaitDone(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatalf("%s has not ended within %v", p.Name(), patience)
	}
}

func TestStartGivesAGroupOfItsOwn(t *testing.T) {
	p, _ := begin(t, "sleep", nil)
	group, err := syscall.Getpgid(p.PID())
	if err != nil || group != p.PID() || group == syscall.Getpgrp() {
		t.Errorf("group of pid %d is %d (%v)", p.PID(), group, err)
	}
	if p.ExitState() != nil {
		t.Error("it has an exit state while it runs")
	}
}

func TestStartReportsWhatCannotRun(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"no-such-program-anywhere", "/no/such/file", plain, t.TempDir()} {
		if p, err := Start(Command{Name: "w1", Path: path}, nil); err == nil {
			t.Errorf("%s started as pid %d", path, p.PID())
		} else if !strings.Contains(err.Error(), "start w1") {
			t.Errorf("the error does not say what was started: %v", err)
		}
	}
}

func TestExitStateAndNoZombie(t *testing.T) {
	p, _ := begin(t, "fail", nil)
	awaitDone(t, p)
	if code := p.ExitState().ExitCode(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	if _, err := lookup(p.PID()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("pid %d is still in the process table: %v", p.PID(), err)
	}
	if err := p.Pause(t.Context()); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Pause of what has ended: %v", err)
	}
	if err := p.Resume(t.Context()); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Resume of what has ended: %v", err)
	}
	if err := errors.Join(p.Kill(t.Context()), p.Stop(t.Context(), time.Hour)); err != nil {
		t.Errorf("ending what has ended: %v", err)
	}
}

func TestStdinAndLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "deep", "log")
	for range 2 {
		p, _ := begin(t, "cat", nil, func(c *Command) { c.Stdin, c.Log = strings.NewReader("hello\n"), log })
		awaitDone(t, p)
	}
	if got := readLog(t, log); got != "hello\nhello\n" {
		t.Errorf("log is %q", got)
	}
	p, log := begin(t, "cat", nil) // no stdin is an empty one
	awaitDone(t, p)
	if got := readLog(t, log); got != "" {
		t.Errorf("log is %q", got)
	}
}

func TestSecretsAreNotHandedOn(t *testing.T) {
	for _, name := range []string{"FENCEPOST_TOKEN", "REDISCLI_AUTH", "PGPASSWORD", "My_Password_2", "FENCEPOST_JOURNAL"} {
		t.Setenv(name, "secret")
	}
	t.Setenv("PROCESS_TEST_PLAIN", "plain")
	p, log := begin(t, "env", nil, func(c *Command) { c.Env = append(c.Env, "FENCEPOST_ROLE=", "ADDED_PASSWORD=given") })
	awaitDone(t, p)
	got := readLog(t, log)
	if strings.Contains(got, "secret") {
		t.Errorf("a secret was handed on:\n%s", got)
	}
	for _, want := range []string{"PROCESS_TEST_PLAIN=plain", "ADDED_PASSWORD=given"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// A pause is whole when Pause returns: no thread of the group runs, and nothing happens until Resume.
func TestPauseStopsEveryThreadOfTheGroup(t *testing.T) {
	p, log := begin(t, "parent", nil)
	child := spawned(t, log)
	awaitLog(t, log, "...")
	for range 20 {
		if err := p.Pause(soon(t)); err != nil {
			t.Fatal(err)
		}
		before := readLog(t, log)
		for _, pid := range []int{p.PID(), child} {
			if is, gone := threads(pid); gone || is != allStopped {
				t.Fatalf("pid %d after Pause: %v, gone %v", pid, is, gone)
			}
		}
		time.Sleep(10 * time.Millisecond)
		if after := readLog(t, log); after != before {
			t.Fatalf("it said %q while paused", after[len(before):])
		}
		if err := p.Resume(soon(t)); err != nil {
			t.Fatal(err)
		}
		for _, pid := range []int{p.PID(), child} {
			if is, gone := threads(pid); gone || is != noneStopped {
				t.Fatalf("pid %d after Resume: %v, gone %v", pid, is, gone)
			}
		}
		eventually(t, "it goes on", func() bool { return len(readLog(t, log)) > len(before) })
	}
}

func TestPauseThatIsCutShortLeavesItRunning(t *testing.T) {
	p, log := begin(t, "busy", nil)
	awaitLog(t, log, ".")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Pause(ctx); err == nil { // it may have stopped before the first look
		if err := p.Resume(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	before := len(readLog(t, log))
	eventually(t, "it goes on", func() bool { return len(readLog(t, log)) > before })
}

func TestKillEndsWhatIsPausedAndItsGroup(t *testing.T) {
	p, log := begin(t, "parent", nil)
	child := spawned(t, log)
	if err := p.Pause(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(soon(t)); err != nil {
		t.Fatal(err)
	}
	if !gone(child) {
		t.Errorf("its child %d is left", child)
	}
	if _, err := lookup(p.PID()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	if status := p.ExitState().Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", p.ExitState())
	}
}

func TestWhatALeaderLeavesBehindEndsWithIt(t *testing.T) {
	p, log := begin(t, "abandoner", nil)
	awaitDone(t, p)
	if child := spawned(t, log); !gone(child) {
		t.Errorf("child %d outlived its group's leader", child)
	}
}

func TestStop(t *testing.T) {
	t.Run("asks first, also what is paused", func(t *testing.T) {
		p, log := begin(t, "polite", nil)
		awaitLog(t, log, "ready")
		if err := p.Pause(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := p.Stop(soon(t), patience); err != nil {
			t.Fatal(err)
		}
		if code := p.ExitState().ExitCode(); code != 3 || !strings.Contains(readLog(t, log), "bye") {
			t.Errorf("it was not given the time: exit code %d", code)
		}
	})
	t.Run("kills after the grace", func(t *testing.T) {
		p, log := begin(t, "stubborn", nil)
		awaitLog(t, log, "ready")
		if err := p.Stop(soon(t), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if status := p.ExitState().Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", p.ExitState())
		}
	})
	t.Run("kills at once when ctx ends", func(t *testing.T) {
		p, log := begin(t, "stubborn", nil)
		awaitLog(t, log, "ready")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Stop(ctx, time.Hour); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		awaitDone(t, p)
	})
}

// The parent-death signal follows the thread that forked. A child must survive the end of the thread that asked for it.
func TestChildSurvivesTheThreadThatAskedForIt(t *testing.T) {
	const n = 2 // the process's first thread never ends: at most one of them is on that
	var started, ended sync.WaitGroup
	started.Add(n)
	children := make([]*Process, n)
	for i := range n {
		ended.Go(func() {
			runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
			var err error
			children[i], err = Start(Command{Name: "child", Path: os.Args[0], Env: []string{programVariable + "=sleep"}}, nil)
			if err != nil {
				t.Error(err)
			}
			started.Done()
			started.Wait()
		})
	}
	ended.Wait()
	time.Sleep(200 * time.Millisecond)
	for _, p := range children {
		select {
		case <-p.Done():
			t.Errorf("it ended with %v", p.ExitState())
		default:
		}
		if err := p.Kill(soon(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestPauseIsNotOverWhileOneOfTheGroupRuns(t *testing.T) {
	p, log := begin(t, "parent", nil)
	child := spawned(t, log)
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil { // the leader alone
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.await(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the pause was seen to hold (%v) while pid %d runs", err, child)
	}
}

func TestParseStat(t *testing.T) {
	// A program may call itself anything.
	for name, comm := range map[string]string{"plain": "valkey", "hostile": "a) Z 1 1 (b"} {
		t.Run(name, func(t *testing.T) {
			text := "42 (" + comm + ") T 1 40 39 0 -1 4 5 6 7 8 9 10 11 12 20 0 3 0 88123 1 2 3\n"
			got, err := parseStat(42, []byte(text))
			want := row{pid: 42, group: 40, session: 39, start: 88123, state: 'T'}
			if err != nil || got != want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := parseStat(42, []byte("42 (torn")); err == nil {
		t.Error("half a line was read")
	}
}
