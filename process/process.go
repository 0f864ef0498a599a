// Package process starts, owns, pauses and ends operating-system processes, and keeps a guard that cleans up after us when
// we die. It imports nothing else of Fencepost.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

var errSkeleton = errors.New("process: not built yet")

// Command says what to start.
type Command struct {
	Name  string // how events and reports call it: "w1", "valkey/0"
	Path  string
	Args  []string  // without the program's own name
	Env   []string  // added to the inherited environment, from which secrets and roles of ours are removed first
	Dir   string    // "" is ours
	Stdin io.Reader // nil is empty
	Log   string    // file that stdout and stderr are appended to; "" discards them
}

// Process is a process that we started, in a group of its own.
type Process struct{}

func Start(cmd Command, j *Journal) (*Process, error) { return nil, errSkeleton }

func (p *Process) Name() string                                        { return "" }
func (p *Process) PID() int                                            { return 0 }
func (p *Process) Pause(ctx context.Context) error                     { return errSkeleton }
func (p *Process) Resume(ctx context.Context) error                    { return errSkeleton }
func (p *Process) Kill(ctx context.Context) error                      { return errSkeleton }
func (p *Process) Stop(ctx context.Context, grace time.Duration) error { return errSkeleton }
func (p *Process) Done() <-chan struct{}                               { return nil }
func (p *Process) ExitState() *os.ProcessState                         { return nil }

// Journal is what must be undone if we die.
type Journal struct{}

func OpenJournal(path string) (*Journal, error) { return nil, errSkeleton }
func (j *Journal) Begin(kind string, data any) (done func() error, err error) {
	return nil, errSkeleton
}
func (j *Journal) Close() error { return nil }

// Undo says, by kind of entry, how to undo it. "process" is built in.
type Undo map[string]func(json.RawMessage) error

func Replay(path string, undo Undo) error   { return errSkeleton }
func Orphans(dir string) ([]string, error) { return nil, errSkeleton }

// Guard cleans up after us when we die.
type Guard struct{}

func StartGuard(journal string, env ...string) (*Guard, error) { return nil, errSkeleton }
func (g *Guard) Close() error                                  { return nil }
func ServeGuard(undo Undo) int                                 { return 1 }

// Role is what this process was started as: "" by a person, "guard", "client".
func Role() string { return os.Getenv("FENCEPOST_ROLE") }

// StateDir is where journals are kept: ${XDG_STATE_HOME:-~/.local/state}/fencepost.
func StateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fencepost")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "fencepost")
}
