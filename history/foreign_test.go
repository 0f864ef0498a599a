package history

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xitongsys/parquet-go/parquet"
	"github.com/xitongsys/parquet-go/reader"
	foreign "github.com/xitongsys/parquet-go/source"
)

// A Parquet library that shares no code with the one that writes parts reads the same in them: the promise that a history
// is readable without us. It knows nothing of the seal before the footer.
func TestAnotherLibraryReadsIt(t *testing.T) {
	_, inside := resultsDir(t)
	r, err := NewRecorder(inside, "w1.2", RecorderOptions{Process: Process{Worker: "w1", Incarnation: 2}, Number: 3})
	must(t, err)
	r.SetClockError(70_000)
	var want []Operation
	for i := range int64(3000) {
		op := Operation{
			Call: 1000 + i*37, Return: 1000 + i*37 + i%50, A: i, B: 300_000_000, C: i << 40, D: -i, Key: r.Key(fmt.Sprint("k", i%17)),
			Worker: 3, Client: uint16(i % 8), Node: uint16(i % 2), Kind: []Kind{Acquire, Release, Write}[i%3], Outcome: Outcome(i % 4), Flags: Flags(i % 3),
		}
		if op.Outcome != OK {
			op.Error = r.Error("i/o timeout")
		}
		if i%100 == 7 {
			op.Node = NoNode
		}
		r.End(r.Begin(&op), &op)
		want = append(want, op)
	}
	lost := Operation{Call: 500_000, Kind: Extend, Worker: 3, Node: NoNode}
	r.Begin(&lost)
	lost.Return = lost.Call // nothing is later
	want = append(want, lost)
	must(t, r.Close())

	f, err := os.Open(partPath(inside, "w1.2", 1))
	must(t, err)
	defer f.Close()
	p, err := reader.NewParquetColumnReader(&openFile{f}, 1)
	must(t, err)
	defer p.ReadStop()
	if n := p.GetNumRows(); n != int64(len(want)) {
		t.Fatalf("it finds %d rows, want %d", n, len(want))
	}
	columns := map[string][]any{}
	for _, c := range []string{"call_ns", "return_ns", "primitive", "kind", "outcome", "key", "error", "worker", "incarnation", "process", "client", "node", "a", "b", "c", "d", "flags", "completed"} {
		values, _, _, err := p.ReadColumnByPath("row\x01"+c, p.GetNumRows())
		if err != nil || len(values) != len(want) {
			t.Fatalf("column %s: %d values, %v", c, len(values), err)
		}
		columns[c] = values
	}
	for i, o := range want {
		node, fault := int32(o.Node), "i/o timeout"
		if o.Node == NoNode {
			node = -1
		}
		key := fmt.Sprint("k", i%17)
		if o.Kind == Extend {
			key, fault = "", ""
		}
		if o.Outcome == OK {
			fault = ""
		}
		should := map[string]any{
			"call_ns": o.Call, "return_ns": o.Return, "primitive": o.Kind.Primitive(), "kind": o.Kind.String(), "outcome": o.Outcome.String(),
			"key": key, "error": fault, "worker": "w1", "incarnation": int32(2), "process": int32(3), "client": int32(o.Client), "node": node,
			"a": o.A, "b": o.B, "c": o.C, "d": o.D, "flags": int32(o.Flags), "completed": o.Kind != Extend,
		}
		for c, v := range should {
			if columns[c][i] != v {
				t.Fatalf("row %d: %s is %v, want %v", i, c, columns[c][i], v)
			}
		}
	}
	var meta struct {
		Worker      string
		Incarnation int
		ClockError  int64 `json:"clock_error_ns"`
		Format      int
	}
	at := slices.IndexFunc(p.Footer.KeyValueMetadata, func(kv *parquet.KeyValue) bool { return kv.Key == metadataKey })
	if at < 0 {
		t.Fatal("it finds no metadata")
	}
	must(t, json.Unmarshal([]byte(*p.Footer.KeyValueMetadata[at].Value), &meta))
	if meta.Worker != "w1" || meta.Incarnation != 2 || meta.ClockError != 70_000 || meta.Format != formatVersion {
		t.Errorf("it finds %+v", meta)
	}
}

// openFile is a file as that library wants it.
type openFile struct{ *os.File }

func (f *openFile) Open(name string) (foreign.ParquetFile, error) {
	if name == "" {
		name = f.Name()
	}
	file, err := os.Open(filepath.Clean(name))
	return &openFile{file}, err
}

func (f *openFile) Create(string) (foreign.ParquetFile, error) { return nil, io.ErrClosedPipe }
