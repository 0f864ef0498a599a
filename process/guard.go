package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// Guard is our hold on the process that cleans up after us. It watches a pipe of which only we hold the other end: however
// we end, the kernel closes it, and the guard replays the journal.
type Guard struct {
	cmd    *exec.Cmd
	life   *os.File // held open for as long as we live
	exited chan struct{}
}

const (
	guardStartup  = 20 * time.Second // until it must have said that it is there; a loaded machine takes its time
	guardDeadline = 4500 * time.Millisecond
	guardReap     = 10 * time.Second // until Close gives up on it
)

// Descriptors of the guard's ends of its pipes.
const (
	lifeFD  = 3
	readyFD = 4
)

// StartGuard starts the guard of a journal, which need not exist yet, and returns when it is in place. Start it before
// anything else that it is to guard.
//
// The guard is this executable once more, with Role "guard": main (and TestMain) must call ServeGuard then. It is in a
// session of its own, so that what a terminal sends to us does not reach it, and it ignores SIGINT, SIGTERM and SIGHUP. It
// inherits our environment without secrets; env adds to it what undoing needs.
func StartGuard(journal string, env ...string) (*Guard, error) {
	g, err := startGuard(journal, env)
	if err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	return g, nil
}

func startGuard(journal string, env []string) (*Guard, error) {
	if Role() == guardRole {
		return nil, errors.New("this is a guard, and its main did not call process.ServeGuard")
	}
	journal, err := filepath.Abs(journal)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	lifeR, lifeW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeR.Close()
	readyR, readyW, err := os.Pipe()
	if err != nil {
		lifeW.Close()
		return nil, err
	}
	defer readyR.Close()

	cmd := exec.Command(self)
	cmd.Env = childEnv(os.Environ(), env, []string{roleVariable + "=" + guardRole, journalVariable + "=" + journal})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.ExtraFiles = []*os.File{lifeFD - 3: lifeR, readyFD - 3: readyW}
	err = cmd.Start()
	readyW.Close()
	if err != nil {
		lifeW.Close()
		return nil, err
	}
	g := &Guard{cmd: cmd, life: lifeW, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(g.exited)
	}()
	_ = readyR.SetReadDeadline(time.Now().Add(guardStartup))
	if _, err := io.ReadFull(readyR, make([]byte, 1)); err != nil {
		lifeW.Close()
		_ = cmd.Process.Kill()
		<-g.exited
		return nil, fmt.Errorf("%s did not say that it is guarding (does its main call process.ServeGuard?): %w", self, err)
	}
	return g, nil
}

// PID is the guard's process id.
func (g *Guard) PID() int { return g.cmd.Process.Pid }

// Close lets go of the pipe and waits for the guard to end. The guard undoes what the journal still holds, and an error
// says that it could not. Call it last, after the journal's Close.
func (g *Guard) Close() error {
	g.life.Close()
	select {
	case <-g.exited:
	case <-time.After(guardReap):
		_ = g.cmd.Process.Kill()
		<-g.exited
		return fmt.Errorf("the guard (pid %d) did not end within %v and was killed", g.PID(), guardReap)
	}
	if state := g.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("the guard (pid %d) ended with %v; the journal holds what it could not undo", g.PID(), state)
	}
	return nil
}

// ServeGuard is the body of the guard's role: it blocks until the pipe closes, replays the journal, and returns the status
// to exit with at once. It returns within 5 s, whatever undo does; the process groups are killed first.
func ServeGuard(undo Undo) int {
	// Caught and dropped. Ignoring them would be inherited by what undo starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)

	life, ready := os.NewFile(lifeFD, "life"), os.NewFile(readyFD, "ready")
	journal := os.Getenv(journalVariable)
	if _, err := ready.Write([]byte{1}); err != nil || journal == "" {
		fmt.Fprintln(os.Stderr, "the guard is started by the program itself, not by hand")
		return 2
	}
	ready.Close()
	_, _ = io.Copy(io.Discard, life)

	result := make(chan error, 1)
	go func() { result <- Replay(journal, undo) }()
	select {
	case err := <-result:
		if err != nil { // Replay wrote it into the journal, which stays
			return 1
		}
		return 0
	case <-time.After(guardDeadline):
		return 1
	}
}
