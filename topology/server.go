package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"fencepost.dev/process"
	"fencepost.dev/topology/endpoint"
)

const (
	// startPatience bounds the start of a server, with the loading of what it kept.
	startPatience = 20 * time.Second
	// portTries is how many ports a start tries, if another takes one between our look at it and the server's.
	portTries = 5
)

// server is a node that we run: one process, on a port and in a directory of its own, which it keeps when it is started
// again. It can be paused, killed, started, and started empty.
type server struct {
	order   Order
	number  int
	options serverOptions
	pulse   pulse
	reserve func(*process.Journal) (*port, error) // reservePort, but in a test

	mu      sync.Mutex // guards what follows; held while anything is done to the process
	program string     // the same at each start
	port    *port
	dir     *directory
	proc    *process.Process // the last one started; nil before the first
	closed  bool
}

// newServer checks the order for node number n of it.
func newServer(order Order, n int) (*server, error) {
	options, err := parseServerOptions(order.Options)
	if err != nil {
		return nil, fmt.Errorf("topology %s: %w", order.Store, err)
	}
	return &server{order: order, number: n, options: options, reserve: reservePort}, nil
}

// findServer finds the program that a node runs.
func findServer() (string, error) {
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%w: neither valkey-server nor redis-server is on PATH; `make setup` installs one", ErrNoServer)
}

func (s *server) Name() string               { return fmt.Sprintf("%s/%d", s.order.Store, s.number) }
func (s *server) Place() (process, node int) { return -1, s.number }
func (s *server) Keeps() bool                { return s.options.persistence }
func (s *server) answering() *pulse          { return &s.pulse }

func (s *server) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.port == nil {
		return ""
	}
	return s.port.address()
}

// Alive reports whether the process runs, stopped or not.
func (s *server) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive()
}

func (s *server) alive() bool { return s.proc != nil && !ended(s.proc) }

func ended(proc *process.Process) bool {
	select {
	case <-proc.Done():
		return true
	default:
		return false
	}
}

// PID is the process's number; 0 if none runs.
func (s *server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.alive() {
		return 0
	}
	return s.proc.PID()
}

var errNotRunning = errors.New("it does not run")

// Pause stops the process; requests wait in its sockets.
func (s *server) Pause(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.alive() {
		return errNotRunning
	}
	s.pulse.fell()
	err := s.proc.Pause(ctx)
	if err != nil {
		s.pulse.rose()
	}
	return err
}

// Resume lets the process run on.
func (s *server) Resume(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.alive() {
		return errNotRunning
	}
	defer s.pulse.rose()
	return s.proc.Resume(ctx)
}

// Kill ends the process without warning.
func (s *server) Kill(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return errNotRunning
	}
	s.pulse.fell()
	err := s.proc.Kill(ctx)
	if err != nil {
		s.pulse.rose()
	}
	return err
}

// Start starts a killed server again, at its address and with what it kept.
func (s *server) Start(ctx context.Context) error { return s.again(ctx, false) }

// StartEmpty starts a killed server again, at its address and with nothing.
func (s *server) StartEmpty(ctx context.Context) error { return s.again(ctx, true) }

func (s *server) again(ctx context.Context, empty bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.dir == nil:
		return errNotRunning
	case s.alive():
		return errors.New("it runs already")
	}
	if empty {
		if err := os.RemoveAll(s.data()); err != nil {
			return fmt.Errorf("emptying it: %w", err)
		}
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	s.pulse.rose()
	return nil
}

// start is the first start. It takes another port if the one it reserved turns out to be in use.
func (s *server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.program, err = findServer(); err != nil {
		return err
	}
	if s.dir, err = makeDir(s.order.Journal, s.order.Dir, fmt.Sprintf("%s-%d", s.order.Store, s.number)); err != nil {
		return err
	}
	for range portTries {
		if s.port, err = s.reserve(s.order.Journal); err != nil {
			return err
		}
		if err = s.run(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
		s.order.Log.Warn("the port was taken meanwhile", "node", s.Name(), "port", s.port.number)
		taken := s.port
		s.port = nil
		if err := taken.release(); err != nil {
			return err
		}
	}
	return err
}

// data is where the server keeps what is stored, apart from our own files.
func (s *server) data() string { return filepath.Join(s.dir.path, "data") }

// run starts the process and returns when it answers.
func (s *server) run(ctx context.Context) error {
	if err := os.MkdirAll(s.data(), 0o700); err != nil {
		return fmt.Errorf("starting %s: %w", s.Name(), err)
	}
	config := filepath.Join(s.dir.path, "server.conf")
	if err := os.WriteFile(config, []byte(s.options.lines(s.port.number, s.data())), 0o600); err != nil {
		return fmt.Errorf("starting %s: %w", s.Name(), err)
	}
	log := openTail(s.logFile())
	proc, err := process.Start(process.Command{
		Name: s.Name(), Path: s.program, Args: []string{config}, Dir: s.data(), Log: log.path,
	}, s.order.Journal)
	if err != nil {
		return err
	}
	s.proc = proc
	if err := s.ready(ctx, proc); err != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		said := log.say()
		return errors.Join(fmt.Errorf("%s (%s) %w%s", s.Name(), s.program, log.cause(err), said), proc.Kill(ending))
	}
	s.order.Log.Info("server started", "node", s.Name(), "address", s.port.address(), "pid", proc.PID())
	return nil
}

func (s *server) logFile() string {
	dir := s.order.Logs
	if dir == "" {
		dir = s.dir.path
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%d.log", s.order.Store, s.number))
}

// ready returns when the server answers, which it does not while it loads what it kept.
func (s *server) ready(ctx context.Context, proc *process.Process) error {
	client, err := endpoint.Endpoint{Kind: "standalone", Addresses: []string{s.port.address()}}.Valkey()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		err := client.Ping(ctx).Err()
		// An answer from somebody else's server on our port is not ours; ours has then ended, or is about to.
		if err == nil && s.listens(ctx, client, proc) {
			return nil
		}
		select {
		case <-proc.Done():
			return fmt.Errorf("ended at once (%v)", proc.ExitState())
		case <-ctx.Done():
			return fmt.Errorf("did not get ready (%w; last: %v)", ctx.Err(), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// close ends the process and removes all that it had.
func (s *server) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	if s.proc != nil {
		s.pulse.fell()
		errs = append(errs, s.proc.Kill(ctx)) // what it stored is thrown away: nothing to end gently for
	}
	if s.dir != nil {
		errs = append(errs, s.dir.remove())
	}
	if s.port != nil {
		errs = append(errs, s.port.release())
	}
	return errors.Join(errs...)
}
