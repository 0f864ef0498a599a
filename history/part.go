package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// formatVersion is the version of everything that recorders write.
const formatVersion = 1

// row is a part's schema; docs/history.md explains its columns. Strings are dictionaries, times are differences.
type row struct {
	Call        int64  `parquet:"call_ns,delta"`
	Return      int64  `parquet:"return_ns,delta"`
	Primitive   string `parquet:"primitive,dict"`
	Kind        string `parquet:"kind,dict"`
	Outcome     string `parquet:"outcome,dict"`
	Key         string `parquet:"key,dict"`
	Error       string `parquet:"error,dict"`
	Worker      string `parquet:"worker,dict"`
	Incarnation int32  `parquet:"incarnation"`
	Process     int32  `parquet:"process"`
	Client      int32  `parquet:"client"`
	Node        int32  `parquet:"node"`
	A           int64  `parquet:"a"`
	B           int64  `parquet:"b"`
	C           int64  `parquet:"c"`
	D           int64  `parquet:"d"`
	Flags       int32  `parquet:"flags"`
	Completed   bool   `parquet:"completed"`
}

// Columns by their place in row. The schema keeps the order of the fields.
const (
	columnCall = iota
	columnReturn
	columnPrimitive
	columnKind
	columnOutcome
	columnKey
	columnError
	columnWorker
	columnIncarnation
	columnProcess
	columnClient
	columnNode
	columnA
	columnB
	columnC
	columnD
	columnFlags
	columnCompleted
	columnCount
)

var partSchema = parquet.SchemaOf(row{})

// metadataKey is where a part's metadata is in the Parquet footer.
const metadataKey = "fencepost"

// partMetadata is what a part says of itself, as JSON.
type partMetadata struct {
	Format int    `json:"format"`
	Run    string `json:"run,omitempty"` // the run's id
	Base   string `json:"base"`
	Part   uint32 `json:"part"`
	Number uint16 `json:"process"`
	Process
	// Processes are all whose operations may be in it, by number, for logs of many processes' operations.
	Processes []processRecord `json:"processes,omitempty"`
	Rows      int64           `json:"rows"`
	First     int64           `json:"first_call_ns"`
	// Final: there are no later parts. The rest is said by the final part only.
	Final    bool   `json:"final"`
	Closed   bool   `json:"closed,omitempty"`
	Streamed bool   `json:"streamed,omitempty"`
	Dropped  int64  `json:"dropped,omitempty"`
	Error    string `json:"error,omitempty"`
}

// A part is sealed: between the data and the footer, where no Parquet reader looks, are 16 bytes: the magic "FPCK0001", the
// CRC-32C of everything before them, and the CRC-32C of the footer. So no damage goes unnoticed.
const (
	sealMagic = "FPCK0001"
	sealSize  = 16
	tailSize  = 8 // the footer's length, and "PAR1"
)

// seal puts the checksums before the footer of a finished Parquet file.
func seal(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	tail := make([]byte, tailSize)
	if _, err := f.ReadAt(tail, info.Size()-tailSize); err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(tail))
	data := info.Size() - tailSize - length
	footer := make([]byte, length)
	if _, err := f.ReadAt(footer, data); err != nil {
		return err
	}
	sum, err := checksum(f, data)
	if err != nil {
		return err
	}
	b := append(sealOf(sum, footer), footer...)
	_, err = f.WriteAt(append(b, tail...), data)
	return err
}

func sealOf(data uint32, footer []byte) []byte {
	b := []byte(sealMagic)
	b = binary.LittleEndian.AppendUint32(b, data)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(footer, castagnoli))
}

// checksum is that of the first n bytes.
func checksum(r io.ReaderAt, n int64) (uint32, error) {
	h := crc32.New(castagnoli)
	got, err := io.CopyBuffer(h, io.NewSectionReader(r, 0, n), make([]byte, 256<<10))
	if err == nil && got < n {
		err = io.ErrUnexpectedEOF
	}
	return h.Sum32(), err
}

// openPart opens a part and reads its footer. The data's checksum is verified when it is read.
func openPart(path string) (_ *part, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	p := &part{path: path, file: f}
	defer func() {
		if broken := recover(); broken != nil {
			err = damaged(path, ErrCorrupt, "%v", broken)
		}
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	size := info.Size()
	tail := make([]byte, tailSize)
	if size < 4+sealSize+tailSize {
		return nil, damaged(path, ErrTruncated, "it has %d bytes", size)
	}
	head := make([]byte, 4)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("history: reading %s: %w", path, err)
	}
	if string(head) != "PAR1" {
		return nil, damaged(path, ErrCorrupt, "it does not begin as a Parquet file does")
	}
	if _, err := f.ReadAt(tail, size-tailSize); err != nil {
		return nil, fmt.Errorf("history: reading %s: %w", path, err)
	}
	length := int64(binary.LittleEndian.Uint32(tail))
	if string(tail[4:]) != "PAR1" {
		return nil, damaged(path, ErrTruncated, "it does not end as a Parquet file does")
	}
	p.data = size - tailSize - length - sealSize
	if p.data < 4 {
		return nil, damaged(path, ErrCorrupt, "its footer would be longer than the file")
	}
	b := make([]byte, sealSize+length)
	if _, err := f.ReadAt(b, p.data); err != nil {
		return nil, fmt.Errorf("history: reading %s: %w", path, err)
	}
	p.sum = binary.LittleEndian.Uint32(b[len(sealMagic):])
	if string(b[:len(sealMagic)]) != sealMagic {
		return nil, damaged(path, ErrCorrupt, "it has no seal: it was not written by a recorder, or was changed since")
	}
	if string(sealOf(p.sum, b[sealSize:])) != string(b[:sealSize]) {
		return nil, damaged(path, ErrCorrupt, "its footer's checksum is wrong")
	}
	p.parquet, err = parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, damaged(path, ErrCorrupt, "%v", err)
	}
	if !sameColumns(p.parquet.Schema()) {
		return nil, damaged(path, ErrCorrupt, "its columns are not those of a history")
	}
	meta, ok := p.parquet.Lookup(metadataKey)
	if !ok {
		return nil, damaged(path, ErrCorrupt, "it says nothing of its format")
	}
	if err := json.Unmarshal([]byte(meta), &p.meta); err != nil {
		return nil, damaged(path, ErrCorrupt, "%v", err)
	}
	if p.meta.Format != formatVersion {
		return nil, fmt.Errorf("history: %s has format %d; this program reads format %d: use the one that recorded it", path, p.meta.Format, formatVersion)
	}
	if p.meta.Rows != p.parquet.NumRows() {
		return nil, damaged(path, ErrCorrupt, "it should hold %d operations and holds %d", p.meta.Rows, p.parquet.NumRows())
	}
	return p, nil
}

func sameColumns(s *parquet.Schema) bool {
	got, want := s.Columns(), partSchema.Columns()
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if len(got[i]) != 1 || got[i][0] != want[i][0] {
			return false
		}
		leaf, _ := s.Lookup(got[i]...)
		should, _ := partSchema.Lookup(want[i]...)
		if leaf.Node.Type().Kind() != should.Node.Type().Kind() || leaf.Node.Optional() || leaf.Node.Repeated() {
			return false
		}
	}
	return true
}

// verify checks the data's checksum.
func (p *part) verify() error {
	sum, err := checksum(p.file, p.data)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged(p.path, ErrTruncated, "it became shorter while it was read")
	}
	if err != nil {
		return fmt.Errorf("history: reading %s: %w", p.path, err)
	}
	if sum != p.sum {
		return damaged(p.path, ErrCorrupt, "its checksum is wrong")
	}
	return nil
}
