package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// told reports whether an error says what is wrong with a file, in one of the ways that callers know.
func told(err error) bool {
	return errors.Is(err, ErrTruncated) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrMissing)
}

// FuzzSegment: whatever is in a segment and its names, the reader tells of damage or gives operations that are in order.
// Finish then gives the same.
func FuzzSegment(f *testing.F) {
	_, inside := resultsDir(f)
	r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: w1, SegmentSize: 256})
	must(f, err)
	for call := range int64(6) {
		op := Operation{Kind: Acquire, Call: call, Return: call + 1, Outcome: OK, Key: r.Key("k"), Error: r.Error("e")}
		if s := r.Begin(&op); call != 1 {
			r.End(s, &op)
		}
	}
	r.mutex.Lock()
	segment, err := os.ReadFile(r.last.Load().path)
	must(f, err)
	names, err := os.ReadFile(namesPath(inside, "w1.1"))
	must(f, err)
	r.mutex.Unlock()
	must(f, r.Close())
	binary.LittleEndian.PutUint32(segment[20:], 1) // make it the first part
	binary.LittleEndian.PutUint32(segment[headerChecksum:], checksumHeader(segment, 0))
	f.Add(segment, names)
	f.Add(segment[:100], names)
	f.Add(segment, names[:len(names)-3])
	f.Fuzz(func(t *testing.T, segment, names []byte) {
		dir := t.TempDir()
		must(t, os.WriteFile(segmentPath(dir, "w1.1", 1), segment, 0o644))
		must(t, os.WriteFile(namesPath(dir, "w1.1"), names, 0o644))
		h, err := Load(dir)
		if err != nil {
			return
		}
		for i := range h.Operations {
			if i > 0 && h.Operations[i].Call < h.Operations[i-1].Call || h.Operations[i].Return < h.Operations[i].Call {
				t.Fatalf("operation %d is impossible: %+v", i, h.Operations[i])
			}
		}
		must(t, Finish(dir))
		again, err := Load(dir)
		must(t, err)
		if len(again.Operations) != len(h.Operations) {
			t.Fatalf("%d operations, and %d after Finish", len(h.Operations), len(again.Operations))
		}
	})
}

// FuzzPart: a part that isn't as it was written is told of. Where the fuzzer damages what a checksum covers, the checksum
// is made to fit, so that what is behind it is reached as well.
func FuzzPart(f *testing.F) {
	_, inside := resultsDir(f)
	record(f, inside, "w1.1", RecorderOptions{Process: w1}, 0, 100)
	whole, err := os.ReadFile(partPath(inside, "w1.1", 1))
	must(f, err)
	f.Add(whole, 0, byte(0))
	f.Add(whole, 500, byte(1))
	f.Add(whole[:len(whole)-1], 0, byte(0))
	f.Fuzz(func(t *testing.T, b []byte, at int, xor byte) {
		b = append([]byte(nil), b...)
		if len(b) > tailSize+sealSize+4 && at >= 4 {
			length := int(binary.LittleEndian.Uint32(b[len(b)-tailSize:]))
			if data := len(b) - tailSize - sealSize - length; length >= 0 && data > 4 {
				b[4+at%(data-4)] ^= xor
				sum, err := checksum(bytes.NewReader(b), int64(data))
				must(t, err)
				copy(b[data:], sealOf(sum, b[data+sealSize:len(b)-tailSize]))
			}
		}
		dir := t.TempDir()
		must(t, os.WriteFile(partPath(dir, "w1.1", 1), b, 0o644))
		h, err := Load(dir)
		if err != nil && !told(err) {
			t.Fatalf("wraps no sentinel: %v", err)
		}
		if err == nil && int64(len(h.Operations)) != h.Sources[0].Rows {
			t.Fatalf("%d operations of %d", len(h.Operations), h.Sources[0].Rows)
		}
	})
}

// FuzzEvents: a line of faults.jsonl is an event or is told of.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"line":1,"id":1,"kind":"fault","at_ns":5,"process":-1,"node":-1}` + "\n"))
	f.Add([]byte(`{"id":1,"kind":"fault"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), eventsFile)
		must(t, os.WriteFile(path, b, 0o644))
		events, err := LoadEvents(path)
		if err != nil && !told(err) {
			t.Fatalf("wraps no sentinel: %v", err)
		}
		if err == nil && len(events) == 0 && len(b) > 0 {
			t.Fatalf("%q was read as nothing", b)
		}
	})
}

// FuzzBatch: what comes over the wire is a batch or is refused.
func FuzzBatch(f *testing.F) {
	dir := f.TempDir()
	r, err := NewRecorder(dir, "w1.1", RecorderOptions{Process: w1})
	must(f, err)
	c := r.Cursor()
	op := Operation{Kind: Acquire, Key: r.Key("k")}
	r.Begin(&op)
	b, err := c.Next()
	must(f, err)
	must(f, r.Close())
	body, err := batchDecoder.DecodeAll(b[8:], nil)
	must(f, err)
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		receiver, err := NewReceiver(t.TempDir(), ReceiverOptions{Tap: func(string, *Names, []Update) {}})
		must(t, err)
		_ = receiver.Receive(packBatch(body))
		_ = receiver.Close()
	})
}
