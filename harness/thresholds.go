package harness

import (
	"fmt"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/load"
	"fencepost.dev/models"
	"fencepost.dev/reports"
	"fencepost.dev/scenarios"
)

// holdThresholds holds the run against its scenario's thresholds.
func (e *evidence) holdThresholds(r *reports.Result) {
	for _, expression := range sortedNames(e.scenario.Thresholds) {
		t := e.scenario.Thresholds[expression]
		outcome := reports.Threshold{Metric: expression, Want: t.Text}
		metric, err := load.ParseMetric(expression)
		known := err == nil && e.log != nil
		if known {
			outcome.Unit = metric.Unit()
			if metric.Stat == load.NeverStarted {
				outcome.Got, known = r.Load.NeverStarted()
			} else {
				outcome.Got, known = e.log.Measure(metric, e.window(), e.outside(t.Outside)...)
			}
		}
		if !known {
			unproved(r, "threshold: nothing was recorded from which %s could be told.", expression)
			continue
		}
		outcome.Met = (t.Below == nil || outcome.Got <= *t.Below) && (t.Above == nil || outcome.Got >= *t.Above)
		if outcome.Met && t.Below != nil && e.unstartedMayMiss(r, metric, t) {
			outcome.Met, outcome.Undecided = false, true
			unproved(r, "threshold: %s is %s of what was started; %s, so whether it is %s can't be told.",
				expression, amount(outcome.Got, outcome.Unit), r.Load.Warning(), t.Text)
		} else if !outcome.Met {
			r.Reasons = append(r.Reasons, fmt.Sprintf("%s is %s, and should be %s", expression, amount(outcome.Got, outcome.Unit), t.Text))
			r.AsExpected = false
		}
		r.Thresholds = append(r.Thresholds, outcome)
	}
}

// unstartedMayMiss reports whether a latency that is met might not be if the arrivals that never started had been served. They
// are in no latency, though they waited longer than most that are. Counting them could only raise it: what is missed without them
// stays missed, and what is met may not be. How long they would have taken nobody knows, so that is undecided, not missed.
//
// A percentile is still certain where it holds with all of them counted as slower than everything recorded: of a share u that
// never started, the q-th quantile of all is then the q/(1-u)-th of what was. A maximum or a mean has no such bound; there
// 1 in 1000 is let pass, since a few wait at the end of any load.
func (e *evidence) unstartedMayMiss(r *reports.Result, metric load.Metric, t scenarios.Threshold) bool {
	share, known := r.Load.NeverStarted()
	switch {
	case !metric.Latency() || !known || share == 0:
		return false
	case metric.Stat != load.Percentile:
		return r.Load.Starved()
	}
	if metric.Quantile /= 1 - share; metric.Quantile >= 1 {
		return true
	}
	worst, known := e.log.Measure(metric, e.window(), e.outside(t.Outside)...)
	return !known || worst > *t.Below
}

// unproved withholds a pass for a reason; it hides no violation, and nothing contrary.
func unproved(r *reports.Result, format string, args ...any) {
	r.Reasons = append(r.Reasons, fmt.Sprintf(format, args...))
	if r.AsExpected {
		r.AsExpected, r.Unproven = false, true
	}
	r.Verdict = max(r.Verdict, models.Inconclusive)
}

// window is when load ran.
func (e *evidence) window() load.Window {
	w := load.Window{From: e.record.Start, To: e.record.Start + int64(e.scenario.Load.Length())}
	if stopped := e.record.Result.Stopped; stopped != nil {
		w.To = min(w.To, stopped.At)
	}
	return w
}

// outside are the spans of time that a threshold leaves out.
func (e *evidence) outside(what string) []load.Window {
	if what != "faults" {
		return nil
	}
	var windows []load.Window
	for _, ev := range e.history.Events {
		if ev.Kind == history.EventFault {
			end := ev.End
			if end == 0 {
				end = e.record.End
			}
			windows = append(windows, load.Window{From: ev.At, To: max(end, ev.At)})
		}
	}
	return windows
}

// amount is a metric's value for people.
func amount(v float64, unit string) string {
	switch unit {
	case "s":
		return time.Duration(v * float64(time.Second)).Round(time.Microsecond).String()
	case "share":
		return fmt.Sprintf("%.3g%%", 100*v)
	}
	return fmt.Sprintf("%.4g/s", v)
}
