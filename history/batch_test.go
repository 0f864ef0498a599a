package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// drain takes all batches that there are.
func drain(t interface {
	Helper()
	Fatal(...any)
}, c *Cursor) [][]byte {
	t.Helper()
	var list [][]byte
	for {
		b, err := c.Next()
		if errors.Is(err, ErrClosed) || b == nil && err == nil {
			return list
		}
		must(t, err)
		list = append(list, b)
	}
}

// What a receiver keeps is what the recorder keeps, whenever batches are taken, also when they are repeated; and if its
// worker dies, what was sent is there.
func TestStreamedIsRecorded(t *testing.T) {
	root := t.TempDir()
	var n atomic.Int64
	fresh := func(t interface {
		Helper()
		Fatal(...any)
	}) (string, string) {
		dir := filepath.Join(root, fmt.Sprint(n.Add(1)))
		must(t, os.MkdirAll(filepath.Join(dir, historyDir), 0o755))
		return dir, filepath.Join(dir, historyDir)
	}
	rapid.Check(t, func(t *rapid.T) {
		_, here := fresh(t)
		dir, there := fresh(t)
		slots := rapid.IntRange(1, 40).Draw(t, "slots")
		r, err := NewRecorder(here, "w1.1", RecorderOptions{Process: w1, SegmentSize: slots * int(operationSize)})
		must(t, err)
		cursor := r.Cursor()
		intern(t, r)
		tapped := map[uint64]Operation{}
		var names Names
		receiver, err := NewReceiver(there, ReceiverOptions{Tap: func(base string, n *Names, updates []Update) {
			names = *n
			for _, u := range updates {
				if old := tapped[u.ID]; old.Commit == Completed {
					t.Fatalf("operation %x is told of after it was completed", u.ID)
				}
				tapped[u.ID] = u.Operation
			}
		}})
		must(t, err)
		var last [][]byte
		dies := rapid.Bool().Draw(t, "dies")
		take := rapid.SliceOfN(rapid.Bool(), 50, 50).Draw(t, "take")
		i := 0
		deliver := func() {
			for _, b := range append(last, drain(t, cursor)...) {
				must(t, receiver.Receive(b))
				last = [][]byte{b} // repeated with the next ones
			}
		}
		want := drawScript(t, len(testKeys)-1, len(testErrors)-1).play(r, func() {
			if i++; take[i%len(take)] {
				deliver()
			}
		})
		if dies {
			deliver()
			must(t, r.Close())
		} else {
			must(t, r.Close())
			deliver()
			if _, err := cursor.Next(); !errors.Is(err, ErrClosed) {
				t.Fatalf("after the last batch: %v", err)
			}
		}
		must(t, receiver.Close())
		h, err := Load(dir)
		must(t, err)
		compare(t, &h.Names, h.Operations, want, readKeys, testErrors)
		if s := h.Sources[0]; !s.Streamed || s.Closed == dies || h.Names.Workers[0] != w1 {
			t.Fatalf("%+v of %+v", s, h.Names.Workers)
		}
		var told []Operation
		for _, op := range tapped {
			told = append(told, op)
		}
		slices.SortFunc(told, func(a, b Operation) int { return int(a.Call - b.Call) })
		compare(t, &names, told, want, readKeys, testErrors)
	})
}

// Clients, rotation and batches at once.
func TestStreamedWhileRecording(t *testing.T) {
	_, here := resultsDir(t)
	dir, there := resultsDir(t)
	r, err := NewRecorder(here, "w1.1", RecorderOptions{Process: w1, SegmentSize: 256 * int(operationSize)})
	must(t, err)
	cursor := r.Cursor()
	receiver, err := NewReceiver(there, ReceiverOptions{})
	must(t, err)
	var clock atomic.Int64
	var clients sync.WaitGroup
	for c := range 4 {
		clients.Go(func() {
			var held Operation
			var hold Slot
			for n := range 3000 {
				op := Operation{Kind: Acquire, Client: uint16(c), A: int64(n), Key: r.Key(fmt.Sprint(n)), Call: clock.Add(1)}
				s := r.Begin(&op)
				if rand.IntN(700) == 0 {
					if hold.segment != nil {
						r.End(hold, &held)
					}
					held, hold = op, s
					held.Outcome, held.Return, held.B = OK, clock.Add(1), 9
					continue
				}
				op.Outcome, op.Return, op.B = OK, clock.Add(1), 9
				r.End(s, &op)
			}
			if hold.segment != nil {
				r.End(hold, &held)
			}
		})
	}
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
		}
		for _, b := range drain(t, cursor) {
			must(t, receiver.Receive(b))
		}
	}
	must(t, r.Close())
	for _, b := range drain(t, cursor) {
		must(t, receiver.Receive(b))
	}
	must(t, receiver.Close())
	h, err := Load(dir)
	must(t, err)
	if len(h.Operations) != 12000 {
		t.Errorf("%d operations came, want 12000", len(h.Operations))
	}
	for _, o := range h.Operations {
		if o.Commit != Completed || o.B != 9 || h.Names.Key(o.Key) != fmt.Sprint(o.A) {
			t.Fatalf("%+v came, with key %q", o, h.Names.Key(o.Key))
		}
	}
}

// A batch that comes too early, is damaged, or belongs to nobody, is refused and changes nothing.
func TestBatchesOutOfOrder(t *testing.T) {
	_, here := resultsDir(t)
	dir, there := resultsDir(t)
	r, err := NewRecorder(here, "w1.1", RecorderOptions{Process: w1, SegmentSize: 512})
	must(t, err)
	cursor := r.Cursor()
	var batches [][]byte
	for call := range int64(4) {
		op := Operation{Kind: Acquire, Call: call, Return: call, Outcome: OK}
		r.End(r.Begin(&op), &op)
		batches = append(batches, drain(t, cursor)...)
	}
	must(t, r.Close())
	batches = append(batches, drain(t, cursor)...)
	receiver, err := NewReceiver(there, ReceiverOptions{})
	must(t, err)
	for _, i := range []int{1, 2} {
		if err := receiver.Receive(batches[i]); !errors.Is(err, ErrOutOfOrder) {
			t.Errorf("batch %d before the first: %v", i, err)
		}
	}
	must(t, receiver.Receive(batches[0]))
	if err := receiver.Receive(batches[2]); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("batch 2 before batch 1: %v", err)
	}
	for n := range batches[1] {
		bad := slices.Clone(batches[1])
		bad[n] ^= 1
		if err := receiver.Receive(bad); !errors.Is(err, errBatch) {
			t.Fatalf("byte %d changed: %v", n, err)
		}
	}
	for _, b := range batches {
		must(t, receiver.Receive(b))
	}
	must(t, receiver.Close())
	h, err := Load(dir)
	must(t, err)
	if len(h.Operations) != 4 || !h.Sources[0].Closed {
		t.Errorf("%d operations, %+v", len(h.Operations), h.Sources[0])
	}
}

func TestCursorUpdates(t *testing.T) {
	_, here := resultsDir(t)
	r, err := NewRecorder(here, "w1.1", RecorderOptions{Process: w1, SegmentSize: 64})
	must(t, err)
	c := r.Cursor()
	first, second := Operation{Kind: Acquire, A: 1}, Operation{Kind: Acquire, A: 2}
	s := r.Begin(&first)
	got, err := c.Updates()
	must(t, err)
	if len(got) != 1 || got[0].Operation.Commit != Invoked {
		t.Fatalf("told %+v", got)
	}
	id := got[0].ID
	for range 5 { // moves the first
		r.End(r.Begin(&second), &second)
	}
	first.Outcome = OK
	r.End(s, &first)
	must(t, r.Close())
	got, err = c.Updates()
	must(t, err)
	i := slices.IndexFunc(got, func(u Update) bool { return u.ID == id })
	if len(got) != 6 || i < 0 || got[i].Operation.Commit != Completed || got[i].Operation.A != 1 {
		t.Errorf("told %+v", got)
	}
	if _, err = c.Updates(); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
