package load

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Metric is something a run is measured by: what thresholds bound, and objectives.
//
//	errors          share of operations that failed or are unknown
//	refused         share of operations that were refused
//	never-started   share of arrivals that still waited for a free client when load ended
//	rate            answered operations (ok and refused) per second
//	p50 p99 p99.9 p999 max mean   latency from when each operation was due
//	acquire p99     any of these for one kind of operation
type Metric struct {
	Kind     string // of operation; empty: all
	Stat     Stat
	Quantile float64 // of a Percentile: 0.99
}

// Stat is what is computed.
type Stat uint8

const (
	Errors Stat = iota
	Refused
	Rate
	Percentile
	Max
	Mean
	NeverStarted // of arrivals, not of operations: a Log doesn't know it
)

var stats = map[string]Stat{"errors": Errors, "refused": Refused, "rate": Rate, "max": Max, "mean": Mean, "never-started": NeverStarted}

// Unit is what a metric is measured in: "share", "s" or "per_s".
func (m Metric) Unit() string {
	switch m.Stat {
	case Errors, Refused, NeverStarted:
		return "share"
	case Rate:
		return "per_s"
	}
	return "s"
}

// Latency reports whether the metric is one: of what was started.
func (m Metric) Latency() bool { return m.Stat == Percentile || m.Stat == Max || m.Stat == Mean }

var percentile = regexp.MustCompile(`^p(\d{1,2})(?:\.?(\d{1,6}))?$`)
var kindName = regexp.MustCompile(`^[a-z][a-z-]*$`)

// ParseMetric reads an expression such as "errors", "p99" or "acquire p99.9". It doesn't know which kinds of operation there
// are.
func ParseMetric(expression string) (Metric, error) {
	words := strings.Fields(expression)
	var m Metric
	bad := fmt.Errorf("%q is not a metric; write errors, refused, never-started, rate, max, mean or a percentile such as p99, "+
		"with a kind of operation before it or none: \"acquire p99\"", expression)
	switch len(words) {
	case 2:
		if m.Kind = words[0]; !kindName.MatchString(m.Kind) {
			return Metric{}, bad
		}
	case 1:
	default:
		return Metric{}, bad
	}
	word := words[len(words)-1]
	if stat, ok := stats[word]; ok {
		if stat == NeverStarted && m.Kind != "" {
			return Metric{}, fmt.Errorf("%q is not a metric: what never started is a turn, and not yet an operation; write never-started alone", expression)
		}
		m.Stat = stat
		return m, nil
	}
	digits := percentile.FindStringSubmatch(word)
	if digits == nil {
		return Metric{}, bad
	}
	if len(digits[1]) == 1 { // p5 is p05
		digits[1] = "0" + digits[1]
	}
	share, err := strconv.ParseFloat("0."+digits[1]+digits[2], 64) // read, not divided: so 0.999 is the float that one writes
	if err != nil || share <= 0 {
		return Metric{}, bad
	}
	m.Stat, m.Quantile = Percentile, share
	return m, nil
}
