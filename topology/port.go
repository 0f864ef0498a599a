package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gofrs/flock"

	"fencepost.dev/process"
)

// Ports are taken from a range below the ephemeral one: there, some client's socket could sit on a node's port while the
// node restarts. They also leave room for a cluster node's second port, 10,000 above.
const (
	firstPort = 20000
	lastPort  = 31999
)

// port is a port of the loopback interface that is reserved among all runs of this user. The reservation is a lock on a
// file, which the kernel lifts when we die, so a killed run holds none; its empty file is removed by the guard, or by the
// next that takes the port.
type port struct {
	number int
	lock   *flock.Flock
	undone func() error
}

// reservePort reserves a port on which nobody listens. It begins at random, so that runs side by side seldom meet, and a port
// that was just given back rests.
func reservePort(journal *process.Journal) (*port, error) {
	const count = lastPort - firstPort + 1
	start := rand.IntN(count)
	for i := range count {
		reserved, err := tryPort(journal, firstPort+(start+i)%count)
		if err != nil {
			return nil, err
		}
		if reserved != nil {
			return reserved, nil
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free: is something leaving servers behind?", firstPort, lastPort)
}

// tryPort reserves one port; nil if it is taken.
func tryPort(journal *process.Journal, number int) (*port, error) {
	path := portFile(number)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	undone, err := begin(journal, portKind, portEntry{path})
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	lock, err := lockFile(path)
	if err != nil || lock == nil {
		return nil, errors.Join(err, undone())
	}
	reserved := &port{number: number, lock: lock, undone: undone}
	// The lock keeps our own kind away; whether the port is in use only the kernel knows.
	listener, err := net.Listen("tcp", reserved.address())
	if err != nil {
		return nil, reserved.release()
	}
	return reserved, listener.Close()
}

func (p *port) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// release gives the port back and removes its file. The file goes first, under the lock: whoever opened it meanwhile finds
// that it is not the one at its path any more, and tries again (lockFile).
func (p *port) release() error {
	return errors.Join(os.Remove(p.lock.Path()), p.lock.Close(), p.undone())
}

func portFile(number int) string {
	return filepath.Join(process.StateDir(), "ports", strconv.Itoa(number)+".lock")
}

// lockFile locks the file at the path, and makes it if it is absent. It gives nil if another has it.
func lockFile(path string) (*flock.Flock, error) {
	for {
		lock := flock.New(path, flock.SetPermissions(0o600))
		locked, err := lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if !locked {
			return nil, lock.Close()
		}
		ours, err := lock.Stat()
		if err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(ours, there) {
			return lock, nil
		}
		if err := lock.Close(); err != nil { // its last owner removed it between our open and our lock
			return nil, err
		}
	}
}

// portKind is the kind of journal entries for reserved ports.
const portKind = "port-lock"

type portEntry struct {
	Path string `json:"path"`
}

// undoPort removes the file of a port that nobody holds.
func undoPort(entry portEntry) error {
	if filepath.Ext(entry.Path) != ".lock" || filepath.Base(filepath.Dir(entry.Path)) != "ports" {
		return fmt.Errorf("%q is no lock file of ours", entry.Path)
	}
	if _, err := os.Lstat(entry.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := lockFile(entry.Path)
	if err != nil || lock == nil { // nil: another run has it by now
		return err
	}
	return errors.Join(os.Remove(entry.Path), lock.Close())
}
