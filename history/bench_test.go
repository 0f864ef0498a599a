package history

import (
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// reportCPU reports what an operation costs in processor time, which is what counts where others use the machine too.
func reportCPU(b *testing.B) func() {
	used := func() int64 {
		var u unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

// The cost of an operation on the hot path: Begin and End, on a segment whose pages are present. Near its end the segment
// is begun again, so that neither rotation nor the conversion in the background is measured; BenchmarkSustained does that.
func BenchmarkRecord(b *testing.B) {
	r := benchRecorder(b)
	op := Operation{Call: 1, Return: 2, Kind: Acquire, Outcome: OK, Key: 0, A: 3, B: 4, C: 5}
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		s := r.Begin(&op)
		r.End(s, &op)
		if int(s.index) > len(s.segment.slots)-1000 {
			s.segment.next.Store(0)
		}
	}
}

func BenchmarkRecordParallel(b *testing.B) {
	r := benchRecorder(b)
	var client atomic.Uint32
	b.ReportAllocs()
	defer reportCPU(b)()
	b.RunParallel(func(pb *testing.PB) {
		op := Operation{Call: 1, Return: 2, Kind: Acquire, Outcome: OK, Client: uint16(client.Add(1)), A: 3, B: 4, C: 5}
		for pb.Next() {
			s := r.Begin(&op)
			r.End(s, &op)
			if int(s.index) > len(s.segment.slots)-1000 {
				s.segment.next.Store(0)
			}
		}
	})
}

func benchRecorder(b *testing.B) *Recorder {
	r, err := NewRecorder(b.TempDir(), "w1.1", RecorderOptions{Process: Process{Worker: "w1", Incarnation: 1}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Close() })
	r.following, _ = r.newSegment(nil) // nothing to prepare meanwhile
	return r
}

// What a run can sustain: recording, rotation and conversion to Parquet on the same processors.
func BenchmarkSustained(b *testing.B) {
	r, err := NewRecorder(b.TempDir(), "w1.1", RecorderOptions{Process: Process{Worker: "w1", Incarnation: 1}})
	if err != nil {
		b.Fatal(err)
	}
	key := r.Key("k1")
	var now int64
	defer reportCPU(b)()
	for b.Loop() {
		now++
		op := Operation{Call: now, Return: now + 5, Kind: Acquire, Outcome: OK, Key: key, A: now, B: 4e8, C: now<<8 | 7}
		s := r.Begin(&op)
		r.End(s, &op)
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}
