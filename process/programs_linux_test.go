package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is also every program that the tests start: programVariable says which.
const (
	programVariable = "PROCESS_TEST_PROGRAM"
	dirVariable     = "PROCESS_TEST_DIR"   // of a runner
	planVariable    = "PROCESS_TEST_PLAN"  // of a runner
	nonceVariable   = "PROCESS_TEST_NONCE" // carried by all that a test starts, so that it can be found
)

func TestMain(m *testing.M) {
	if Role() == guardRole {
		os.Exit(ServeGuard(testUndo))
	}
	if name := os.Getenv(programVariable); name != "" {
		// Whatever happens, no program of a test outlives it for long.
		time.AfterFunc(time.Minute, func() { os.Exit(99) })
		programs[name]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var programs map[string]func()

func init() {
	programs = map[string]func(){
		"sleep":     sleep,
		"fail":      func() { os.Exit(7) },
		"cat":       func() { _, _ = io.Copy(os.Stdout, os.Stdin) },
		"env":       func() { fmt.Println(strings.Join(os.Environ(), "\n")) },
		"busy":      busy,
		"stubborn":  func() { signal.Ignore(syscall.SIGTERM); say("ready"); sleep() },
		"polite":    polite,
		"parent":    func() { spawn("busy", nil); say("ready"); sleep() },
		"abandoner": func() { spawn("sleep", nil) },
		"daemon":    func() { spawn("sleep", &syscall.SysProcAttr{Setsid: true}); say("ready"); sleep() },
		"runner":    runner,
	}
}

func say(word string) { fmt.Println(word) }

func sleep() { time.Sleep(time.Hour) }

// busy has several threads that never rest, and says something about every millisecond.
func busy() {
	for range 3 {
		go func() {
			runtime.LockOSThread()
			for {
				time.Sleep(50 * time.Microsecond)
			}
		}()
	}
	for {
		fmt.Print(".")
		time.Sleep(time.Millisecond)
	}
}

func polite() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	say("ready")
	<-ended
	say("bye")
	os.Exit(3)
}

func spawn(program string, attr *syscall.SysProcAttr) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), programVariable+"="+program)
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("child", cmd.Process.Pid)
}

// runner is what a run does, as far as this package is concerned. It says where it has got to.
func runner() {
	dir, plan := os.Getenv(dirVariable), os.Getenv(planVariable)
	if strings.Contains(plan, "no-death-signal") {
		deathSignal = 0
	}
	must := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	path := filepath.Join(dir, "run.journal")
	guard, err := StartGuard(path)
	must(err)
	fmt.Println("guard", guard.PID())
	j, err := OpenJournal(path)
	must(err)
	_, err = j.Begin("touch", filepath.Join(dir, "undone"))
	must(err)
	say("begun")
	if strings.Contains(plan, "hang") {
		_, err = j.Begin("hang", nil)
		must(err)
	}
	for _, name := range []string{"busy", "stubborn", "parent", "daemon"} {
		log := filepath.Join(dir, name+".log")
		p, err := Start(Command{
			Name: name, Path: os.Args[0], Env: []string{programVariable + "=" + name}, Log: log,
		}, j)
		must(err)
		fmt.Println("started", p.PID())
		if name == "busy" {
			must(p.Pause(context.Background()))
			say("paused")
			continue
		}
		for text := []byte(nil); !strings.Contains(string(text), "ready"); text, _ = os.ReadFile(log) {
			time.Sleep(time.Millisecond)
		}
	}
	say("complete")
	sleep()
}

var testUndo = Undo{
	"touch": touch,
	"hang":  hang,
}
