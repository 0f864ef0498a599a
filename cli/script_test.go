package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"bench": func() { os.Exit(Bench(os.Args[1:], os.Stdout, os.Stderr)) },
		"chaos": func() { os.Exit(Chaos(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScript runs the commands as people do: testdata/script/*.txtar.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			bench, err := exec.LookPath("bench")
			e.Setenv("BENCH", bench) // for scripts that change PATH
			return err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":    exits,
			"truncate": truncate,
		},
	})
}

// exits STATUS COMMAND … runs a command and wants that exit status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND …")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var code interface{ ExitCode() int }
		if !asExit(err, &code) {
			ts.Fatalf("running %s: %v", args[1], err)
		}
		got = code.ExitCode()
	}
	if got != want {
		ts.Fatalf("%v exits with %d, want %d", args[1:], got, want)
	}
}

func asExit(err error, target *interface{ ExitCode() int }) bool {
	code, ok := err.(interface{ ExitCode() int })
	if ok {
		*target = code
	}
	return ok
}

// truncate GLOB cuts the last tenth off every file that matches.
func truncate(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("no file matches %s", args[0])
	}
	for _, f := range files {
		info, err := os.Stat(f)
		ts.Check(err)
		ts.Check(os.Truncate(f, info.Size()*9/10))
		fmt.Fprintln(ts.Stdout(), "cut", f)
	}
}
