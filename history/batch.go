package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

// Update is an operation that was newly invoked or completed, as its Commit says. ID names it within its base, also when
// it has been moved; an operation that is completed soon is told of once, completed.
type Update struct {
	ID        uint64 // the part and the slot in which it was begun
	Operation Operation
}

func updateID(part, index uint32) uint64 { return uint64(part)<<32 | uint64(index) }

// A batch on the wire, little-endian: "FPB1", CRC-32C of the rest, and zstd of
//
//	sequence uint64 · flags byte · base · error · dropped int64 ·
//	segments: count, and for each part, capacity, and the first slot used, uint32 · names · updates: count, and for each ID and record
//
// where strings and counts are preceded by, or are, a uint32.
const batchMagic = "FPB1"

const (
	batchLast  = 1 << iota // the recorder was closed; nothing follows
	batchFirst             // nothing precedes
	batchRest              // sent for a dead recorder, after its last: see Rest
)

// maxUpdates bounds a batch to some 300 kB before compression, below what the plane carries in one message.
const (
	maxUpdates   = 4096
	maxBatch     = 64 << 20
	maxUnsent    = 1 << 20
	maxNameBytes = 256 << 10
)

type segmentInfo struct{ part, capacity, skip uint32 }

type batch struct {
	sequence uint64
	flags    byte
	base     string
	err      string
	dropped  int64
	segments []segmentInfo
	names    []byte
	updates  []Update
}

var (
	batchEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	batchDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBatch))
)

func (b *batch) encode() []byte {
	le := binary.LittleEndian
	body := le.AppendUint64(nil, b.sequence)
	body = append(body, b.flags)
	str := func(s []byte) {
		body = le.AppendUint32(body, uint32(len(s)))
		body = append(body, s...)
	}
	str([]byte(b.base))
	str([]byte(b.err))
	body = le.AppendUint64(body, uint64(b.dropped))
	body = le.AppendUint32(body, uint32(len(b.segments)))
	for _, s := range b.segments {
		body = le.AppendUint32(le.AppendUint32(le.AppendUint32(body, s.part), s.capacity), s.skip)
	}
	str(b.names)
	body = le.AppendUint32(body, uint32(len(b.updates)))
	for i := range b.updates {
		body = le.AppendUint64(body, b.updates[i].ID)
		body = append(body, recordBytes(&b.updates[i].Operation)...)
	}
	return packBatch(body)
}

func packBatch(body []byte) []byte {
	packed := batchEncoder.EncodeAll(body, nil)
	out := append([]byte(batchMagic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(out[4:], crc32.Checksum(packed, castagnoli))
	return append(out, packed...)
}

var errBatch = errors.New("history: this is no batch of a recorder")

func decodeBatch(data []byte) (*batch, error) {
	le := binary.LittleEndian
	if len(data) < 8 || string(data[:4]) != batchMagic || crc32.Checksum(data[8:], castagnoli) != le.Uint32(data[4:]) {
		return nil, errBatch
	}
	body, err := batchDecoder.DecodeAll(data[8:], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errBatch, err)
	}
	short := false
	take := func(n uint64) []byte {
		if uint64(len(body)) < n {
			short, body = true, nil
		}
		if short {
			return make([]byte, min(n, 8))
		}
		b := body[:n]
		body = body[n:]
		return b
	}
	u32 := func() uint32 { return le.Uint32(take(4)) }
	str := func() []byte { return take(uint64(u32())) }
	b := &batch{sequence: le.Uint64(take(8)), flags: take(1)[0], base: string(str()), err: string(str())}
	b.dropped = int64(le.Uint64(take(8)))
	for n := u32(); n > 0 && !short; n-- {
		b.segments = append(b.segments, segmentInfo{u32(), u32(), u32()})
	}
	b.names = str()
	n := u32()
	if uint64(n)*(8+uint64(operationSize)) != uint64(len(body)) || short {
		return nil, errBatch
	}
	b.updates = make([]Update, n)
	for i := range b.updates {
		b.updates[i].ID = le.Uint64(take(8))
		copy(recordBytes(&b.updates[i].Operation), take(uint64(operationSize)))
	}
	return b, nil
}

// Cursor gives what is new in a recorder: as bytes for a Receiver elsewhere (Next), or decoded for somebody in this process
// (Updates). Call one of them regularly, such as every 100 ms: what is new waits in memory, and when it is a million
// operations the cursor gives up. It is safe for concurrent use, though batches must be delivered in order.
type Cursor struct {
	r *Recorder

	// Guarded by the recorder's mutex.
	position map[*segment]uint32 // slots below have been looked at
	watched  []watch             // slots that may change yet
	unsent   []Update
	segments []segmentInfo
	names    []byte
	offset   int64 // in the names file: what comes before is in names, or was sent
	sequence uint64
	state    cursorState
}

type cursorState byte

const (
	cursorOpen cursorState = iota
	cursorEnding
	cursorEnded
	cursorLagging
)

type watch struct {
	id   uint64
	slot Slot
	told bool // that it was invoked
}

// ErrLagging: nobody took what a cursor had, for too long. The recorder's own files are whole.
var ErrLagging = errors.New("history: a cursor fell too far behind its recorder")

// Cursor begins to follow the recorder, from what is still mapped on; to miss nothing, call it before the first Begin.
func (r *Recorder) Cursor() *Cursor {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	c := &Cursor{r: r, position: map[*segment]uint32{}}
	if r.closed {
		c.state = cursorEnded
		return c
	}
	r.cursors = append(r.cursors, c)
	return c
}

// Next gives the next batch, some hundred kilobytes at most: call it until it gives nil, which says that there is nothing
// new. After the batch that follows the recorder's Close it gives ErrClosed.
func (c *Cursor) Next() ([]byte, error) {
	c.r.mutex.Lock()
	defer c.r.mutex.Unlock()
	if err := c.refresh(); err != nil {
		return nil, err
	}
	n := min(len(c.unsent), maxUpdates)
	ending := c.state == cursorEnding && n == len(c.unsent) && len(c.names) <= maxNameBytes
	if n == 0 && len(c.names) == 0 && len(c.segments) == 0 && !ending {
		return nil, nil
	}
	c.sequence++
	b := batch{sequence: c.sequence, base: c.r.base, dropped: c.r.dropped.Load(), segments: c.segments}
	if err := c.r.failed(); err != nil {
		b.err = err.Error()
	}
	b.names = c.names
	if len(b.names) > maxNameBytes {
		// Names first, then what refers to them.
		b.names, n = wholeRecords(b.names), 0
	}
	c.names = c.names[len(b.names):]
	b.updates = c.unsent[:n]
	if c.sequence == 1 {
		b.flags |= batchFirst
	}
	if ending {
		b.flags |= batchLast
		c.state = cursorEnded
	}
	data := b.encode()
	c.segments = nil
	c.unsent = append(c.unsent[:0], c.unsent[n:]...)
	return data, nil
}

// wholeRecords gives the records within the first maxNameBytes, and at least one.
func wholeRecords(names []byte) []byte {
	end := 0
	for end < len(names) {
		_, _, size, err := parseNameRecord(names[end:])
		if err != nil || end > 0 && end+size > maxNameBytes {
			break
		}
		end += size
	}
	return names[:end]
}

// Updates gives all that is new, in no particular order, with the recorder's own numbers for keys and errors. After the
// recorder's Close it gives what is left, and then ErrClosed.
func (c *Cursor) Updates() ([]Update, error) {
	c.r.mutex.Lock()
	defer c.r.mutex.Unlock()
	if err := c.refresh(); err != nil {
		return nil, err
	}
	updates := c.unsent
	c.unsent, c.names, c.segments = nil, nil, nil
	if c.state == cursorEnding {
		c.state = cursorEnded
	}
	return updates, nil
}

// refresh collects; the caller holds the recorder's mutex.
func (c *Cursor) refresh() error {
	if c.state == cursorOpen {
		c.collect()
	}
	switch c.state {
	case cursorEnded:
		return fmt.Errorf("history: the recorder that the cursor follows is %w", ErrClosed)
	case cursorLagging:
		return ErrLagging
	}
	return nil
}

// collect makes every cursor look at every mapped segment. The caller holds the mutex.
func (r *Recorder) collect() {
	for _, c := range r.cursors {
		c.collect()
	}
}

func (c *Cursor) collect() {
	if c.state != cursorOpen {
		return
	}
	kept := c.watched[:0]
	for _, w := range c.watched {
		if c.look(&w) {
			kept = append(kept, w)
		}
	}
	c.watched = kept
	c.follow(c.r.draining)
	if last := c.r.last.Load(); last != c.r.draining {
		c.follow(last)
	}
	// After the operations: a name is written before the slot that refers to it.
	names, end, err := c.r.names.since(c.offset)
	if err == nil {
		c.names, c.offset = append(c.names, names...), end
	}
	if len(c.unsent) > maxUnsent || err != nil {
		c.state, c.unsent, c.watched, c.names = cursorLagging, nil, nil, nil
	}
}

// follow looks at the slots of s that were taken since.
func (c *Cursor) follow(s *segment) {
	if s == nil {
		return
	}
	from, known := c.position[s]
	if !known {
		if len(c.position) >= 2 {
			for old := range c.position {
				if old != c.r.draining && old != c.r.last.Load() {
					delete(c.position, old)
				}
			}
		}
		from = s.firstOwn
		c.segments = append(c.segments, segmentInfo{s.part, uint32(len(s.slots)), from})
	}
	taken := s.taken()
	for i := from; i < taken; i++ {
		w := watch{id: updateID(s.part, i), slot: Slot{s, i}}
		if c.look(&w) {
			c.watched = append(c.watched, w)
		}
	}
	c.position[s] = max(taken, from)
}

// look tells of a slot what is new, and reports whether it may change yet.
func (c *Cursor) look(w *watch) bool {
	op, ok := w.slot.segment.snapshot(w.slot.index)
	if !ok {
		return true
	}
	if op.Commit == Completed {
		c.unsent = append(c.unsent, Update{w.id, op})
		return false
	}
	if !w.told {
		w.told = true
		op.Outcome, op.Return = Unknown, op.Call
		c.unsent = append(c.unsent, Update{w.id, op})
	}
	return true
}

// moved says that an open operation is elsewhere now.
func (c *Cursor) moved(from, to Slot) {
	for i := range c.watched {
		if c.watched[i].slot == from {
			c.watched[i].slot = to
			return
		}
	}
}

// end says that the recorder was closed and nothing is mapped any more.
func (c *Cursor) end() {
	if c.state == cursorOpen {
		c.state = cursorEnding
	}
	c.position, c.watched = nil, nil
}
