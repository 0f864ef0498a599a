package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fencepost.dev/history"
	"fencepost.dev/load"
	"fencepost.dev/models"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
)

// evidence is what a results directory holds.
type evidence struct {
	dir      string
	scenario *scenarios.Scenario
	record   *runRecord
	history  *history.History
	log      *load.Log // nil: none was written
	series   []reports.Series
}

// readEvidence reads a results directory. What is damaged proves nothing; what isn't there at all is a mistake of the
// caller's.
func readEvidence(dir string) (*evidence, error) {
	e := &evidence{dir: dir}
	path := filepath.Join(dir, scenarioFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, none := os.Stat(filepath.Join(dir, runFile)); errors.Is(none, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is no results directory: it has no %s%s", dir, scenarioFile, resultsIn(dir))
		}
		return nil, refuse(path, history.ErrMissing, "it says what the run is judged by")
	} else if err != nil {
		return nil, err
	}
	if e.record, err = readRunRecord(dir); err != nil {
		return nil, err
	}
	if err := e.record.unchanged(dir); err != nil {
		return nil, err
	}
	if e.scenario, err = scenarios.Parse(path, text, Vocabulary()); err != nil {
		return nil, unproven{fmt.Errorf("the run's scenario is not one that this version knows; check it with the one that ran it, %s: %w", e.record.Result.Environment.Version, err)}
	}
	if e.history, err = history.Load(dir); err != nil {
		return nil, unproven{err}
	}
	if err := e.whole(); err != nil {
		return nil, unproven{err}
	}
	if e.log, err = readLatencies(filepath.Join(dir, latencyFile)); err != nil {
		return nil, unproven{err}
	}
	e.series = seriesOf(e.log, e.scenario.Load.Length())
	return e, nil
}

// resultsIn names the results directories in one that isn't one itself: demo and verify make a directory a run.
func resultsIn(dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "*", scenarioFile))
	if err != nil || len(found) == 0 {
		return ""
	}
	const most = 3
	var names []string
	for _, path := range found[:min(len(found), most)] {
		names = append(names, filepath.Dir(path))
	}
	if len(found) > most {
		names = append(names, fmt.Sprintf("and %d more", len(found)-most))
	}
	return "; these in it are: " + strings.Join(names, ", ")
}

// whole is an error if a record that the run left is not there any more: an operation that is missing makes others look
// wrong.
func (e *evidence) whole() error {
	rows := map[string]int64{}
	numbers := map[int]bool{}
	for _, s := range e.history.Sources {
		rows[s.Base] = int64(s.Rows)
		numbers[int(s.Number)] = s.Base != history.ResourceBase || numbers[int(s.Number)]
	}
	begun := false
	for _, ev := range e.history.Events {
		begun = begun || ev.Kind == history.EventLoadStarted
		if ev.Kind == history.EventWorkerStarted && !numbers[ev.Process] {
			return fmt.Errorf("%s: the history of %s, the process numbered %d, is %w: copy the results directory whole", e.dir, ev.Target, ev.Process, history.ErrMissing)
		}
	}
	if run := e.record.Result.Run; e.history.Run != run {
		return fmt.Errorf("%s: the history is of the run %q, and %s of the run %q: %s", e.dir, e.history.Run, runFile, run, wholeCopy)
	}
	for _, s := range e.record.Sources {
		if got, there := rows[s.Base]; !there || got != int64(s.Rows) {
			return fmt.Errorf("%s: the record %s has %d operations and had %d: part of it is %w: copy the results directory whole", e.dir, s.Base, got, s.Rows, history.ErrMissing)
		}
	}
	// It is made, empty, before run.json is.
	if _, err := os.Stat(filepath.Join(e.dir, faultsFile)); err != nil || e.record.Complete && !begun {
		return fmt.Errorf("%s: %s or what it held is %w: copy the results directory whole", e.dir, faultsFile, history.ErrMissing)
	}
	return nil
}

// readLatencies reads the interval log, if the run got so far as to write one.
func readLatencies(path string) (*load.Log, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := load.ReadLog(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// input makes the history into what checks look at.
func (e *evidence) input(limit models.Limit) (*models.Input, error) {
	in, err := models.Prepare(e.history, models.PrepareOptions{
		Primitive: e.primitive(), Contract: e.record.Contract, Fenced: e.record.Fenced, End: e.record.End, Limit: limit,
	})
	if err != nil {
		return nil, unproven{err}
	}
	return in, nil
}

// troubles say what keeps the run from proving a pass.
func (e *evidence) troubles() []string {
	list := append([]string(nil), e.record.Trouble...)
	if !e.record.Complete {
		list = append(list, "the run was cut short")
	}
	if e.record.Complete && !e.worked() {
		list = append(list, "nothing happened: no client made a call while there was load")
	}
	for _, ev := range e.history.Events {
		if ev.Kind == history.EventWorkerDied && ev.Detail != "" {
			list = append(list, fmt.Sprintf("worker %s died: %s; its log says why", ev.Target, ev.Detail))
		}
	}
	for _, s := range e.history.Sources {
		if s.Dropped > 0 {
			list = append(list, fmt.Sprintf("%s could not record %d operations: %s", s.Base, s.Dropped, s.Error))
		}
		if s.Streamed && !s.Closed {
			list = append(list, fmt.Sprintf("the last that %s did was not received: it ended, or its connection did, before it was sent", s.Base))
		}
	}
	return list
}

// worked says whether any client made a call under load. The final reads are not load.
func (e *evidence) worked() bool {
	ended := e.record.End
	for _, ev := range e.history.Events {
		if ev.Kind == history.EventLoadEnded {
			ended = ev.At
		}
	}
	return slices.ContainsFunc(e.history.Operations, func(op history.Operation) bool { return op.Call < ended })
}
