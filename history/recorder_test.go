package history

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawOperation makes what a client records, with a Call that does not precede now.
func drawOperation(t *rapid.T, now int64, keys, errs int) Operation {
	call := now + rapid.Int64Range(0, 3).Draw(t, "call")
	n := rapid.Int64()
	return Operation{
		Call: call, Return: call + rapid.Int64Range(0, 1000).Draw(t, "return"),
		A: n.Draw(t, "a"), B: n.Draw(t, "b"), C: n.Draw(t, "c"), D: n.Draw(t, "d"),
		Key: uint32(rapid.IntRange(0, keys).Draw(t, "key")), Error: uint16(rapid.IntRange(0, errs).Draw(t, "error")),
		Worker: 0, Client: rapid.Uint16().Draw(t, "client"), Node: rapid.Uint16().Draw(t, "node"),
		Kind:    rapid.SampledFrom([]Kind{Acquire, Extend, Release, Lost, Read, Write}).Draw(t, "kind"),
		Outcome: rapid.SampledFrom([]Outcome{Unknown, OK, Refused, Failed}).Draw(t, "outcome"),
		Flags:   Flags(rapid.IntRange(0, 3).Draw(t, "flags")),
	}
}

// script is one way in which clients may begin and end operations.
type script struct {
	operations []Operation
	steps      []int // i: operation i begins; -1-i: it ends
	pause      []bool
}

func drawScript(t *rapid.T, keys, errs int) script {
	var s script
	var open []int
	now := rapid.Int64Range(-5, 5).Draw(t, "start")
	for range rapid.IntRange(0, 120).Draw(t, "steps") {
		if len(open) > 0 && rapid.Bool().Draw(t, "end") {
			i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			s.steps = append(s.steps, -1-open[i])
			open = slices.Delete(open, i, i+1)
		} else {
			op := drawOperation(t, now, keys, errs)
			now = op.Call
			open = append(open, len(s.operations))
			s.steps = append(s.steps, len(s.operations))
			s.operations = append(s.operations, op)
		}
		s.pause = append(s.pause, rapid.IntRange(0, 30).Draw(t, "pause") == 0)
	}
	return s
}

// play records a script, and gives what a reader must find: the operations by Call, open ones without their answer.
func (s script) play(r *Recorder, after func()) []Operation {
	slots := make([]Slot, len(s.operations))
	want := slices.Clone(s.operations)
	for i := range want {
		want[i].Commit = Invoked
	}
	for n, step := range s.steps {
		if step >= 0 {
			op := s.operations[step]
			op.Return, op.Outcome, op.Error = 0, OK, 0
			slots[step] = r.Begin(&op)
		} else {
			i := -1 - step
			r.End(slots[i], &s.operations[i])
			want[i].Commit = Completed
		}
		if s.pause[n] {
			time.Sleep(2 * settleEvery)
		}
		if after != nil {
			after()
		}
	}
	for i := range want {
		if want[i].Commit == Invoked {
			want[i].Outcome, want[i].Error = Unknown, 0
		}
	}
	return want
}

// copyStill copies a results directory while its recorder stands still.
func copyStill(t interface {
	Helper()
	Fatal(...any)
}, r *Recorder, dir, to string) {
	for {
		r.mutex.Lock()
		if len(r.queue) == 0 {
			break
		}
		r.mutex.Unlock()
		time.Sleep(time.Millisecond)
	}
	defer r.mutex.Unlock()
	must(t, os.CopyFS(to, os.DirFS(dir)))
}

// compare ignores the Return of open operations, which tests of their own look at.
func compare(t interface{ Fatalf(string, ...any) }, names *Names, got, want []Operation, keys, errs []string) {
	byCall := func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) }
	if !slices.IsSortedFunc(got, byCall) {
		t.Fatalf("operations are not sorted by Call")
	}
	show := func(list []Operation, key func(Operation) (string, string)) []string {
		var out []string
		for _, o := range list {
			k, e := key(o)
			if o.Commit == Invoked {
				o.Return = 0
			}
			o.Key, o.Error = 0, 0
			out = append(out, fmt.Sprintf("%+v %q %q", o, k, e))
		}
		slices.Sort(out)
		return out
	}
	g := show(got, func(o Operation) (string, string) { return names.Key(o.Key), names.Err(o.Error) })
	w := show(want, func(o Operation) (string, string) { return keys[o.Key], errs[o.Error] })
	if len(g) != len(w) {
		t.Fatalf("%d operations were recorded and %d read", len(w), len(g))
	}
	for i := range g {
		if g[i] != w[i] {
			t.Fatalf("recorded %s\n    read %s", w[i], g[i])
		}
	}
}

var (
	testKeys   = []string{"", "k1", "ключ", "k\x00zero", "not \xff UTF-8"}
	readKeys   = []string{"", "k1", "ключ", "k\x00zero", `"not \xff UTF-8"`}
	testErrors = []string{"", "i/o timeout", "read: connection reset"}
)

// intern gives testKeys and testErrors to a recorder, which must number them as they are numbered here.
func intern(t interface{ Fatalf(string, ...any) }, r *Recorder) {
	for i, k := range testKeys {
		if got := r.Key(k); got != uint32(i) {
			t.Fatalf("key %d has number %d", i, got)
		}
	}
	for i, e := range testErrors {
		if got := r.Error(e); got != uint16(i) {
			t.Fatalf("error %d has number %d", i, got)
		}
	}
}

// What is recorded is read back equal, whatever the segments' size and the order in which operations begin and end, from
// the segments as they are after SIGKILL, after Finish, and after Close.
func TestRecordedIsRead(t *testing.T) {
	root := t.TempDir()
	var n atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		dir := filepath.Join(root, fmt.Sprint(n.Add(1)))
		inside := filepath.Join(dir, historyDir)
		must(t, os.MkdirAll(inside, 0o755))
		slots := rapid.IntRange(1, 40).Draw(t, "slots")
		r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: w1, SegmentSize: slots * int(operationSize)})
		must(t, err)
		intern(t, r)
		script := drawScript(t, len(testKeys)-1, len(testErrors)-1)
		want := script.play(r, func() {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			if r.draining != nil && r.following != nil {
				t.Fatalf("three segments are mapped")
			}
		})
		must(t, r.Err())

		// As a killed process leaves it: a copy, in which nothing was closed.
		killed := filepath.Join(root, fmt.Sprint(n.Add(1)))
		copyStill(t, r, dir, killed)
		h, err := Load(killed)
		must(t, err)
		compare(t, &h.Names, h.Operations, want, readKeys, testErrors)
		must(t, Finish(killed))
		h, err = Load(killed)
		must(t, err)
		compare(t, &h.Names, h.Operations, want, readKeys, testErrors)
		if h.Sources[0].Closed {
			t.Fatalf("a record that was not closed says that it was")
		}

		must(t, r.Close())
		must(t, Finish(dir))
		h, err = Load(dir)
		must(t, err)
		compare(t, &h.Names, h.Operations, want, readKeys, testErrors)
		if !h.Sources[0].Closed || h.Names.Workers[0] != w1 {
			t.Fatalf("%+v of %+v", h.Sources[0], h.Names.Workers)
		}
		left, _ := filepath.Glob(filepath.Join(inside, "*[^t]"))
		if len(left) > 0 {
			t.Fatalf("Close left %v", left)
		}
	})
}

// Many clients at once, segments far too small, and some operations that stay open through many of them.
func TestConcurrentClients(t *testing.T) {
	dir, inside := resultsDir(t)
	r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: w1, SegmentSize: 256 * int(operationSize)})
	must(t, err)
	const clients, each = 8, 5000
	var clock atomic.Int64
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			held := Operation{Kind: Extend, Client: uint16(c), Call: clock.Add(1)}
			hold := r.Begin(&held)
			for n := range each {
				op := Operation{Kind: Acquire, Client: uint16(c), A: int64(n), Key: r.Key(fmt.Sprint("k", n%50)), Call: clock.Add(1)}
				s := r.Begin(&op)
				op.B, op.Outcome, op.Return = int64(n)*7, OK, clock.Add(1)
				r.End(s, &op)
				if rand.IntN(1500) == 0 {
					held.Outcome, held.Return = OK, clock.Add(1)
					r.End(hold, &held)
					held = Operation{Kind: Extend, Client: uint16(c), Call: clock.Add(1)}
					hold = r.Begin(&held)
				}
			}
			held.Outcome, held.Return = OK, clock.Add(1)
			r.End(hold, &held)
		})
	}
	wg.Wait()
	must(t, r.Close())
	if len(r.moved) > 0 {
		t.Errorf("%d moved operations are still remembered", len(r.moved))
	}
	h, err := Load(dir)
	must(t, err)
	next := map[uint16]int64{}
	for _, o := range h.Operations {
		if o.Commit != Completed || o.Outcome != OK {
			t.Fatalf("lost its answer: %+v", o)
		}
		if o.Kind == Acquire {
			if o.A != next[o.Client] || o.B != o.A*7 || h.Names.Key(o.Key) != fmt.Sprint("k", o.A%50) {
				t.Fatalf("client %d: read %+v, want number %d", o.Client, o, next[o.Client])
			}
			next[o.Client]++
		}
	}
	for c := range clients {
		if next[uint16(c)] != each {
			t.Errorf("client %d: %d operations read, want %d", c, next[uint16(c)], each)
		}
	}
}

// A full disk ends recording with an error, and a count of what is missing; what had begun is completed.
func TestDiskFull(t *testing.T) {
	dir, inside := resultsDir(t)
	segments := 0
	r, err := newRecorder(inside, "w1.1", RecorderOptions{Process: w1, SegmentSize: 4 * int(operationSize)}, func(f *os.File, size int64) error {
		if segments++; segments > 2 {
			return errors.New("no space left on device")
		}
		return allocate(f, size)
	})
	must(t, err)
	var slots []Slot
	op := Operation{Kind: Acquire, Call: 1, Return: 2, Outcome: OK}
	for range 13 {
		slots = append(slots, r.Begin(&op))
	}
	if r.Dropped() != 5 || r.Err() == nil {
		t.Fatalf("two segments of 4 and 13 operations: %d dropped, %v", r.Dropped(), r.Err())
	}
	for _, s := range slots {
		r.End(s, &op)
	}
	killed := t.TempDir()
	must(t, os.CopyFS(killed, os.DirFS(dir)))
	if err := r.Close(); err == nil {
		t.Error("Close does not say what recording met")
	}
	for _, d := range []string{dir, killed} {
		h, err := Load(d)
		must(t, err)
		if len(h.Operations) != 8 || h.Sources[0].Dropped != 5 || h.Sources[0].Error == "" {
			t.Errorf("%d operations read, and %+v", len(h.Operations), h.Sources[0])
		}
		for _, o := range h.Operations {
			if o.Commit != Completed {
				t.Errorf("%+v has lost its answer", o)
			}
		}
	}
}

// A name that can't be written must not turn operations into ones without a key.
func TestNameThatCannotBeWritten(t *testing.T) {
	_, inside := resultsDir(t)
	r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: w1})
	must(t, err)
	writable := r.names.file
	if r.names.file, err = os.Open(writable.Name()); err != nil {
		t.Fatal(err)
	}
	op := Operation{Kind: Acquire, Key: r.Key("k")}
	r.Begin(&op)
	if r.Dropped() != 1 || r.Err() == nil {
		t.Errorf("%d dropped, %v", r.Dropped(), r.Err())
	}
	r.names.file.Close()
	r.names.file = writable
	if r.Close() == nil {
		t.Error("Close does not say what recording met")
	}
}

func TestErrorsAreCapped(t *testing.T) {
	_, inside := resultsDir(t)
	r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: w1})
	must(t, err)
	for i := range maxErrors - 1 {
		r.Error(fmt.Sprint("error ", i))
	}
	a, b := r.Error("one more"), r.Error("and another")
	if a != b || r.Error(OtherErrors) != a || r.Error("error 7") != 8 {
		t.Errorf("errors beyond the cap have numbers %d and %d", a, b)
	}
	must(t, r.Close())
}

func TestBaseIsRecordedOnce(t *testing.T) {
	_, inside := resultsDir(t)
	r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: w1})
	must(t, err)
	defer r.Close()
	if _, err := NewRecorder(inside, "w1.1", RecorderOptions{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second recorder of the same name: %v", err)
	}
	if _, err := NewRecorder(inside, "../w1", RecorderOptions{}); err == nil {
		t.Error("a name with a slash was taken")
	}
}

func TestClockErrorIsTheWidest(t *testing.T) {
	dir, inside := resultsDir(t)
	r, err := NewRecorder(inside, "w2.3", RecorderOptions{Process: Process{Worker: "w2", Incarnation: 3}, Number: 4})
	must(t, err)
	r.SetClockError(70_000)
	r.SetClockError(50_000)
	must(t, r.Close())
	h, err := Load(dir)
	must(t, err)
	want := Process{Worker: "w2", Incarnation: 3, ClockError: 70_000}
	if len(h.Names.Workers) != 5 || h.Names.Workers[4] != want {
		t.Errorf("workers are %+v, want number 4 to be %+v", h.Names.Workers, want)
	}
}

// Open operations of a record that is closed, or whose process died, are Unknown from then on.
func TestReturnOfTheUnanswered(t *testing.T) {
	for _, test := range []struct {
		name string
		died int64
		want int64
	}{
		{"at the greatest time in the record", 0, 900},
		{"when the process died", 5000, 5000},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, inside := resultsDir(t)
			r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: w1, Number: 2, SegmentSize: 128})
			must(t, err)
			lost := Operation{Kind: Acquire, Call: 100}
			r.Begin(&lost)
			for call := int64(101); call < 120; call++ {
				op := Operation{Kind: Acquire, Call: call, Return: call * 900 / 119, Outcome: OK}
				op.Return = max(op.Return, call)
				if call == 119 {
					op.Return = 900
				}
				r.End(r.Begin(&op), &op)
			}
			killed := t.TempDir()
			copyStill(t, r, dir, killed)
			must(t, r.Close())
			if test.died > 0 {
				log, err := NewEventLog(filepath.Join(killed, eventsFile), "")
				must(t, err)
				_, err = log.Append(Event{Kind: EventWorkerDied, At: test.died, Process: 2})
				must(t, err)
				must(t, log.Close())
			}
			must(t, Finish(killed))
			h, err := Load(killed)
			must(t, err)
			if o := h.Operations[0]; o.Call != 100 || o.Outcome != Unknown || o.Return != test.want {
				t.Errorf("read %+v, want it unknown, returned at %d", o, test.want)
			}
		})
	}
}
