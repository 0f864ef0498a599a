package harness

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"fencepost.dev/history"
	"fencepost.dev/models"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
	"fencepost.dev/subjects"
)

// maxPages bounds how many of Porcupine's visualizations a report gets.
const maxPages = 3

// Check decides again from what a run recorded in dir, without any server, and changes nothing there. An error that wraps
// ErrUnproven means that the record can't be read whole.
func Check(ctx context.Context, dir string, limit models.Limit) (*reports.Material, error) {
	return judge(ctx, dir, limit)
}

// judge decides from a results directory.
func judge(ctx context.Context, dir string, limit models.Limit) (*reports.Material, error) {
	evidence, err := readEvidence(dir)
	if err != nil {
		return nil, err
	}
	return evidence.decide(ctx, limit)
}

func (e *evidence) decide(ctx context.Context, limit models.Limit) (*reports.Material, error) {
	in, err := e.input(limit)
	if err != nil {
		return nil, err
	}
	var checks []models.Check
	for _, name := range e.scenario.Checks {
		check, known := models.Find(name)
		if !known {
			return nil, fmt.Errorf("no check is called %q", name)
		}
		checks = append(checks, check)
	}
	found := models.Judge(ctx, checks, in)
	expectation := expectationOf(e.scenario)
	found = models.Temper(in, expectation, found)
	troubles := e.troubles()
	if e.record.Result.Stopped != nil && !slices.ContainsFunc(found, func(r models.Report) bool { return r.Check == models.Linearizable && r.Verdict == models.Violation }) {
		troubles = append(troubles, "the load was stopped on a violation that the whole record does not show")
	}
	got := models.Count(in)
	decision, err := models.Decide(expectation, models.Evidence{Reports: found, Need: e.scenario.Coverage, Got: got, Troubles: troubles})
	if err != nil {
		return nil, err
	}
	r := e.record.Result
	e.conclude(&r, in, found, got, decision)
	return &reports.Material{Result: r, Input: in, Series: e.series, Pages: pages(ctx, in, found)}, nil
}

// expectationOf is what the scenario is there to show. A control is there to show that none of the named checks finds
// anything at the named severity; what others find is not its question.
func expectationOf(s *scenarios.Scenario) models.Expectation {
	e := models.Expectation{Pass: s.Expect.Pass, Must: s.Expect.Violation, May: s.Expect.May, Loose: s.Expect.Loose}
	if len(s.Expect.Not) == 0 {
		return e
	}
	e.Pass = true
	for _, check := range s.Checks {
		switch {
		case slices.Contains(s.Expect.Not, check), slices.Contains(s.Expect.Not, check+":"+string(models.Availability)):
		case slices.Contains(s.Expect.Not, check+":"+string(models.Safety)):
			e.May = append(e.May, check+":"+string(models.Availability))
		default:
			e.May = append(e.May, check)
		}
	}
	return e
}

// pages has Porcupine draw the partitions of the first linearizability findings. A page that can't be drawn is left out: it
// is an illustration, and the witness is in the report.
func pages(ctx context.Context, in *models.Input, found []models.Report) map[string][]byte {
	drawn := map[string][]byte{}
	for _, r := range found {
		for _, f := range r.Findings {
			if _, done := drawn[f.Key]; done || f.Severity == "" || len(drawn) == maxPages {
				continue
			}
			var page bytes.Buffer
			if models.Visualize(ctx, in, f.Key, &page) == nil {
				drawn[f.Key] = page.Bytes()
			}
		}
	}
	return drawn
}

// conclude puts what was decided into the result.
func (e *evidence) conclude(r *reports.Result, in *models.Input, found []models.Report, got map[string]int64, d models.Decision) {
	expect := e.scenario.Expect
	r.Expected = "violation"
	if expect.Pass || len(expect.Not) > 0 {
		r.Expected = "pass"
	}
	r.ExpectedChecks = reports.ExpectedChecks{Must: expect.Violation, May: expect.May}
	r.Verdict, r.AsExpected, r.Reasons = d.Verdict, d.AsExpected(), d.Reasons
	r.Unproven = d.Standing == models.ProvesNothing
	r.CutShort = r.CutShort || !e.record.Complete
	r.Checks = reports.Checks(found, in.Names)
	r.Coverage = map[string]reports.Coverage{}
	for name, need := range e.scenario.Coverage {
		r.Coverage[name] = reports.Coverage{Need: need, Got: got[name]}
	}
	for _, ev := range e.history.Events {
		switch ev.Kind {
		case history.EventStall:
			r.Stalls = append(r.Stalls, ev)
		default:
			r.Faults = append(r.Faults, ev)
		}
	}
	e.holdThresholds(r)
}

// primitive is what the run's subject is.
func (e *evidence) primitive() string {
	if s, known := subjects.Find(e.scenario.Subject); known {
		return s.Primitive
	}
	return ""
}
