package load

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"fencepost.dev/history"
)

const ms = time.Millisecond

// run is a second of load: every 10 ms an acquire of 1 ms and a release of 2 ms; from 400 to 600 ms acquires take until 650,
// and every tenth operation outside of that fails.
func run(t *testing.T) *Log {
	r := NewRecorder(1)
	for i := range 100 {
		due := time.Duration(i) * 10 * ms
		outcome := history.OK
		if i%10 == 0 {
			outcome = history.Failed
		}
		returned := due + ms
		if due >= 400*ms && due < 600*ms {
			returned, outcome = 650*ms, history.Unknown
		}
		r.Record(0, operation(history.Acquire, outcome, returned), int64(due))
		r.Record(0, operation(history.Release, history.Refused, returned+2*ms), int64(returned))
	}
	return logOf(t, r)
}

func logOf(t interface{ Fatal(...any) }, r *Recorder) *Log {
	log := NewLog()
	for _, interval := range r.Take(All) {
		if err := log.Add(interval); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func TestMeasure(t *testing.T) {
	log, load := run(t), Window{0, int64(time.Second)}
	fault := Window{int64(400 * ms), int64(595 * ms)}
	for _, c := range []struct {
		metric  string
		outside []Window
		want    float64
	}{
		{"errors", nil, 0.14}, // 20 unknown and 8 failed of 200
		{"acquire errors", nil, 0.28},
		{"refused", nil, 0.5},
		{"release refused", nil, 1},
		{"rate", nil, 172},
		{"acquire rate", nil, 72},
		{"acquire p50", nil, 0.001},
		{"acquire p99", nil, 0.240},
		{"acquire max", nil, 0.250},
		{"release mean", nil, 0.002},
		// Bins 4 and 5 are in the fault; what was due in it returned in bin 6, which so is touched as well.
		{"errors", []Window{fault}, 7. / 140},
		{"acquire max", []Window{fault}, 0.001},
		{"acquire rate", []Window{fault}, 63 / 0.7},
	} {
		m, err := ParseMetric(c.metric)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := log.Measure(m, load, c.outside...)
		if !ok || math.Abs(got-c.want) > c.want/500 {
			t.Errorf("%s outside %v: %v %v, want %v", c.metric, c.outside, got, ok, c.want)
		}
	}
	everything := Window{0, int64(2 * time.Second)}
	for _, metric := range []string{"errors", "acquire p99", "rate"} {
		m, _ := ParseMetric(metric)
		if got, ok := log.Measure(m, load, everything); ok {
			t.Errorf("%s is %v although nothing is left to measure", metric, got)
		}
	}
	if got, ok := log.Measure(Metric{Stat: NeverStarted}, load); ok {
		t.Errorf("of operations, %v never started", got)
	}
	if _, ok := log.Measure(Metric{Kind: "extend", Stat: Max}, load); ok {
		t.Error("an operation that never happened has a latency")
	}
}

func TestSeriesHasGaps(t *testing.T) {
	r := NewRecorder(1)
	for _, at := range []time.Duration{1100 * ms, 1950 * ms, 4000 * ms} {
		r.Record(0, operation(history.Acquire, history.OK, at), int64(at-ms))
	}
	var got []int64
	for _, p := range logOf(t, r).Series(time.Second) {
		count := int64(0)
		if s := p.Kinds["acquire"]; s != nil {
			count = s.Operations()
		}
		got = append(got, p.From/int64(time.Second), count)
	}
	if want := []int64{1, 2, 2, 0, 3, 0, 4, 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDamagedIntervalsAreRefused(t *testing.T) {
	log := NewLog()
	for _, interval := range []Interval{
		{Kinds: map[string]KindInterval{"acquire": {Outcomes: Outcomes{1}, Latency: Latencies{0x80}}}},
		{Kinds: map[string]KindInterval{"acquire": {Outcomes: Outcomes{2}, Latency: Latencies{1, 1}}}},
	} {
		if err := log.Add(interval); err == nil {
			t.Errorf("added %+v", interval)
		}
	}
	if n := log.Total(0, All).Operations(); n != 0 {
		t.Errorf("%d operations", n)
	}
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 345e6, time.UTC)

// What is written can be read back whole.
func TestLogRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRecorder(1)
		for range rapid.IntRange(0, 20).Draw(t, "operations") {
			at := rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "at")
			kind := rapid.SampledFrom([]history.Kind{history.Acquire, history.Release, history.Read}).Draw(t, "kind")
			outcome := history.Outcome(rapid.IntRange(0, 3).Draw(t, "outcome"))
			r.Record(0, &history.Operation{Kind: kind, Outcome: outcome, Return: at}, at-nanoseconds.Draw(t, "latency"))
		}
		log := logOf(t, r)
		var file bytes.Buffer
		if err := log.Write(&file, epoch); err != nil {
			t.Fatal(err)
		}
		back, err := ReadLog(&file)
		if err != nil {
			t.Fatal(err)
		}
		if len(back.bins) != len(log.bins) {
			t.Fatalf("%d bins, were %d", len(back.bins), len(log.bins))
		}
		for at, b := range log.bins {
			if !reflect.DeepEqual(back.bins[at], b) {
				t.Fatalf("bin %d: %+v, was %+v", at, back.bins[at], b)
			}
		}
	})
}

// HdrHistogram's own reader finds the same operations at the same times.
func TestLogIsHdrHistograms(t *testing.T) {
	log := run(t)
	var file bytes.Buffer
	if err := log.Write(&file, epoch); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"#[Histogram log format version 1.3]\n",
		"#[StartTime: 1772366400.345 (seconds since epoch), 2026-03-01T12:00:00Z]\n",
		"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
		"\nTag=acquire,0.600000,0.100000,250.",
	} {
		if !strings.Contains(file.String(), line) {
			t.Errorf("no %q in\n%s", line, file.String())
		}
	}
	reader := hdrhistogram.NewHistogramLogReader(&file)
	counts, longest := map[string]int64{}, map[string]int64{}
	first := int64(math.MaxInt64)
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		counts[h.Tag()] += h.TotalCount()
		longest[h.Tag()] = max(longest[h.Tag()], h.Max())
		first = min(first, h.StartTimeMs())
	}
	if want := map[string]int64{"acquire": 100, "release": 100}; !reflect.DeepEqual(counts, want) {
		t.Errorf("counted %v, want %v", counts, want)
	}
	if got := time.Duration(longest["acquire"]); (got - 250*ms).Abs() > ms {
		t.Errorf("longest acquire %s", got)
	}
	if got := first - epoch.UnixMilli(); got < -1 || got > 1 { // the reader cuts to whole milliseconds
		t.Errorf("the first interval begins %d ms after the epoch", got)
	}
}

// A run of more than a minute has lines of a second.
func TestLongRunsAreLoggedBySeconds(t *testing.T) {
	r := NewRecorder(1)
	for at := range 700 {
		r.Record(0, operation(history.Acquire, history.OK, time.Duration(at)*Bin), int64(time.Duration(at)*Bin-ms))
	}
	log := logOf(t, r)
	var file bytes.Buffer
	if err := log.Write(&file, epoch); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(file.String(), "Tag=acquire"); n != 70 {
		t.Errorf("%d lines", n)
	}
	back, err := ReadLog(&file)
	if err != nil || back.Total(0, All).Outcomes != log.Total(0, All).Outcomes {
		t.Errorf("read back %v: %v", back, err)
	}
}

func TestReadLogNamesTheLine(t *testing.T) {
	_, err := ReadLog(strings.NewReader("#[Histogram log format version 1.3]\nTag=a,0.1,0.1,1.0,HISTFAAAA\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("read with %v", err)
	}
}

func TestParseMetric(t *testing.T) {
	for expression, want := range map[string]Metric{
		"errors":         {Stat: Errors},
		"refused":        {Stat: Refused},
		"acquire rate":   {Kind: "acquire", Stat: Rate},
		"p50":            {Stat: Percentile, Quantile: 0.5},
		"acquire p99":    {Kind: "acquire", Stat: Percentile, Quantile: 0.99},
		" acquire  p999": {Kind: "acquire", Stat: Percentile, Quantile: 0.999},
		"p99.9":          {Stat: Percentile, Quantile: 0.999},
		"start-once max": {Kind: "start-once", Stat: Max},
		"mean":           {Stat: Mean},
		"never-started":  {Stat: NeverStarted},
		"p5":             {Stat: Percentile, Quantile: 0.05},
	} {
		got, err := ParseMetric(expression)
		if err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", expression, got, err, want)
		}
	}
	if m, err := ParseMetric("acquire never-started"); err == nil || !strings.Contains(err.Error(), "never-started alone") {
		t.Errorf("what never started has no kind: %+v %v", m, err)
	}
	for _, expression := range []string{"", "p", "p0", "p00", "pp99", "p99%", "acquire", "acquire p99 max", "Acquire p99", "p99<5ms", "99"} {
		if m, err := ParseMetric(expression); err == nil {
			t.Errorf("%q was read as %+v", expression, m)
		} else if !strings.Contains(err.Error(), "such as p99") {
			t.Errorf("%q: %v doesn't say what to write", expression, err)
		}
	}
}
