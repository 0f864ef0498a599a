package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ResourceBase is the base name of the witness's log. Its parts become one file, resource.parquet.
const ResourceBase = "resource"

// RecorderOptions say whose operations are recorded, and how.
type RecorderOptions struct {
	// Run is the run's id. All files of a results directory must have the same, so that those of another run show.
	Run string
	// Process is the incarnation whose clients are recorded, and Number the number that the coordinator gave it: its index in
	// Names.Workers, which its operations carry as Worker. Both are left zero for the witness's log, whose operations are of
	// many processes; see SetProcess.
	Process Process
	Number  uint16
	// SegmentSize is how many bytes of slots a segment has; 0 is DefaultSegmentSize. Tests make it small.
	SegmentSize int
}

// Recorder writes what the clients of one process do into memory-mapped segments, so that what it has taken outlives
// SIGKILL, and turns full segments into Parquet parts as the run goes.
//
//	clients:   Begin ──▶ current segment ◀── End (in place, wherever the slot is)
//	              full │ rotate
//	settler:           ▼
//	           draining segment ──▶ all answered: released ──▶ queue
//	converter:                                                   │ sort, compress, rename
//	                                                             ▼
//	                                                   <base>-<part>.parquet
//
// At most two segments are mapped: current, and either draining or the following one, prepared. When current is full and
// draining still has open operations, these are moved: they become the first slots of the new segment, whose file appears
// with them at once, and End finds them through the recorder. So a hold of a minute keeps no old segment mapped.
//
// Begin, End, Key and Error are safe for concurrent use, and for all but one operation in a segment Begin and End take no
// lock.
//
// If a segment or a name can't be written (no space left), recording ends: what had begun can still be completed, what
// comes later is dropped and counted. Err says why. The history then tells that it is incomplete.
type Recorder struct {
	current atomic.Pointer[segment] // nil: nothing more is recorded
	_       [56]byte

	dir, base string
	capacity  uint32
	names     *nameLog
	number    uint16
	allocate  func(*os.File, int64) error

	failure atomic.Pointer[error] // recording ended early
	dropped atomic.Int64
	last    atomic.Pointer[segment] // the newest segment: counts dropped operations in its header

	mutex     sync.Mutex // guards what follows, and rotation
	process   Process
	draining  *segment
	following *segment
	part      uint32
	moved     map[Slot]Slot // from the Slot that a client holds to where its operation is now
	cursors   []*Cursor
	queue     []string // segments to convert, in order of their parts
	convert   error    // conversion ended early; Finish tries again
	closed    bool

	settle, converting chan struct{} // wake the settler and the converter
	stop               chan struct{}
	background         sync.WaitGroup
}

// settleEvery is how often the settler looks whether the last answers for a full segment have come.
const settleEvery = 5 * time.Millisecond

// NewRecorder begins a record in dir, which must exist, under the name base: "w1.1" for the first incarnation of w1,
// ResourceBase for the witness's log. Base names are used once.
func NewRecorder(dir, base string, o RecorderOptions) (*Recorder, error) {
	return newRecorder(dir, base, o, allocate)
}

func newRecorder(dir, base string, o RecorderOptions, allocate func(*os.File, int64) error) (*Recorder, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, errors.New("history: segments are little-endian, and this machine is not")
	}
	if !baseName.MatchString(base) {
		return nil, fmt.Errorf("history: %q can't be the name of a record: use letters, digits, dots and underscores", base)
	}
	if o.SegmentSize == 0 {
		o.SegmentSize = DefaultSegmentSize
	}
	capacity := o.SegmentSize / int(operationSize)
	if capacity < 1 || capacity > maxSlots {
		return nil, fmt.Errorf("history: a segment of %d bytes; it takes %d to %d", o.SegmentSize, operationSize, maxSlots*operationSize)
	}
	r := &Recorder{
		dir: dir, base: base, capacity: uint32(capacity), number: o.Number, process: o.Process, allocate: allocate,
		moved:  map[Slot]Slot{},
		settle: make(chan struct{}, 1), converting: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	var err error
	if r.names, err = createNameLog(namesPath(dir, base), baseRecord{Run: o.Run, Number: o.Number}, r.fail); err != nil {
		return nil, err
	}
	if base != ResourceBase {
		r.names.process(o.Number, o.Process)
	}
	first, err := r.newSegment(nil)
	if err == nil {
		err = r.names.err
	}
	if err != nil {
		r.names.file.Close()
		os.Remove(namesPath(dir, base))
		return nil, err
	}
	first.touch()
	r.current.Store(first)
	r.last.Store(first)
	r.background.Go(r.settler)
	r.background.Go(r.converter)
	return r, nil
}

// Key interns a key's name.
func (r *Recorder) Key(name string) uint32 { return r.names.key(name) }

// Error interns an error's text. After some thousand different ones all others are OtherErrors.
func (r *Recorder) Error(text string) uint16 { return r.names.error(text) }

// Begin commits op, except for its answer, and must be called before the request is sent. op is not kept, and its Outcome
// is not looked at.
func (r *Recorder) Begin(op *Operation) Slot {
	for {
		s := r.current.Load()
		if s == nil {
			r.drop()
			return Slot{}
		}
		if i, ok := s.begin(op); ok {
			if i == s.half {
				wake(r.settle)
			}
			return Slot{s, i}
		}
		r.rotate(s)
	}
}

// End completes an operation in place, with op's Return, A to D, Node, Error, Outcome and Flags; the rest stays as it was
// begun. It is called at most once for a Slot.
func (r *Recorder) End(s Slot, op *Operation) {
	if s.segment == nil || s.segment.end(s.index, op) {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if now, ok := r.moved[s]; ok {
		now.segment.end(now.index, op)
	}
}

// SetClockError says anew how far this process's times may be from the coordinator's clock. The widest bound that was ever
// set holds for all its operations.
func (r *Recorder) SetClockError(ns int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if ns > r.process.ClockError {
		r.process.ClockError = ns
		r.names.process(r.number, r.process)
	}
}

// SetProcess says whose operations carry number as their Worker, for logs of many processes' operations.
func (r *Recorder) SetProcess(number uint16, p Process) { r.names.process(number, p) }

// Dropped counts operations that could not be recorded.
func (r *Recorder) Dropped() int64 { return r.dropped.Load() }

// Err says why recording, or the conversion to Parquet, ended early; nil if neither did. When only the conversion did,
// nothing is lost: the segments stay, and Finish converts them.
func (r *Recorder) Err() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return errors.Join(r.failed(), r.convert)
}

func (r *Recorder) drop() {
	r.dropped.Add(1)
	// The newest segment stays mapped once recording has ended, until Close.
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if s := r.last.Load(); s != nil {
		*s.dropped()++
	}
}

// fail ends recording. When it has returned, nothing more is recorded.
func (r *Recorder) fail(err error) {
	r.failure.CompareAndSwap(nil, &err)
	r.current.Store(nil)
}

// failed is why recording ended early, or nil.
func (r *Recorder) failed() error {
	if err := r.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// rotate makes another segment current than full. The caller got no slot there.
func (r *Recorder) rotate(full *segment) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.current.Load() != full {
		return
	}
	if d := r.draining; d != nil && d.isSettled() {
		r.retire(d)
	}
	next := r.following
	r.following = nil
	if next == nil {
		var err error
		if next, err = r.newSegment(r.draining); err != nil {
			r.fail(err)
			return
		}
	}
	r.draining = full
	r.last.Store(next)
	// Unless a name that couldn't be written has ended recording meanwhile.
	r.current.CompareAndSwap(full, next)
	wake(r.settle)
}

// newSegment makes the following segment. Open operations of old, if it isn't nil, move there, and old is retired. The
// caller holds the mutex.
func (r *Recorder) newSegment(old *segment) (*segment, error) {
	part := r.part + 1
	h := &segmentHeader{part: part, capacity: r.capacity}
	var open []uint32
	var moved []Operation
	if old != nil {
		r.collect() // so that every cursor watches what is open
		open = old.claim(uint32(len(old.slots)))
		h.capacity = max(h.capacity, 2*uint32(len(open)))
		for _, i := range open {
			op := old.slots[i]
			op.Commit = Invoked
			moved = append(moved, op)
			h.origins = append(h.origins, origin{old.part, i})
		}
	}
	path := segmentPath(r.dir, r.base, part)
	f, err := createSegment(path, h, moved, r.allocate)
	if err != nil {
		if old != nil {
			old.unclaim(open)
		}
		return nil, err
	}
	defer f.Close()
	r.part = part
	var origins []Slot
	for _, i := range open {
		origins = append(origins, old.holder(i))
	}
	if old != nil {
		r.retire(old)
	}
	s, err := mapSegment(f, h.size, h.capacity)
	if err != nil {
		return nil, err // its operations are on disk, and open
	}
	s.path, s.part, s.origins = path, part, origins
	s.firstOwn = uint32(len(origins))
	s.next.Store(uint64(len(origins)))
	for i, held := range origins {
		now := Slot{s, uint32(i)}
		r.moved[held] = now
		for _, c := range r.cursors {
			c.moved(Slot{old, open[i]}, now)
		}
	}
	return s, nil
}

// holder is the Slot that a client holds for the operation in slot i.
func (s *segment) holder(i uint32) Slot {
	if int(i) < len(s.origins) {
		return s.origins[i]
	}
	return Slot{s, i}
}

// retire unmaps a segment in which nothing is open, and queues its file for conversion. The caller holds the mutex.
func (r *Recorder) retire(s *segment) {
	r.collect()
	for i, held := range s.origins {
		if r.moved[held] == (Slot{s, uint32(i)}) {
			delete(r.moved, held)
		}
	}
	s.origins = nil
	s.release()
	if r.draining == s {
		r.draining = nil
	}
	r.queue = append(r.queue, s.path)
	wake(r.converting)
}

// settler retires segments as the last answers come, and prepares the following one when the current is half full.
func (r *Recorder) settler() {
	ticker := time.NewTicker(time.Hour) // stopped unless a segment is draining
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-r.settle:
		case <-ticker.C:
		}
		if r.settleOnce() {
			ticker.Reset(settleEvery)
		} else {
			ticker.Stop()
		}
	}
}

// settleOnce reports whether it should be called again soon.
func (r *Recorder) settleOnce() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.draining != nil && r.draining.isSettled() {
		r.retire(r.draining)
	}
	if r.draining != nil {
		return !r.closed && r.failed() == nil
	}
	if s := r.current.Load(); s != nil && r.following == nil && s.taken() > s.half {
		// If it can't be made, rotate tries again, and fails if it still can't.
		if next, err := r.newSegment(nil); err == nil {
			next.touch()
			r.following = next
		}
	}
	return false
}

// converter turns retired segments into Parquet, one after the other. After an error it stops: a part is converted only
// when all before it are.
func (r *Recorder) converter() {
	var c converter
	for {
		select {
		case <-r.stop:
			return
		case <-r.converting:
		}
		for {
			r.mutex.Lock()
			if len(r.queue) == 0 || r.convert != nil || r.failed() != nil || r.closed {
				r.mutex.Unlock()
				break
			}
			path := r.queue[0]
			r.mutex.Unlock()
			err := c.convertLive(r.dir, r.base, path)
			r.mutex.Lock()
			if r.convert = err; err == nil {
				r.queue = r.queue[1:]
			}
			r.mutex.Unlock()
		}
	}
}

// Close ends the record and converts what is left of it. Operations that are still open stay without an answer: they become
// Unknown, returned at the greatest time in the record. Calls of Begin and End that come later are dropped; so clients
// should have ended. Close gives the first error that recording met.
func (r *Recorder) Close() error {
	r.mutex.Lock()
	if r.closed {
		r.mutex.Unlock()
		return fmt.Errorf("history: recorder %s is %w already", r.base, ErrClosed)
	}
	r.closed = true
	current := r.current.Swap(nil)
	if current == nil {
		current = r.last.Load()
	}
	close(r.stop)
	r.mutex.Unlock()
	r.background.Wait()

	r.mutex.Lock()
	defer r.mutex.Unlock()
	if d := r.draining; d != nil && d != current {
		d.claim(uint32(len(d.slots)))
		r.retire(d)
	}
	current.claim(current.freeze())
	r.retire(current)
	if r.following != nil {
		r.following.release()
		_ = os.Remove(r.following.path)
		r.following = nil
	}
	r.last.Store(nil)
	for _, c := range r.cursors {
		c.end()
	}
	ending := ending{closed: true, dropped: r.dropped.Load()}
	if err := r.failed(); err != nil {
		ending.err = err.Error()
	}
	err := finishBase(r.dir, r.base, ending)
	_ = r.names.file.Close()
	return errors.Join(r.failed(), err)
}

// wake tells a goroutine that there is something to do.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
