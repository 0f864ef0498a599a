package harness

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"fencepost.dev/models"
	"fencepost.dev/reports"
)

// errNotConcluded: the run did not get so far as to conclude anything, or what it concluded is not there any more.
var errNotConcluded = errors.New("the run has not concluded")

// Render writes a run's reports anew, from its verdict.json and history, and gives the paths of the pages. A run that was
// killed before it concluded anything is decided now.
func Render(ctx context.Context, dir string) ([]string, error) {
	evidence, err := readEvidence(dir)
	if err != nil {
		return nil, err
	}
	write := reports.WritePages
	m, err := evidence.told()
	if errors.Is(err, errNotConcluded) {
		write = reports.Write
		m, err = evidence.decide(ctx, models.Limit{})
	}
	if err != nil {
		return nil, err
	}
	if err := write(dir, *m); err != nil {
		return nil, err
	}
	return []string{filepath.Join(dir, "report.html"), filepath.Join(dir, "report.md"), filepath.Join(dir, "junit.xml")}, nil
}

// told is what the run concluded.
func (e *evidence) told() (*reports.Material, error) {
	if e.record.Verdict == nil {
		return nil, errNotConcluded
	}
	switch got, err := sum(e.dir, reports.VerdictFile); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNotConcluded
	case err != nil:
		return nil, unproven{err}
	case got != *e.record.Verdict:
		return nil, refuse(filepath.Join(e.dir, reports.VerdictFile), errChanged,
			"its SHA-256 is not the one in %s (bench check decides again from the history)", runFile)
	}
	result, err := reports.ReadResult(e.dir)
	if err != nil {
		return nil, unproven{err}
	}
	in, err := e.input(models.Limit{})
	if err != nil {
		return nil, err
	}
	return &reports.Material{Result: *result, Input: in, Series: e.series}, nil
}
