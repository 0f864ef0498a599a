package load

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"fencepost.dev/history"
)

// Log is what a whole run's operations took: the intervals of all its workers, added up. It is safe to use concurrently.
type Log struct {
	mutex sync.Mutex
	bins  map[int64]*logBin // by From
}

type logBin struct {
	since int64
	kinds map[string]*logKind
}

type logKind struct {
	outcomes  Outcomes
	latencies []Latencies // one for each interval that was added
}

// NewLog makes an empty one.
func NewLog() *Log { return &Log{bins: map[int64]*logBin{}} }

// Add adds what a worker did. A damaged interval is an error, and adds nothing.
func (l *Log) Add(i Interval) error {
	for kind, k := range i.Kinds {
		recorded := int64(0)
		if err := k.Latency.Each(func(_, count int64) { recorded += count }); err != nil {
			return fmt.Errorf("%s at %s: %w", kind, time.Duration(i.From), err)
		}
		if recorded != k.Outcomes.Operations() {
			return fmt.Errorf("load: interval at %s has %d operations and %d latencies of %s",
				time.Duration(i.From), k.Outcomes.Operations(), recorded, kind)
		}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	b, ok := l.bins[i.From]
	if !ok {
		b = &logBin{since: i.Since, kinds: map[string]*logKind{}}
		l.bins[i.From] = b
	}
	b.since = min(b.since, i.Since)
	for kind, k := range i.Kinds {
		sum, ok := b.kinds[kind]
		if !ok {
			sum = new(logKind)
			b.kinds[kind] = sum
		}
		sum.outcomes.add(k.Outcomes)
		sum.latencies = append(sum.latencies, k.Latency)
	}
	return nil
}

// Summary is what operations of one kind, or all, came to.
type Summary struct {
	Outcomes
	latency *hdrhistogram.PackedHistogram
}

func newSummary() *Summary {
	return &Summary{latency: hdrhistogram.NewPacked(lowest, highest, digits)}
}

// Quantile is the latency that a share q of the operations did not exceed, to 3 digits; 0 if there were none.
func (s *Summary) Quantile(q float64) time.Duration {
	return time.Duration(s.latency.ValueAtPercentile(q * 100))
}

// Max is the longest latency.
func (s *Summary) Max() time.Duration { return time.Duration(s.latency.Max()) }

// Mean is the mean latency.
func (s *Summary) Mean() time.Duration { return time.Duration(s.latency.Mean()) }

func (s *Summary) add(k *logKind) {
	s.Outcomes.add(k.outcomes)
	for _, latencies := range k.latencies {
		_ = latencies.into(s.latency) // Add has looked at them: it can't fail
	}
}

// Window is a time of a run, both ends included.
type Window struct{ From, To int64 }

// touches reports whether a bin, or an operation that returned in it, overlaps the window.
func (w Window) touches(from, since int64) bool {
	return min(from, since) <= w.To && from+int64(Bin) > w.From
}

// Summarize adds up, by kind, the operations that returned in bins which begin in [from, to) and aren't touched by any window
// of outside. A bin is touched also if one of its operations was due within the window: what waits for a fault to end counts
// as under it, however long afterwards it returns.
func (l *Log) Summarize(from, to int64, outside ...Window) map[string]*Summary {
	summaries := map[string]*Summary{}
	l.each(from, to, outside, func(_ int64, kind string, k *logKind) {
		if summaries[kind] == nil {
			summaries[kind] = newSummary()
		}
		summaries[kind].add(k)
	})
	return summaries
}

// Total is Summarize over all kinds together.
func (l *Log) Total(from, to int64, outside ...Window) *Summary {
	total := newSummary()
	l.each(from, to, outside, func(_ int64, _ string, k *logKind) { total.add(k) })
	return total
}

// each visits in order of time and kind.
func (l *Log) each(from, to int64, outside []Window, visit func(from int64, kind string, k *logKind)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, at := range slices.Sorted(maps.Keys(l.bins)) {
		b := l.bins[at]
		if at < from || at >= to || slices.ContainsFunc(outside, func(w Window) bool { return w.touches(at, b.since) }) {
			continue
		}
		for _, kind := range slices.Sorted(maps.Keys(b.kinds)) {
			visit(at, kind, b.kinds[kind])
		}
	}
}

// Point is one step of a series.
type Point struct {
	From  int64
	Kinds map[string]*Summary
}

// Series adds the log up in steps, from the one that has its first operation to the one that has its last; a step without
// operations has no kinds. step is a multiple of Bin.
func (l *Log) Series(step time.Duration) []Point {
	var points []Point
	l.each(0, All, nil, func(from int64, kind string, k *logKind) {
		start := from - from%int64(step)
		for len(points) == 0 || points[len(points)-1].From < start {
			next := start
			if len(points) > 0 {
				next = points[len(points)-1].From + int64(step)
			}
			points = append(points, Point{From: next, Kinds: map[string]*Summary{}})
		}
		kinds := points[len(points)-1].Kinds
		if kinds[kind] == nil {
			kinds[kind] = newSummary()
		}
		kinds[kind].add(k)
	})
	return points
}

// Measure computes a metric over a run whose load ran in a window, without the time under fault that outside names. Shares
// and latencies cover all that was recorded, also what returned after load had ended; a rate covers the load. ok is false
// where there is nothing to compute it from, as for what never started.
func (l *Log) Measure(m Metric, load Window, outside ...Window) (value float64, ok bool) {
	switch m.Stat {
	case NeverStarted:
		return 0, false
	case Rate:
		return l.rate(m.Kind, load, outside)
	}
	s := newSummary()
	l.each(0, All, outside, func(_ int64, kind string, k *logKind) {
		if m.Kind == "" || m.Kind == kind {
			s.add(k)
		}
	})
	n := float64(s.Operations())
	if n == 0 {
		return 0, false
	}
	switch m.Stat {
	case Errors:
		return float64(s.Errors()) / n, true
	case Refused:
		return float64(s.Outcomes[history.Refused]) / n, true
	case Max:
		return s.Max().Seconds(), true
	case Mean:
		return s.Mean().Seconds(), true
	default:
		return s.Quantile(m.Quantile).Seconds(), true
	}
}

// rate counts answers by whole bins, and time by what of those bins the load covers.
func (l *Log) rate(kind string, load Window, outside []Window) (float64, bool) {
	var answered int64
	first := load.From - load.From%int64(Bin)
	l.each(first, load.To, outside, func(_ int64, is string, k *logKind) {
		if kind == "" || kind == is {
			answered += k.outcomes[history.OK] + k.outcomes[history.Refused]
		}
	})
	var span int64
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for at := first; at < load.To; at += int64(Bin) {
		since := at
		if b := l.bins[at]; b != nil {
			since = b.since
		}
		if !slices.ContainsFunc(outside, func(w Window) bool { return w.touches(at, since) }) {
			span += min(at+int64(Bin), load.To) - max(at, load.From)
		}
	}
	if span <= 0 {
		return 0, false
	}
	return float64(answered) / time.Duration(span).Seconds(), true
}
