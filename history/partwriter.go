package history

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// partCodec is shared, as its encoders are costly to make.
var partCodec = &zstd.Codec{Level: zstd.SpeedFastest}

const (
	rowsPerGroup = 1 << 18
	rowsPerBatch = 1 << 12
	pageBytes    = 64 << 10
)

// partWriter writes one part. Rows come sorted by Call.
type partWriter struct {
	path   string
	file   *os.File
	w      *parquet.GenericWriter[row]
	values [columnCount][]parquet.Value
	names  *nameTable
	meta   partMetadata
	inRow  int

	keys, errors []parquet.Value // by number, made when first used
	kinds        [256][2]parquet.Value
	outcomes     [len(outcomeNames)]parquet.Value
	workers      map[uint16]parquet.Value
}

// newPartWriter begins a part under a temporary name beside path. The caller calls finish or abandon.
func newPartWriter(path string, names *nameTable, meta partMetadata) (*partWriter, error) {
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	p := &partWriter{path: path, file: f, names: names, meta: meta, workers: map[uint16]parquet.Value{}}
	p.w = parquet.NewGenericWriter[row](f, partSchema,
		parquet.Compression(partCodec),
		parquet.PageBufferSize(pageBytes),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("call_ns"))),
		parquet.CreatedBy("fencepost", fmt.Sprint(formatVersion), ""),
	)
	for c := range p.values {
		p.values[c] = make([]parquet.Value, 0, rowsPerBatch)
	}
	return p, nil
}

func text(s string, column int) parquet.Value {
	return parquet.ByteArrayValue([]byte(s)).Level(0, 0, column)
}

func long(n int64, column int) parquet.Value  { return parquet.Int64Value(n).Level(0, 0, column) }
func short(n int32, column int) parquet.Value { return parquet.Int32Value(n).Level(0, 0, column) }

// write adds one operation, which judge has passed.
func (p *partWriter) write(op *Operation) error {
	v := &p.values
	if p.meta.Rows == 0 {
		p.meta.First = op.Call
	}
	p.meta.Rows++
	// Names may have been added since the last operation.
	p.keys = grow(p.keys, len(p.names.keys))
	p.errors = grow(p.errors, len(p.names.errors))
	if p.keys[op.Key].IsNull() {
		p.keys[op.Key] = text(p.names.keys[op.Key], columnKey)
	}
	if p.errors[op.Error].IsNull() {
		p.errors[op.Error] = text(p.names.errors[op.Error], columnError)
	}
	kind := &p.kinds[op.Kind]
	if kind[0].IsNull() {
		kind[0], kind[1] = text(op.Kind.Primitive(), columnPrimitive), text(op.Kind.String(), columnKind)
	}
	outcome := &p.outcomes[op.Outcome]
	if outcome.IsNull() {
		*outcome = text(op.Outcome.String(), columnOutcome)
	}
	process := p.names.processes[op.Worker]
	worker, ok := p.workers[op.Worker]
	if !ok {
		worker = text(process.Worker, columnWorker)
		p.workers[op.Worker] = worker
	}
	node := int32(op.Node)
	if op.Node == NoNode {
		node = -1
	}
	add := func(c int, x parquet.Value) { v[c] = append(v[c], x) }
	add(columnCall, long(op.Call, columnCall))
	add(columnReturn, long(op.Return, columnReturn))
	add(columnPrimitive, kind[0])
	add(columnKind, kind[1])
	add(columnOutcome, *outcome)
	add(columnKey, p.keys[op.Key])
	add(columnError, p.errors[op.Error])
	add(columnWorker, worker)
	add(columnIncarnation, short(int32(process.Incarnation), columnIncarnation))
	add(columnProcess, short(int32(op.Worker), columnProcess))
	add(columnClient, short(int32(op.Client), columnClient))
	add(columnNode, short(node, columnNode))
	add(columnA, long(op.A, columnA))
	add(columnB, long(op.B, columnB))
	add(columnC, long(op.C, columnC))
	add(columnD, long(op.D, columnD))
	add(columnFlags, short(int32(op.Flags), columnFlags))
	add(columnCompleted, parquet.BooleanValue(op.Commit == Completed).Level(0, 0, columnCompleted))
	if len(v[columnCall]) == rowsPerBatch {
		return p.flush()
	}
	return nil
}

func grow(values []parquet.Value, n int) []parquet.Value {
	if len(values) < n {
		values = append(values, make([]parquet.Value, n-len(values))...)
	}
	return values
}

// flush hands the rows gathered so far to the Parquet writer.
func (p *partWriter) flush() error {
	n := len(p.values[columnCall])
	for c, w := range p.w.ColumnWriters() {
		if _, err := w.WriteRowValues(p.values[c]); err != nil {
			return fmt.Errorf("history: writing %s: %w", p.path, err)
		}
		p.values[c] = p.values[c][:0]
	}
	if p.inRow += n; p.inRow >= rowsPerGroup {
		p.inRow = 0
		if err := p.w.Flush(); err != nil {
			return fmt.Errorf("history: writing %s: %w", p.path, err)
		}
	}
	return nil
}

// finish writes what is left, seals the part and gives it its name.
func (p *partWriter) finish() error {
	if err := p.flush(); err != nil {
		return err
	}
	p.meta.Format = formatVersion
	p.meta.Process = p.names.processes[p.meta.Number]
	if p.meta.Base == ResourceBase {
		p.meta.Process = Process{}
	}
	for number := range 1 << 16 {
		if process, ok := p.names.processes[uint16(number)]; ok {
			p.meta.Processes = append(p.meta.Processes, processRecord{uint16(number), process})
		}
	}
	meta, err := json.Marshal(p.meta)
	if err != nil {
		return err
	}
	p.w.SetKeyValueMetadata(metadataKey, string(meta))
	if err = p.w.Close(); err == nil {
		if err = seal(p.file); err == nil {
			if err = p.file.Close(); err == nil {
				err = os.Rename(p.path+".new", p.path)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("history: writing %s: %w", p.path, err)
	}
	return nil
}

// abandon removes what was written, unless it was finished.
func (p *partWriter) abandon() {
	_ = p.file.Close()
	_ = os.Remove(p.path + ".new")
}
