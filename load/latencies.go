package load

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Range and precision of every histogram: 1 µs to 1 h in nanoseconds, 3 significant digits. What is longer counts as an hour.
const (
	lowest  = int64(time.Microsecond)
	highest = int64(time.Hour)
	digits  = 3
)

// grain is log2 of the finest step that such a histogram tells apart (512 ns), and figures the significant bits that it keeps.
const (
	grain   = 9
	figures = 11
)

// Latencies are the populated buckets of a histogram, for the wire and for the many small histograms of a run's intervals: a
// list of steps from one bucket to the next, in grains, and counts, all as unsigned varints. What was recorded through them
// is exactly what would have been recorded directly.
//
// HdrHistogram's own encoding serves for files. It compresses with zlib, which takes 0.4 ms and 800 KB for each (measured),
// too much for every kind of operation in every worker ten times a second.
type Latencies []byte

// pack makes them of nanoseconds, which it reorders.
func pack(latencies []int64) (packed Latencies) {
	for i, latency := range latencies {
		latency = min(max(latency, 0), highest)
		step := max(grain, bits.Len64(uint64(latency))-figures)
		latencies[i] = latency >> step << step
	}
	slices.Sort(latencies)
	last := int64(0)
	for i := 0; i < len(latencies); {
		value, first := latencies[i], i
		for i < len(latencies) && latencies[i] == value {
			i++
		}
		packed = binary.AppendUvarint(packed, uint64(value-last)>>grain)
		packed = binary.AppendUvarint(packed, uint64(i-first))
		last = value
	}
	return packed
}

var errLatencies = errors.New("load: latencies of an interval are damaged")

// Each calls visit with each value, in nanoseconds, and how often it occurred, from the least up.
func (l Latencies) Each(visit func(value, count int64)) error {
	value := uint64(0)
	for len(l) > 0 {
		step, n := binary.Uvarint(l)
		if n <= 0 {
			return errLatencies
		}
		count, m := binary.Uvarint(l[n:])
		if m <= 0 || count == 0 || count > 1<<40 || step > uint64(highest)>>grain {
			return errLatencies
		}
		l = l[n+m:]
		if value += step << grain; value > uint64(highest) {
			return errLatencies
		}
		visit(int64(value), int64(count))
	}
	return nil
}

// into adds them to a histogram of our range.
func (l Latencies) into(h interface{ RecordValues(v, n int64) error }) error {
	var failed error
	err := l.Each(func(value, count int64) {
		if err := h.RecordValues(value, count); err != nil {
			failed = err
		}
	})
	return errors.Join(err, failed)
}

// unfold takes them from a histogram.
func unfold(h *hdrhistogram.Histogram) (packed Latencies) {
	last := int64(0)
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		packed = binary.AppendUvarint(packed, uint64(bar.From-last)>>grain)
		packed = binary.AppendUvarint(packed, uint64(bar.Count))
		last = bar.From
	}
	return packed
}
