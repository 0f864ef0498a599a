package reports

import (
	"slices"
	"sort"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

// mostPoints is how many points of a series a chart shows.
const mostPoints = 120

// SeriesOf measures latency and throughput over time from a recorded run, from call to answer, in at most mostPoints
// intervals. Unknown operations count as errors at their call, and have no latency.
func SeriesOf(in *models.Input) []Series {
	if in == nil || len(in.Operations) == 0 {
		return nil
	}
	from, to := in.Operations[0].Call, in.Operations[0].Call
	for i := range in.Operations {
		if op := &in.Operations[i]; op.Flags&history.Synthetic == 0 {
			from, to = min(from, op.Call), max(to, seenAt(op))
		}
	}
	step := int64(niceStep(max(float64(to-from)/60, 50e6)))
	// The last interval takes what is left over, so that it isn't a fraction of the others and its rate means nothing.
	n := max(int((to-from)/step), 1)
	last := time.Duration(to - from - int64(n-1)*step)
	type interval struct {
		latencies []float64
		errors    int64
	}
	kinds := map[history.Kind][]interval{}
	for i := range in.Operations {
		op := &in.Operations[i]
		if op.Flags&history.Synthetic != 0 {
			continue
		}
		if kinds[op.Kind] == nil {
			kinds[op.Kind] = make([]interval, n)
		}
		v := &kinds[op.Kind][min(int((seenAt(op)-from)/step), n-1)]
		switch op.Outcome {
		case history.Unknown:
			v.errors++
			continue
		case history.Failed:
			v.errors++
		}
		v.latencies = append(v.latencies, float64(op.Return-op.Call)/1e3)
	}
	var all []Series
	for kind, intervals := range kinds {
		s := Series{Kind: kind.String()}
		for i := range intervals {
			v := &intervals[i]
			p := Point{At: from + int64(i)*step, Length: time.Duration(step), Count: int64(len(v.latencies)), Errors: v.errors}
			if i == n-1 {
				p.Length = max(last, 1)
			}
			if len(v.latencies) > 0 {
				slices.Sort(v.latencies)
				p.P50, p.P99 = quantile(v.latencies, 0.5), quantile(v.latencies, 0.99)
			}
			s.Points = append(s.Points, p)
		}
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Kind < all[j].Kind })
	return all
}

// seenAt is when an operation counts: at its answer, or, where there was none, at its call.
func seenAt(op *history.Operation) int64 {
	if op.Outcome == history.Unknown || op.Return == models.Unbounded {
		return op.Call
	}
	return op.Return
}

// quantile is the least of the sorted values that at least the share q does not exceed.
func quantile(sorted []float64, q float64) float64 {
	i := int(q*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// thin joins neighbouring points until there are at most mostPoints. The joined p99 is the worst of them, the p50 their
// mean by count: exact ones would need the histograms.
func thin(points []Point) []Point {
	if len(points) <= mostPoints {
		return points
	}
	each := (len(points) + mostPoints - 1) / mostPoints
	var thinned []Point
	for group := range slices.Chunk(points, each) {
		joined := Point{At: group[0].At}
		var weighted float64
		for _, p := range group {
			joined.Length += p.Length
			joined.Count += p.Count
			joined.Errors += p.Errors
			joined.P99 = max(joined.P99, p.P99)
			weighted += p.P50 * float64(p.Count)
		}
		if joined.Count > 0 {
			joined.P50 = weighted / float64(joined.Count)
		}
		thinned = append(thinned, joined)
	}
	return thinned
}
