package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Files of a results directory that this package writes; reports writes the others.
const (
	scenarioFile   = "scenario.yaml" // as resolved
	runFile        = "run.json"      // what the judge needs besides
	faultsFile     = "faults.jsonl"
	latencyFile    = "latency.hlog"
	historyDir     = "history"
	logsDir        = "logs"
	coordinatorLog = "coordinator.log"
)

// MakeResults makes a results directory, which must be absent or empty, and sees that it can be written to.
func MakeResults(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("the results directory %s can't be made: %w; choose another with --out", dir, reason(err))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the results directory %s can't be read: %w; choose another with --out", dir, reason(err))
	}
	if len(entries) > 0 {
		return fmt.Errorf("the results directory %s is not empty: choose one with --out that is absent or empty", dir)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("the results directory %s can't be written to: %w; choose another with --out", dir, reason(err))
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// reason leaves out the path, which the sentence has named already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
