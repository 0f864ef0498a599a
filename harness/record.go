package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"fencepost.dev/history"
	"fencepost.dev/models"
	"fencepost.dev/reports"
)

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

// newRecord describes the run before load starts.
func (c *coordinator) newRecord() *runRecord {
	r := &runRecord{
		Contract: c.subject.Contract,
		Fenced:   c.fenced(),
	}
	environment := reports.Environment{
		Version: Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Kernel: kernel(), Go: runtime.Version(),
		Provider: map[string]string{}, Topology: map[string]string{}, Servers: map[string]string{},
	}
	for name, store := range c.scenario.Topology {
		environment.Provider[name], environment.Topology[name] = store.Provider, store.Kind
		environment.Servers[name] = c.stores[name].Version()
	}
	r.Result = reports.Result{
		Schema: reports.Schema, Run: c.id, Scenario: c.scenario.Name, Summary: c.scenario.Summary, Subject: c.scenario.Subject,
		Seed: c.seed, Started: c.started.UTC(), Environment: environment, Command: fmt.Sprintf("%s --seed %d", c.Command, c.seed),
		Explains: c.scenario.Explains, Pair: c.scenario.Pair,
	}
	return r
}

// kernel is what the operating system calls itself.
func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
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

// unsealed stands where the seal of run.json goes while the sum is taken.
var unsealed = strings.Repeat("0", 2*sha256.Size)

// sealed is the text of the record with the sum of itself in it.
func (r *runRecord) sealed() ([]byte, error) {
	r.Seal = unsealed
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	r.Seal = sealOf(text)
	return withSeal(text, unsealed, r.Seal), nil
}

func sealOf(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// withSeal puts another seal where the one that the record ends with is.
func withSeal(text []byte, old, seal string) []byte {
	i := bytes.LastIndex(text, []byte(old))
	if i < 0 {
		return nil
	}
	return slices.Concat(text[:i], []byte(seal), text[i+len(old):])
}

// readRunRecord reads run.json and sees that it is as it was written, to the byte.
func readRunRecord(dir string) (*runRecord, error) {
	path := filepath.Join(dir, runFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(path, history.ErrMissing, "it says what the run's verdict is to be held against")
	} else if err != nil {
		return nil, unproven{err}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var r runRecord
	if err := d.Decode(&r); err != nil {
		return nil, refuse(path, history.ErrCorrupt, "%v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, refuse(path, history.ErrCorrupt, "something follows its end")
	}
	if len(r.Seal) != len(unsealed) {
		return nil, refuse(path, errChanged, "it has no seal: it was edited, or an older version wrote it")
	}
	if sealOf(withSeal(text, r.Seal, unsealed)) != r.Seal {
		return nil, refuse(path, errChanged, "what it says is not what it was sealed with")
	}
	return &r, nil
}

// finishKilled brings what a killed runner left into its final form, and has its record vouch for it.
func finishKilled(dir string) error {
	if err := history.Finish(dir); err != nil {
		return err
	}
	r, err := readRunRecord(dir)
	if err != nil || r.collected() {
		return nil // it was killed before load or after collecting, or there is nobody left to vouch: check says so
	}
	r.Finished = true
	return r.write(dir)
}
