package history

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// ReceiverOptions say what else is done with what arrives.
type ReceiverOptions struct {
	// Tap, if not nil, is given what each batch told, with keys and errors renumbered into one Names for all workers. It is
	// called by Receive, one call at a time; names is valid until it returns, and its numbers for good.
	Tap func(base string, names *Names, updates []Update)
}

// Receiver takes the batches of recorders elsewhere and keeps their operations as segments and parts, as the recorders
// themselves do, so that Finish and Load see the same. It is safe for concurrent use.
//
// Batches of a base must come in order. One that came before is ignored, so a sender that isn't sure may repeat it; one
// that comes too early is refused with ErrOutOfOrder and changes nothing, so it can be sent again after what it lacks.
type Receiver struct {
	dir string
	o   ReceiverOptions

	mutex   sync.Mutex
	bases   map[string]*received
	resting map[string]bool // of these only what Rest gives is taken
	names   *interner       // for the tap
	workers []Process
	convert converter
	closed  bool
}

// received is what has come of one base.
type received struct {
	sequence uint64
	named    int64 // bytes of the sender's names that came
	table    *nameTable
	keys     []uint32 // numbers for the tap
	errors   []uint16
	file     *os.File // names; nil if nothing is kept
	size     int64
	segments map[uint32]*receivedSegment
	ending   ending
	ended    bool
}

type receivedSegment struct {
	segmentInfo
	file      *os.File
	header    uint32
	completed uint32
}

// NewReceiver keeps what it receives in dir, which must exist; "" keeps nothing, and leaves only the tap.
func NewReceiver(dir string, o ReceiverOptions) (*Receiver, error) {
	if dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
	}
	return &Receiver{dir: dir, o: o, bases: map[string]*received{}, resting: map[string]bool{}, names: newInterner()}, nil
}

// Receive takes one batch.
func (r *Receiver) Receive(data []byte) error {
	b, err := decodeBatch(data)
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		return fmt.Errorf("history: the receiver is %w", ErrClosed)
	}
	if rest := b.flags&batchRest != 0; rest != r.resting[b.base] {
		return fmt.Errorf("history: batch %d of %s comes %w: the rest of it is sent by somebody else, once that has asked what lacks", b.sequence, b.base, ErrOutOfOrder)
	}
	from := r.bases[b.base]
	if from == nil {
		if b.flags&batchFirst == 0 {
			return fmt.Errorf("history: batch %d of %s comes %w: send its first one first", b.sequence, b.base, ErrOutOfOrder)
		}
		if from, err = r.begin(b); err != nil {
			return err
		}
		r.bases[b.base] = from
	}
	switch {
	case b.sequence <= from.sequence:
		return nil
	case b.sequence != from.sequence+1:
		return fmt.Errorf("history: batch %d of %s comes %w: batch %d is the next", b.sequence, b.base, ErrOutOfOrder, from.sequence+1)
	}
	if err := from.check(b); err != nil {
		return err
	}
	if err := r.keep(from, b); err != nil {
		return err
	}
	from.sequence = b.sequence
	from.ending.dropped, from.ending.err = b.dropped, b.err
	if b.flags&batchLast != 0 {
		from.ended, from.ending.closed = true, true // nothing of it is missing
	}
	if r.o.Tap != nil {
		r.tap(from, b)
	}
	return r.settle(b.base, from)
}

// begin makes the files of a base.
func (r *Receiver) begin(b *batch) (*received, error) {
	if !baseName.MatchString(b.base) {
		return nil, fmt.Errorf("history: %q can't be the name of a record", b.base)
	}
	from := &received{table: newNameTable(), segments: map[uint32]*receivedSegment{}}
	if r.dir == "" {
		return from, nil
	}
	// The record that the sender's names begin with says its number.
	t := newNameTable()
	if err := t.add(b.base, b.names); err != nil {
		return nil, err
	}
	l, err := createNameLog(namesPath(r.dir, b.base), baseRecord{Run: t.base.Run, Number: t.base.Number, Streamed: true}, nil)
	if err != nil {
		return nil, err
	}
	from.file, from.size = l.file, l.size
	return from, nil
}

// check judges a batch before anything of it is kept.
func (from *received) check(b *batch) error {
	for _, s := range b.segments {
		if s.capacity == 0 || s.capacity > maxSlots || s.skip > s.capacity || s.part == 0 || s.part > 1<<29 {
			return errBatch
		}
	}
	for i := range b.updates {
		u := &b.updates[i]
		part, index := uint32(u.ID>>32), uint32(u.ID)
		s, ok := from.segments[part]
		capacity := uint32(0)
		if ok {
			capacity = s.capacity
		}
		for _, s := range b.segments {
			if s.part == part {
				capacity = s.capacity
			}
		}
		if index >= capacity || u.Operation.Commit != Invoked && u.Operation.Commit != Completed {
			return errBatch
		}
	}
	return nil
}

// keep writes a batch to the files. If it fails it may be called again with the same batch.
func (r *Receiver) keep(from *received, b *batch) error {
	names, err := from.namesOf(b)
	if err != nil {
		return err
	}
	if r.dir != "" {
		if _, err := from.file.WriteAt(names, from.size); err != nil {
			return fmt.Errorf("history: writing %s: %w", from.file.Name(), err)
		}
	}
	for _, s := range b.segments {
		if from.segments[s.part] != nil {
			continue
		}
		kept := &receivedSegment{segmentInfo: s}
		if r.dir != "" {
			h := &segmentHeader{part: s.part, capacity: s.capacity}
			var err error
			// Written by ordinary writes, which a full disk makes fail: no block is needed before its time.
			kept.file, err = createSegment(segmentPath(r.dir, b.base, s.part), h, nil, (*os.File).Truncate)
			if err != nil {
				return err
			}
			kept.header = h.size
		}
		from.segments[s.part] = kept
	}
	if r.dir != "" {
		if err := from.write(b.updates); err != nil {
			return err
		}
	}
	// Nothing fails from here on.
	_ = from.table.add(b.base, b.names)
	from.size += int64(len(names))
	from.named += int64(len(b.names))
	for i := range b.updates {
		if u := &b.updates[i]; u.Operation.Commit == Completed {
			from.segments[uint32(u.ID>>32)].completed++
		}
	}
	return nil
}

// namesOf is what of a batch's names goes into the file: all but the first record, which the receiver wrote its own way.
func (from *received) namesOf(b *batch) ([]byte, error) {
	if err := newNameTable().add(b.base, b.names); err != nil {
		return nil, err
	}
	var names []byte
	for rest := b.names; len(rest) > 0; {
		kind, _, size, err := parseNameRecord(rest)
		if err != nil {
			return nil, errBatch
		}
		if kind != recordBase {
			names = append(names, rest[:size]...)
		}
		rest = rest[size:]
	}
	return names, nil
}

// write puts operations into their slots, neighbours at once.
func (from *received) write(updates []Update) error {
	sorted := slices.Clone(updates)
	// Of one operation's two updates the later counts.
	slices.SortStableFunc(sorted, func(a, b Update) int {
		if a.ID != b.ID {
			if a.ID < b.ID {
				return -1
			}
			return 1
		}
		return int(a.Operation.Commit) - int(b.Operation.Commit)
	})
	var run []Operation
	var start uint64
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		s := from.segments[uint32(start>>32)]
		_, err := s.file.WriteAt(operationBytes(run), int64(s.header)+int64(uint32(start))*operationSize)
		run = run[:0]
		if err != nil {
			return fmt.Errorf("history: writing %s: %w", s.file.Name(), err)
		}
		return nil
	}
	for i := range sorted {
		u := &sorted[i]
		if i+1 < len(sorted) && sorted[i+1].ID == u.ID {
			continue
		}
		if len(run) == 0 || u.ID != start+uint64(len(run)) {
			if err := flush(); err != nil {
				return err
			}
			start = u.ID
		}
		run = append(run, u.Operation)
	}
	return flush()
}

// settle converts segments of which every operation has come completed, and that a later one follows.
func (r *Receiver) settle(base string, from *received) error {
	for part, s := range from.segments {
		if s.file == nil || s.completed < s.capacity-s.skip || from.segments[part+1] == nil {
			continue
		}
		_ = s.file.Close()
		s.file = nil
		if err := r.convert.convertLive(r.dir, base, segmentPath(r.dir, base, part)); err != nil {
			return err
		}
	}
	return nil
}

// tap hands a batch to the tap, renumbered.
func (r *Receiver) tap(from *received, b *batch) {
	for len(from.keys) < len(from.table.keys) {
		from.keys = append(from.keys, r.names.key(from.table.keys[len(from.keys)]))
	}
	for len(from.errors) < len(from.table.errors) {
		from.errors = append(from.errors, r.names.error(from.table.errors[len(from.errors)]))
	}
	for number, p := range from.table.processes {
		for len(r.workers) <= int(number) {
			r.workers = append(r.workers, Process{})
		}
		r.workers[number] = p
	}
	updates := slices.Clone(b.updates)
	for i := range updates {
		o := &updates[i].Operation
		if int(o.Key) < len(from.keys) && int(o.Error) < len(from.errors) {
			o.Key, o.Error = from.keys[o.Key], from.errors[o.Error]
		}
	}
	r.o.Tap(b.base, &Names{Keys: r.names.table.keys, Errors: r.names.table.errors, Workers: r.workers}, updates)
}

// Close finishes all bases: those whose recorder was closed, and those of which no more will come, whose open operations
// become Unknown.
func (r *Receiver) Close() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.closed {
		return fmt.Errorf("history: the receiver is %w already", ErrClosed)
	}
	r.closed = true
	var errs []error
	for base, from := range r.bases {
		for _, s := range from.segments {
			if s.file != nil {
				_ = s.file.Close()
			}
		}
		if from.file != nil {
			errs = append(errs, finishBase(r.dir, base, from.ending))
			_ = from.file.Close()
		}
	}
	return errors.Join(errs...)
}
