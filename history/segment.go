package history

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"unsafe"
)

// A segment's file, little-endian:
//
//	  0  magic          8 bytes
//	  8  header size    uint32   a multiple of 4096; slots begin there
//	 12  slot size      uint32   64
//	 16  capacity       uint32   number of slots; the file ends after them
//	 20  part           uint32
//	 24  origins        uint32   how many operations were moved here, into the first slots
//	 28  checksum       uint32   CRC-32C of bytes 0 to 28 and of the origins
//	 64  dropped        int64    operations that could not be recorded; counted in the last segment
//	128  origins        2 × uint32 each: the part and the slot that the operation came from
const (
	segmentMagic    = "FPSEG\x001\n"
	headerChecksum  = 28
	headerDropped   = 64
	headerOrigins   = 128
	headerAlignment = 4096
	// DefaultSegmentSize is how many bytes of slots a segment holds unless the options say otherwise.
	DefaultSegmentSize = 16 << 20
	maxSlots           = 1 << 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// origin is where a moved operation came from.
type origin struct{ part, index uint32 }

type segmentHeader struct {
	size, capacity, part uint32
	origins              []origin
	dropped              int64
}

func (h *segmentHeader) encode() []byte {
	h.size = (headerOrigins + 8*uint32(len(h.origins)) + headerAlignment - 1) / headerAlignment * headerAlignment
	b := make([]byte, h.size)
	copy(b, segmentMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], h.size)
	le.PutUint32(b[12:], uint32(operationSize))
	le.PutUint32(b[16:], h.capacity)
	le.PutUint32(b[20:], h.part)
	le.PutUint32(b[24:], uint32(len(h.origins)))
	for i, o := range h.origins {
		le.PutUint32(b[headerOrigins+8*i:], o.part)
		le.PutUint32(b[headerOrigins+8*i+4:], o.index)
	}
	le.PutUint32(b[headerChecksum:], checksumHeader(b, len(h.origins)))
	le.PutUint64(b[headerDropped:], uint64(h.dropped))
	return b
}

func checksumHeader(b []byte, origins int) uint32 {
	return crc32.Update(crc32.Checksum(b[:headerChecksum], castagnoli), castagnoli, b[headerOrigins:headerOrigins+8*origins])
}

// readHeader reads and judges a segment's header, and the file's length by it.
func readHeader(f *os.File) (*segmentHeader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, headerAlignment)
	if n, err := io.ReadFull(io.NewSectionReader(f, 0, info.Size()), b); err != nil {
		return nil, damaged(f.Name(), ErrTruncated, "a segment's header has %d bytes, this file has %d", headerAlignment, n)
	}
	le := binary.LittleEndian
	if string(b[:8]) != segmentMagic {
		return nil, damaged(f.Name(), ErrCorrupt, "it does not begin as a segment does")
	}
	h := &segmentHeader{size: le.Uint32(b[8:]), capacity: le.Uint32(b[16:]), part: le.Uint32(b[20:]), dropped: int64(le.Uint64(b[headerDropped:]))}
	origins := le.Uint32(b[24:])
	if le.Uint32(b[12:]) != uint32(operationSize) || h.capacity > maxSlots || origins > h.capacity ||
		h.size != (headerOrigins+8*origins+headerAlignment-1)/headerAlignment*headerAlignment || h.dropped < 0 {
		return nil, damaged(f.Name(), ErrCorrupt, "its header contradicts itself")
	}
	if want := int64(h.size) + int64(h.capacity)*operationSize; info.Size() < want {
		return nil, damaged(f.Name(), ErrTruncated, "it should have %d bytes and has %d", want, info.Size())
	} else if info.Size() > want {
		return nil, damaged(f.Name(), ErrCorrupt, "it should have %d bytes and has %d", want, info.Size())
	}
	if h.size > headerAlignment {
		b = make([]byte, h.size)
		if _, err := f.ReadAt(b, 0); err != nil {
			return nil, fmt.Errorf("history: reading %s: %w", f.Name(), err)
		}
	}
	if le.Uint32(b[headerChecksum:]) != checksumHeader(b, int(origins)) {
		return nil, damaged(f.Name(), ErrCorrupt, "its header's checksum is wrong")
	}
	for i := range int(origins) {
		h.origins = append(h.origins, origin{le.Uint32(b[headerOrigins+8*i:]), le.Uint32(b[headerOrigins+8*i+4:])})
	}
	return h, nil
}

// createSegment writes a segment's file whole, with the moved operations in its first slots, under its name and extension.
// The file appears under that name at once or not at all.
func createSegment(path string, h *segmentHeader, moved []Operation, allocate func(*os.File, int64) error) (_ *os.File, err error) {
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("history: a new segment: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(path + ".new")
		}
	}()
	b := h.encode()
	if err := allocate(f, int64(len(b))+int64(h.capacity)*operationSize); err != nil {
		return nil, fmt.Errorf("history: no room for segment %s (free some space on that disk): %w", path, err)
	}
	b = append(b, operationBytes(moved)...)
	if _, err := f.WriteAt(b, 0); err != nil {
		return nil, fmt.Errorf("history: writing segment %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, fmt.Errorf("history: a new segment: %w", err)
	}
	return f, nil
}

// readSegment reads the slots of a segment's file into ops, which is reused if it is large enough.
func readSegment(f *os.File, h *segmentHeader, ops []Operation) ([]Operation, error) {
	if cap(ops) < int(h.capacity) {
		ops = make([]Operation, h.capacity)
	}
	ops = ops[:h.capacity]
	if _, err := f.ReadAt(operationBytes(ops), int64(h.size)); err != nil {
		return nil, fmt.Errorf("history: reading %s: %w", f.Name(), err)
	}
	return ops[:used(ops)], nil
}

// blank is a block of slots that nobody has touched.
var blank [1024 * operationSize]byte

// used is how many slots there are but for untouched blocks at the end. Most of a killed process's last segment is, and to
// look at each slot of it costs more than all the rest of converting it.
func used(ops []Operation) int {
	const block = len(blank) / int(operationSize)
	n := len(ops)
	for n >= block && bytes.Equal(operationBytes(ops[n-block:n]), blank[:]) {
		n -= block
	}
	return n
}

// operationBytes shows operations as they are in a file.
func operationBytes(ops []Operation) []byte {
	if len(ops) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&ops[0])), len(ops)*int(operationSize))
}

func recordBytes(o *Operation) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(o)), operationSize) }

func segmentPath(dir, base string, part uint32) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%04d.seg", base, part))
}

func partPath(dir, base string, part uint32) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%04d.parquet", base, part))
}

func namesPath(dir, base string) string { return filepath.Join(dir, base+".names") }
