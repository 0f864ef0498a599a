package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// died copies what a recorder has on disk at this moment, as it would be had its process been killed now.
func died(t interface{ Fatal(...any) }, r *Recorder, to string) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r.mutex.Lock()
		if len(r.queue) == 0 { // so that no conversion is under way
			break
		}
		r.mutex.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("the recorder goes on converting")
		}
	}
	defer r.mutex.Unlock()
	if err := os.CopyFS(to, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
}

// Whatever of a dead recorder's batches came, the rest makes the record whole, and what its sender had still on its way is
// refused. Where a segment became Parquet too early the rest is not given, and the record stays open.
func TestRestMakesWhole(t *testing.T) {
	root := t.TempDir()
	var n, whole, refused atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		fresh := func() string { return filepath.Join(root, fmt.Sprint(n.Add(1))) }
		here, left, dir := fresh(), fresh(), fresh()
		there := filepath.Join(dir, historyDir)
		must(t, errors.Join(os.MkdirAll(here, 0o755), os.MkdirAll(there, 0o755)))
		slots := rapid.IntRange(4, 100).Draw(t, "slots")
		r, err := NewRecorder(here, "w1.1", RecorderOptions{Process: w1, SegmentSize: slots * int(operationSize)})
		must(t, err)
		cursor := r.Cursor()
		intern(t, r)
		receiver, err := NewReceiver(there, ReceiverOptions{})
		must(t, err)
		until := rapid.IntRange(0, 60).Draw(t, "until")
		every := rapid.IntRange(1, 10).Draw(t, "every")
		i := 0
		want := drawScript(t, len(testKeys)-1, len(testErrors)-1).play(r, func() {
			if i++; i <= until && i%every == 0 {
				for _, b := range drain(t, cursor) {
					must(t, receiver.Receive(b))
				}
			}
		})
		died(t, r, left)
		late := drain(t, cursor)
		lack, err := receiver.Lack("w1.1")
		must(t, err)
		var failed error
		for b, err := range Rest(left, "w1.1", lack) {
			if failed = err; err == nil {
				must(t, receiver.Receive(b))
				must(t, receiver.Receive(b)) // the answer may be lost
			}
		}
		for _, b := range late {
			if err := receiver.Receive(b); !errors.Is(err, ErrOutOfOrder) {
				t.Fatalf("a batch of the dead comes late: %v", err)
			}
		}
		must(t, r.Close())
		must(t, receiver.Close())
		if failed != nil {
			refused.Add(1)
			if h, err := Load(dir); err == nil && h.Sources[0].Closed {
				t.Fatalf("closed, though %v", failed)
			}
			return
		}
		whole.Add(1)
		h, err := Load(dir)
		must(t, err)
		compare(t, &h.Names, h.Operations, want, readKeys, testErrors)
		if s := h.Sources[0]; !s.Streamed || !s.Closed || h.Names.Workers[0] != w1 {
			t.Fatalf("%+v of %+v", s, h.Names.Workers)
		}
	})
	t.Logf("%d whole, %d refused", whole.Load(), refused.Load())
	if whole.Load() == 0 {
		t.Error("the rest made no record whole")
	}
}
