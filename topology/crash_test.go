package topology

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/process"
)

// runnerDir, in the environment of this test's program, makes it a runner that works in that directory until it is killed.
const runnerDir = "FENCEPOST_TEST_RUNNER"

// runner brings two servers up under a guard, pauses one, says which processes there are, and waits.
func runner(dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	path := filepath.Join(dir, "run.journal")
	_, err := process.StartGuard(path)
	fail(err)
	journal, err := process.OpenJournal(path)
	fail(err)
	var pids []int
	for range 2 {
		topology, err := Up(context.Background(), Order{
			Store: "valkey", Kind: "standalone", Dir: filepath.Join(dir, "data"), Logs: dir, Journal: journal,
			Options: map[string]any{"persistence": true},
		})
		fail(err)
		targets, err := topology.Resolve(context.Background(), "")
		fail(err)
		pids = append(pids, targets[0].(faults.Local).PID())
		if len(pids) == 1 {
			_, err = journal.Begin("fault", faults.RecordOf("pause", targets[0]))
			fail(err)
			fail(targets[0].(faults.Pausable).Pause(context.Background()))
		}
	}
	fail(json.NewEncoder(os.Stdout).Encode(pids))
	select {}
}

func TestNothingIsLeftOfAKilledRunner(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(executable)
	run.Env = append(os.Environ(), runnerDir+"="+dir, "XDG_STATE_HOME="+state)
	run.Stderr = os.Stderr
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &pids)
	}
	if err != nil {
		run.Process.Kill()
		run.Wait()
		t.Fatal(err)
	}
	left := func() (found []string) {
		for _, pid := range pids {
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(stat) > 0 {
				found = append(found, fmt.Sprintf("process %d", pid))
			}
		}
		for _, pattern := range []string{
			filepath.Join(dir, "data", "*"), filepath.Join(state, "fencepost", "ports", "*"), filepath.Join(dir, "run.journal"),
		} {
			files, _ := filepath.Glob(pattern)
			found = append(found, files...)
		}
		return found
	}
	if n := len(left()); n != 7 { // else the test below could not fail
		t.Errorf("the runner has %v", left())
	}
	if err := run.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	run.Wait()
	for deadline := time.Now().Add(5 * time.Second); len(left()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("5 s after kill -9 there is still %v", left())
		}
	}
}
