// Package valkeytest runs a real Valkey server for a test, and a proxy that breaks connections to it at chosen moments.
package valkeytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a valkey-server of the test's own, on a loopback port, in a temporary directory, without persistence.
type Server struct {
	Address string
	// Direct is a client that goes to the server itself, not through any proxy. It is for looking.
	Direct *redis.Client
	pid    int
	t      testing.TB
}

// Start runs a server with further configuration ("--maxmemory", "1mb") until the test ends. A machine without valkey-server
// and redis-server skips the test.
func Start(t testing.TB, config ...string) *Server {
	t.Helper()
	return start(t, nil, config)
}

// StartWith is Start with the credentials and TLS settings of the client that looks at it.
func StartWith(t testing.TB, direct redis.Options, config ...string) *Server {
	t.Helper()
	return start(t, &direct, config)
}

func start(t testing.TB, direct *redis.Options, config []string) *Server {
	t.Helper()
	program, err := exec.LookPath("valkey-server")
	if err != nil {
		if program, err = exec.LookPath("redis-server"); err != nil {
			t.Skip("no valkey-server or redis-server on PATH")
		}
	}
	dir := t.TempDir()
	for range 10 {
		// Below the ephemeral range, so that no client's socket sits on it.
		port := 20000 + rand.IntN(12000)
		args := append([]string{
			"--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", dir, "--save", "", "--appendonly", "no",
			"--logfile", filepath.Join(dir, "log"),
		}, config...)
		cmd := exec.Command(program, args...)
		cmd.SysProcAttr = attributes()
		exited, err := run(cmd)
		if err != nil {
			t.Fatalf("valkeytest: starting %s: %v", program, err)
		}
		s := &Server{Address: fmt.Sprintf("127.0.0.1:%d", port), pid: cmd.Process.Pid, t: t}
		options := redis.Options{}
		if direct != nil {
			options = *direct
		}
		if options.Addr == "" {
			options.Addr = s.Address
		}
		options.MaxRetries, options.DialerRetries, options.Protocol = -1, 1, 2
		s.Direct = redis.NewClient(&options)
		stop := func() {
			_ = s.Direct.Close()
			_ = cmd.Process.Kill()
			<-exited
		}
		if s.ready(exited) {
			t.Cleanup(stop)
			return s
		}
		stop()
		if log, _ := os.ReadFile(filepath.Join(dir, "log")); !strings.Contains(string(log), "Address already in use") {
			t.Fatalf("valkeytest: %s did not become ready:\n%s", program, log)
		}
	}
	t.Fatal("valkeytest: ten ports in a row were taken")
	return nil
}

// run starts the process from a thread that lives as long as it does: the parent-death signal follows the thread.
func run(cmd *exec.Cmd) (exited chan struct{}, err error) {
	exited = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		runtime.UnlockOSThread()
	}()
	return exited, <-started
}

func (s *Server) ready(exited chan struct{}) bool {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		select {
		case <-exited:
			return false
		default:
		}
		// A server that says no is ready too: some tests want just that (LOADING, MASTERDOWN).
		err := s.Direct.Ping(context.Background()).Err()
		var reply redis.Error
		if err == nil || errors.As(err, &reply) {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// Pause stops the server whole, and returns when it has stopped.
func (s *Server) Pause() {
	s.t.Helper()
	if err := syscall.Kill(s.pid, syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.Resume) // else it could not be ended in order
	for range 500 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
		if err != nil { // no /proc here
			time.Sleep(100 * time.Millisecond)
			return
		}
		if _, after, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(after, "T") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatal("valkeytest: the server did not stop")
}

// Resume sets it going again.
func (s *Server) Resume() { _ = syscall.Kill(s.pid, syscall.SIGCONT) }

// Calls is how often the server has executed a command ("set"), refused ones not counted.
func (s *Server) Calls(command string) int {
	s.t.Helper()
	info := s.Direct.Info(context.Background(), "commandstats").Val()
	for _, line := range strings.Split(info, "\r\n") {
		var calls int
		if _, err := fmt.Sscanf(line, "cmdstat_"+command+":calls=%d", &calls); err == nil {
			return calls
		}
	}
	return 0
}

// Alone waits until no client but Direct is connected: then the server has executed whatever it will ever execute of what the
// others sent.
func (s *Server) Alone() {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		list := s.Direct.ClientList(context.Background()).Val()
		if strings.Count(list, "\n") <= 1 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("valkeytest: clients are still connected:\n%s", list)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Unused is a loopback address on which nobody listens.
func Unused(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
