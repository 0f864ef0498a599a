package load

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"fencepost.dev/history"
)

// The interval log, latency.hlog, is HdrHistogram's log format 1.3: a line per kind of operation (its Tag) and interval,
// times in seconds since the run's epoch, which is the log's BaseTime; values in nanoseconds, and the maximum in milliseconds
// as HdrHistogram's own tools have it. Those tools pass over comments, and one of ours before each line says what the
// histogram doesn't: the outcomes, and since when the earliest operation had been due.

// Write writes the interval log of a run whose epoch was at a time of day. Its intervals are Bins in a run of up to a
// minute, else seconds.
func (l *Log) Write(w io.Writer, epoch time.Time) error {
	out := bufio.NewWriter(w)
	hlog := hdrhistogram.NewHistogramLogWriter(out)
	seconds := float64(epoch.UnixMilli()) / 1000
	step := Bin
	if points := l.Series(time.Second); len(points) > 60 {
		step = time.Second
	}
	// bufio keeps the first error for Flush, so those of single lines needn't be looked at.
	_ = hlog.OutputComment("[Latency from when each operation was due, in nanoseconds, of a Fencepost run]")
	_ = hlog.OutputLogFormatVersion()
	_ = hlog.OutputComment(fmt.Sprintf("[StartTime: %.3f (seconds since epoch), %s]", seconds, epoch.UTC().Format(time.RFC3339)))
	_ = hlog.OutputComment(fmt.Sprintf("[BaseTime: %.3f (seconds since epoch)]", seconds))
	_ = hlog.OutputLegend()

	for _, line := range l.lines(step) {
		_ = hlog.OutputComment(line.comment())
		line.latency.SetTag(line.kind)
		line.latency.SetStartTimeMs(time.Duration(line.from).Milliseconds())
		line.latency.SetEndTimeMs(time.Duration(line.from + int64(step)).Milliseconds())
		if err := hlog.OutputIntervalPackedHistogram(line.latency); err != nil {
			return fmt.Errorf("writing the interval log: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the interval log: %w", err)
	}
	return nil
}

// line is one interval of one kind.
type line struct {
	from, since int64
	kind        string
	*Summary
}

// lines adds the log up in steps, by time and kind.
func (l *Log) lines(step time.Duration) (lines []*line) {
	open := map[string]*line{}
	l.mutex.Lock()
	since := make(map[int64]int64, len(l.bins))
	for at, b := range l.bins {
		since[at] = b.since
	}
	l.mutex.Unlock()
	l.each(0, All, nil, func(from int64, kind string, k *logKind) {
		start := from - from%int64(step)
		at, ok := open[kind]
		if !ok || at.from != start {
			at = &line{from: start, since: since[from], kind: kind, Summary: newSummary()}
			open[kind] = at
			lines = append(lines, at)
		}
		at.since = min(at.since, since[from])
		at.add(k)
	})
	return lines
}

func (l *line) comment() string {
	o := l.Outcomes
	return fmt.Sprintf("[Outcomes: unknown=%d ok=%d refused=%d failed=%d since=%d]",
		o[history.Unknown], o[history.OK], o[history.Refused], o[history.Failed], l.since)
}

var (
	outcomesLine = regexp.MustCompile(`^#\[Outcomes: unknown=(\d+) ok=(\d+) refused=(\d+) failed=(\d+) since=(-?\d+)\]$`)
	intervalLine = regexp.MustCompile(`^Tag=([^,]*),([\d.]+),([\d.]+),[\d.]+,(\S+)$`)
)

// ReadLog reads an interval log that Write wrote. What it can't read is an error that names the line.
func ReadLog(r io.Reader) (*Log, error) {
	log := NewLog()
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<22)
	var outcomes []int64
	for number := 1; in.Scan(); number++ {
		text := strings.TrimSpace(in.Text())
		if m := outcomesLine.FindStringSubmatch(text); m != nil {
			outcomes = outcomes[:0]
			for _, digits := range m[1:] {
				n, _ := strconv.ParseInt(digits, 10, 64)
				outcomes = append(outcomes, n)
			}
			continue
		}
		if text == "" || text[0] == '#' || text[0] == '"' {
			continue
		}
		m := intervalLine.FindStringSubmatch(text)
		if m == nil || len(outcomes) == 0 {
			return nil, fmt.Errorf("load: line %d of the interval log is none that Fencepost wrote", number)
		}
		h, err := hdrhistogram.Decode([]byte(m[4]))
		if err != nil {
			return nil, fmt.Errorf("load: line %d of the interval log: %w", number, err)
		}
		seconds, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("load: line %d of the interval log: %w", number, err)
		}
		bins := int64(math.Round(seconds * float64(time.Second) / float64(Bin)))
		interval := Interval{From: bins * int64(Bin), Since: outcomes[4], Kinds: map[string]KindInterval{
			m[1]: {Outcomes: Outcomes(outcomes[:4]), Latency: unfold(h)},
		}}
		if err := log.Add(interval); err != nil {
			return nil, fmt.Errorf("load: line %d of the interval log: %w", number, err)
		}
		outcomes = outcomes[:0]
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("load: reading the interval log: %w", err)
	}
	return log, nil
}
