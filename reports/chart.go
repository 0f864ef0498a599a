package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fencepost.dev/history"
)

// chart is one picture of something over time, laid out in pixels; web/parts.html draws it.
type chart struct {
	Title, About          string
	Width, Height         int
	Left, Top             float64
	PlotWidth, PlotHeight float64
	XTicks, YTicks        []tick
	Shades                []bar
	Lines                 []line
	Columns               []bar
}

type line struct {
	Class string
	Path  string // of an SVG path
	Dots  []spot
}

// spot is a point of a line; a gap is an interval in which nothing was measured.
type spot struct {
	X, Y float64
	Gap  bool
}

const (
	chartWidth  = 340
	chartHeight = 168
	chartLeft   = 52
	chartTop    = 12
	chartRight  = 10
	chartBottom = 24
	mostShades  = 80
	mostCharts  = 12 // kinds of operations
)

// axis maps values to pixels of a chart.
type axis struct{ from, to, at, length float64 }

func (a axis) of(v float64) float64 {
	return math.Round((a.at+(v-a.from)/(a.to-a.from)*a.length)*10) / 10
}

// charts draws throughput, and latency for each kind of operation.
func charts(series []Series, faults []history.Event) []*chart {
	from, to, any := extent(series)
	if !any {
		return nil
	}
	all := make([]Series, len(series))
	for i, s := range series {
		all[i] = Series{Kind: s.Kind, Points: thin(s.Points)}
	}
	drawn := []*chart{throughputChart(all, from, to, faults)}
	for _, s := range all[:min(len(all), mostCharts)] {
		if c := latencyChart(s, from, to, faults); c != nil {
			drawn = append(drawn, c)
		}
	}
	return drawn
}

// extent is the time that the series cover.
func extent(series []Series) (from, to int64, any bool) {
	from, to = math.MaxInt64, math.MinInt64
	for _, s := range series {
		for _, p := range s.Points {
			from, to, any = min(from, p.At), max(to, p.At+int64(p.Length)), true
		}
	}
	if any && to <= from {
		to = from + int64(time.Second)
	}
	return from, to, any
}

// newChart lays out the frame, the time axis and the faults.
func newChart(title, about string, from, to int64, faults []history.Event) (*chart, axis) {
	c := &chart{Title: title, About: about, Width: chartWidth, Height: chartHeight, Left: chartLeft, Top: chartTop,
		PlotWidth: chartWidth - chartLeft - chartRight, PlotHeight: chartHeight - chartTop - chartBottom}
	x := axis{float64(from), float64(to), chartLeft, c.PlotWidth}
	step := niceStep(float64(to-from) / 1e9 / 5)
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	for v := math.Ceil(float64(from)/1e9/step) * step; v <= float64(to)/1e9+1e-9; v += step {
		c.XTicks = append(c.XTicks, tick{x.of(v * 1e9), axisNumber(v, decimals) + " s"})
	}
	c.shade(x, from, to, faults)
	return c, x
}

// shade draws when faults were in force. Those that would touch are drawn as one.
func (c *chart) shade(x axis, from, to int64, faults []history.Event) {
	for i := range faults {
		e := &faults[i]
		if e.Kind != history.EventFault || e.At >= to || eventEnd(e, to) <= from {
			continue
		}
		left := x.of(float64(max(e.At, from)))
		width := max(x.of(float64(min(eventEnd(e, to), to)))-left, 1.5)
		if n := len(c.Shades); n > 0 && left <= c.Shades[n-1].X+c.Shades[n-1].Width+0.5 {
			last := &c.Shades[n-1]
			last.Width, last.Title = max(last.Width, left+width-last.X), "several faults"
			continue
		}
		if len(c.Shades) == mostShades {
			return
		}
		c.Shades = append(c.Shades, bar{X: left, Y: chartTop, Width: width, Height: c.PlotHeight,
			Title: fmt.Sprintf("%s of %s at %s", cleanName(e.Fault), cleanName(e.Target), clock(e.At, 3))})
	}
}

func throughputChart(series []Series, from, to int64, faults []history.Event) *chart {
	c, x := newChart("Throughput", "operations per second, all kinds", from, to, faults)
	type sum struct {
		length        time.Duration
		count, errors int64
	}
	sums := map[int64]*sum{}
	var order []int64
	for _, s := range series {
		for _, p := range s.Points {
			if sums[p.At] == nil {
				sums[p.At] = &sum{length: p.Length}
				order = append(order, p.At)
			}
			sums[p.At].count += p.Count
			sums[p.At].errors += p.Errors
		}
	}
	slices.Sort(order)
	per := func(n int64, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 1e-9) }
	top := 1.0
	for _, at := range order {
		top = max(top, per(sums[at].count+sums[at].errors, sums[at].length))
	}
	step := niceStep(top / 4)
	y := axis{0, math.Ceil(top/step) * step, chartTop + c.PlotHeight, -c.PlotHeight}
	for v := 0.0; v <= y.to*1.0001; v += step {
		c.YTicks = append(c.YTicks, tick{y.of(v), significant(v) + "/s"})
	}
	var points []spot
	for _, at := range order {
		s := sums[at]
		middle := x.of(float64(at) + float64(s.length)/2)
		points = append(points, spot{X: middle, Y: y.of(per(s.count, s.length))})
		if s.errors > 0 {
			h := y.of(0) - y.of(per(s.errors, s.length))
			left, right := x.of(float64(at)), x.of(float64(at)+float64(s.length))
			c.Columns = append(c.Columns, bar{X: left, Y: y.of(0) - max(h, 2), Width: max(right-left-1, 2), Height: max(h, 2), Class: "errors",
				Title: fmt.Sprintf("%s from %s on", count(s.errors, "error"), clock(at, 3))})
		}
	}
	c.Lines = append(c.Lines, newLine("count", points))
	return c
}

// latencyChart draws p50 and p99 on a logarithmic scale; nil if nothing was measured.
func latencyChart(s Series, from, to int64, faults []history.Event) *chart {
	lowest, highest := math.Inf(1), 0.0
	for _, p := range s.Points {
		if p.Count > 0 && p.P99 > 0 {
			lowest, highest = min(lowest, max(p.P50, 0.001)), max(highest, p.P99, p.P50)
		}
	}
	if highest == 0 {
		return nil
	}
	c, x := newChart(cleanName(s.Kind), "latency of "+cleanName(s.Kind), from, to, faults)
	low, high := math.Floor(math.Log10(lowest)), math.Ceil(math.Log10(highest)+1e-9)
	if high <= low {
		high = low + 1
	}
	y := axis{low, high, chartTop + c.PlotHeight, -c.PlotHeight}
	for v := low; v <= high; v++ {
		c.YTicks = append(c.YTicks, tick{y.of(v), microseconds(math.Pow(10, v))})
	}
	var p50, p99 []spot
	for _, p := range s.Points {
		middle := x.of(float64(p.At) + float64(p.Length)/2)
		if p.Count == 0 || p.P99 <= 0 {
			p50, p99 = append(p50, spot{Gap: true}), append(p99, spot{Gap: true})
			continue
		}
		p50 = append(p50, spot{X: middle, Y: y.of(math.Log10(max(p.P50, 0.001)))})
		p99 = append(p99, spot{X: middle, Y: y.of(math.Log10(p.P99))})
	}
	c.Lines = append(c.Lines, newLine("p99", p99), newLine("p50", p50))
	return c
}

// newLine draws a line through points, interrupted by gaps. Where there are few points each is a dot too, and a point without
// neighbours always is.
func newLine(class string, points []spot) line {
	l := line{Class: class}
	var path strings.Builder
	for i, p := range points {
		if p.Gap {
			continue
		}
		first := i == 0 || points[i-1].Gap
		last := i+1 == len(points) || points[i+1].Gap
		command := "L"
		if first {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%g %g", command, p.X, p.Y)
		if len(points) <= 30 || first && last {
			l.Dots = append(l.Dots, p)
		}
	}
	l.Path = path.String()
	return l
}
