package harness

import (
	"time"

	"fencepost.dev/load"
	"fencepost.dev/reports"
)

// seriesSteps bounds how many points a series has.
const seriesSteps = 120

// seriesOf gives the reports latency and throughput over time.
func seriesOf(l *load.Log, length time.Duration) []reports.Series {
	if l == nil {
		return nil
	}
	step := load.Bin * max(1, (length/seriesSteps+load.Bin-1)/load.Bin)
	points := l.Series(step)
	kinds := map[string]bool{}
	for _, p := range points {
		for kind := range p.Kinds {
			kinds[kind] = true
		}
	}
	var series []reports.Series
	for _, kind := range sortedNames(kinds) {
		s := reports.Series{Kind: kind}
		for _, p := range points {
			point := reports.Point{At: p.From, Length: step}
			if sum := p.Kinds[kind]; sum != nil {
				point.Count, point.Errors = sum.Operations(), sum.Errors()
				point.P50, point.P99 = float64(sum.Quantile(.5))/1e3, float64(sum.Quantile(.99))/1e3
			}
			s.Points = append(s.Points, point)
		}
		series = append(series, s)
	}
	return series
}
