package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/process"
	"fencepost.dev/topology"
	"fencepost.dev/topology/endpoint"
)

// ServeRole serves the roles in which a run starts its own executable again: its guard, and the clients of a worker. It
// reports whether this process had one, and then its exit status. A program that calls Run must call it first in main, and
// a test in TestMain.
func ServeRole() (code int, served bool) {
	switch process.Role() {
	case "guard":
		return process.ServeGuard(undo(topology.Credentials{
			Password: os.Getenv(endpoint.PasswordVariable), Patience: guardPatience,
		})), true
	case "client":
		return serveClient(os.Stdin), true
	}
	return 0, false
}

// guardPatience bounds what the guard does to a store that isn't ours: histories are finished after it, within the guard's 5 s.
const guardPatience = 1500 * time.Millisecond

// finishEntry is the journal's entry for a history that must be finished if we die.
const finishEntry = "finish-history"

type finishRecord struct {
	Dir string `json:"dir"` // the results directory
}

// removeEntry is the journal's entry for a directory under the state directory that goes when we do.
const removeEntry = "remove-histories"

type removeRecord struct {
	Dir string `json:"dir"`
}

// remove takes such a directory away, and no other.
func (r removeRecord) remove() error {
	inside, err := filepath.Rel(filepath.Join(process.StateDir(), "agents"), r.Dir)
	if err != nil || !filepath.IsLocal(inside) || filepath.Base(inside) != "histories" {
		return fmt.Errorf("harness: %s is no directory of an agent's histories: it stays", r.Dir)
	}
	return os.RemoveAll(r.Dir)
}

// undo is all that a journal of ours can hold.
func undo(c topology.Credentials) process.Undo {
	all := process.Undo{finishEntry: func(raw json.RawMessage) error {
		var r finishRecord
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		return finishKilled(r.Dir)
	}, removeEntry: func(raw json.RawMessage) error {
		var r removeRecord
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		return r.remove()
	}}
	maps.Copy(all, faults.Undo())
	maps.Copy(all, topology.Undo(c))
	return all
}

// journals is where the journals of runs are.
func journals() string { return filepath.Join(process.StateDir(), "runs") }

// newJournalPath names the journal of a new run.
func newJournalPath() (string, error) {
	if err := os.MkdirAll(journals(), 0o700); err != nil {
		return "", fmt.Errorf("making the directory of journals: %w; set XDG_STATE_HOME to one that can be written", err)
	}
	return filepath.Join(journals(), fmt.Sprintf("%s-%d.journal", time.Now().Format("20060102-150405.000"), os.Getpid())), nil
}

// Orphans lists the journals of runs whose processes, guards included, died before they had undone everything.
func Orphans() ([]string, error) { return process.Orphans(journals()) }

// Heal undoes what the orphans say is still to be undone, and tells which it has healed. The password is for stores that are
// not ours; "" is none.
func Heal(password string) (healed []string, err error) {
	orphans, err := Orphans()
	if err != nil {
		return nil, err
	}
	// One that can't be healed must not keep the others from it.
	var errs []error
	for _, journal := range orphans {
		if err := process.Replay(journal, undo(topology.Credentials{Password: password})); err != nil {
			errs = append(errs, fmt.Errorf("healing what %s says: %w", journal, err))
			continue
		}
		healed = append(healed, journal)
	}
	return healed, errors.Join(errs...)
}

// version is set by the build: -ldflags "-X fencepost.dev/harness.version=…".
var version string

// Version is Fencepost's own.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
