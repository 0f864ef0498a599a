package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fencepost.dev/history"
	"fencepost.dev/models"
	"fencepost.dev/reports"
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

// runRecord is run.json: what was measured and declared beside the history, so that check decides from the directory
// alone. It is written before load starts and again at the end.
type runRecord struct {
	Result   reports.Result    `json:"result"` // without what judging adds
	Contract models.Contract   `json:"contract"`
	Fenced   bool              `json:"fenced"`
	Workers  []history.Process `json:"workers"`
	Start    int64             `json:"start_ns"` // of load
	End      int64             `json:"end_ns"`   // of the last final read; 0: cut short
	// Sources are the records that the run left, so that one that goes missing later is missed.
	Sources []history.Source `json:"sources,omitempty"`
	// Trouble is what kept the run from going as planned: one sentence each.
	Trouble  []string `json:"trouble,omitempty"`
	Complete bool     `json:"complete"` // everything was collected in order
	// Finished: the runner died, and its guard, or chaos heal, brought the history to its final form.
	Finished bool `json:"finished,omitempty"`
	// Files are those that the verdict rests on. Before the load that is the scenario alone.
	Files []fileSum `json:"files"`
	// Verdict vouches for verdict.json, once the run has concluded; nil: it has not, and such a file is nobody's word.
	Verdict *fileSum `json:"verdict,omitempty"`
	Seal    string   `json:"sha256"` // of run.json with zeros in this place; it comes last
}

// collected says whether the record was written when the history was in its final form, and not only before load began.
func (r *runRecord) collected() bool { return r.End != 0 || r.Finished }

// write vouches for what there is by now, and writes the record.
func (r *runRecord) write(dir string) error {
	names := []string{scenarioFile}
	var err error
	if r.collected() {
		if names, err = evidenceFiles(dir); err != nil {
			return err
		}
	}
	if r.Files, err = sumFiles(dir, names); err != nil {
		return fmt.Errorf("writing %s: %w", runFile, err)
	}
	return r.store(dir)
}

// concluded vouches for what the run concluded, which has been written.
func (r *runRecord) concluded(dir string) error {
	s, err := sum(dir, reports.VerdictFile)
	if err != nil {
		return err
	}
	r.Verdict = &s
	return r.store(dir)
}

// store seals the record and writes it whole.
func (r *runRecord) store(dir string) error {
	text, err := r.sealed()
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, "."+runFile)
	if err := os.WriteFile(temporary, text, 0o666); err != nil {
		return fmt.Errorf("writing %s: %w", runFile, err)
	}
	return os.Rename(temporary, filepath.Join(dir, runFile))
}
