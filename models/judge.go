package models

import (
	"context"
	"slices"
	"time"
)

// checks is the table of them, in the order in which they are told: a new one is a file of its own and a line here.
var checks = []Check{linearizable, mutualExclusion, tokenOrder, fencing, lostUpdate}

// All lists the checks in the order in which they are told.
func All() []Check { return slices.Clone(checks) }

// Find gives the check of that name.
func Find(name string) (Check, bool) {
	for _, c := range checks {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// Judge runs the checks, one after another, and gives their reports in that order. A check that panics, that passes without
// having judged a single operation, or whose turn comes after ctx has ended, comes out as Inconclusive.
func Judge(ctx context.Context, checks []Check, in *Input) []Report {
	reports := make([]Report, len(checks))
	for i, check := range checks {
		reports[i] = run(ctx, check, in)
	}
	return reports
}

func run(ctx context.Context, check Check, in *Input) (report Report) {
	started := time.Now()
	defer func() {
		if p := recover(); p != nil {
			report = Report{Verdict: Inconclusive, Reason: crashed(p)}
		}
		if report.Verdict == Pass && report.Decided == 0 {
			report.Verdict, report.Reason = Inconclusive, "it had nothing to judge"
		}
		report.Check, report.Elapsed = check.Name, time.Since(started)
	}()
	if ctx.Err() != nil {
		return Report{Verdict: Inconclusive, Reason: outOfTime(ctx)}
	}
	return check.Run(ctx, in)
}
