package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// record writes n operations, one a tick from call on, two ticks long.
func record(t testing.TB, inside, base string, o RecorderOptions, call, n int64) {
	r, err := NewRecorder(inside, base, o)
	must(t, err)
	for i := range n {
		op := Operation{Kind: Acquire, Call: call + i, Return: call + i + 2, Outcome: OK, Worker: o.Number, Client: uint16(i % 8),
			Key: r.Key(fmt.Sprint("k", (call+i)%1000)), Error: r.Error(base), A: i, B: 300e6, C: i << 8}
		r.End(r.Begin(&op), &op)
	}
	must(t, r.Close())
}

// Records of several processes are one history: sorted by Call, with one numbering of names, and workers in their places.
func TestRecordsAreMerged(t *testing.T) {
	dir, inside := resultsDir(t)
	second := Process{Worker: "w1", Incarnation: 2}
	record(t, inside, "w1.2", RecorderOptions{Process: second, Number: 3, SegmentSize: 64 * 50}, 40, 100)
	record(t, inside, "w1.1", RecorderOptions{Process: w1, Number: 0, SegmentSize: 64 * 30}, 0, 100)
	h, err := Load(dir)
	must(t, err)
	if len(h.Operations) != 200 || len(h.Names.Workers) != 4 || h.Names.Workers[3] != second || h.Names.Workers[0] != w1 {
		t.Fatalf("%d operations, workers %+v", len(h.Operations), h.Names.Workers)
	}
	for i, o := range h.Operations {
		if i > 0 && o.Call < h.Operations[i-1].Call {
			t.Fatalf("operation %d is not in order", i)
		}
		base := map[uint16]string{0: "w1.1", 3: "w1.2"}[o.Worker]
		if h.Names.Key(o.Key) != fmt.Sprint("k", o.Call) || h.Names.Err(o.Error) != base {
			t.Fatalf("%+v has key %q and error %q", o, h.Names.Key(o.Key), h.Names.Err(o.Error))
		}
	}
	if got := h.Names.ClientName(&h.Operations[199]); got != "w1.2/c3" {
		t.Errorf("the last client is called %s", got)
	}

	record(t, inside, "w9.1", RecorderOptions{Process: Process{Worker: "w9"}, Number: 3}, 0, 1)
	if _, err := Load(dir); !errors.Is(err, ErrCorrupt) {
		t.Errorf("two records of process 3: %v", err)
	}
}

func TestResourceLogNamesItsProcesses(t *testing.T) {
	dir := t.TempDir()
	w, err := NewRecorder(dir, ResourceBase, RecorderOptions{SegmentSize: 64 * 4})
	must(t, err)
	w.SetProcess(2, Process{Worker: "w3", Incarnation: 1, ClockError: 9})
	w.SetProcess(2, Process{Worker: "w3", Incarnation: 1, ClockError: 5})
	for n := range int64(18) {
		op := Operation{Kind: Read, Call: n / 4, Return: n / 4, Worker: 2, Outcome: OK, Key: w.Key(fmt.Sprint("k", n%2))}
		op.SetSequence(n/2 + 1)
		w.End(w.Begin(&op), &op)
	}
	must(t, w.Close())
	h, err := Load(dir)
	must(t, err)
	if len(h.Resource) != 18 || len(h.Operations) != 0 || h.Names.Workers[2] != (Process{"w3", 1, 9}) {
		t.Fatalf("%d attempts by %+v", len(h.Resource), h.Names.Workers)
	}
	for i, o := range h.Resource {
		if o.Sequence() != int64(i%9+1) {
			t.Errorf("attempt %d on %s is number %d", i%9+1, h.Names.Key(o.Key), o.Sequence())
		}
	}
	must(t, Finish(dir))
	if rest, _ := os.ReadDir(dir); len(rest) != 1 {
		t.Errorf("beside resource.parquet: %v", rest)
	}
}

// Reading a long history takes no more memory than a short one.
func TestReadingIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("records two million operations")
	}
	dir, inside := resultsDir(t)
	record(t, inside, "w1.1", RecorderOptions{Process: w1}, 0, 1_000_000)
	record(t, inside, "w2.1", RecorderOptions{Process: w1, Number: 1}, 3, 1_000_000)
	r, err := Open(dir)
	must(t, err)
	var n int
	var most uint64
	for _, err := range r.All() {
		must(t, err)
		if n++; n%250_000 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	if n != 2_000_000 {
		t.Errorf("%d operations", n)
	}
	if most > 40<<20 {
		t.Errorf("%d MB in use while reading 122 MB of operations", most>>20)
	}
	t.Logf("at most %d MB in use", most>>20)
}

func BenchmarkRead(b *testing.B) {
	dir, inside := resultsDir(b)
	record(b, inside, "w1.1", RecorderOptions{Process: w1}, 0, 500_000)
	record(b, inside, "w2.1", RecorderOptions{Process: w1, Number: 1}, 3, 500_000)
	parts, _ := filepath.Glob(filepath.Join(inside, "*.parquet"))
	var size int64
	for _, p := range parts {
		info, err := os.Stat(p)
		must(b, err)
		size += info.Size()
	}
	defer reportCPU(b)()
	n := 0
	for b.Loop() {
		r, err := Open(dir)
		must(b, err)
		n = 0
		for _, err := range r.All() {
			must(b, err)
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/operation")
	b.ReportMetric(float64(size)/float64(n), "bytes/operation")
}
