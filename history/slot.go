package history

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// Slot is where a recorder keeps an operation that has begun; it is handed back to End. The zero Slot is that of an
// operation that was dropped, and End does nothing with it.
type Slot struct {
	segment *segment
	index   uint32
}

// moving is a Commit that is seen in segments only: the operation was open when its segment had to go, and lives on in the
// first slots of a later segment, if that one exists. Otherwise it is still here.
const moving = Completed + 1

// operationSize is the size of an Operation in bytes, in memory and in a segment.
const operationSize = int64(unsafe.Sizeof(Operation{}))

// word is the slot's last four bytes (Kind, Outcome, Commit, Flags), which are always written in one store, last: whoever
// sees its Commit sees the other 60 bytes that belong to it. That holds between the threads of a process, and for what
// SIGKILL leaves in the page cache.
func (o *Operation) word() *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&o.Kind)) }

func commitOf(word uint32) Commit { return Commit(word >> 16) }

func withCommit(word uint32, c Commit) uint32 { return word&^0xff0000 | uint32(c)<<16 }

// segment is a mapped file of slots. The slots are handed out by next; whoever got a slot's number writes it. Everything
// else in it belongs to the recorder, under its mutex.
//
// The addresses stay valid for as long as anybody holds a Slot of it: release puts untouched zero pages in place of the
// file, and the addresses themselves are given back when the garbage collector finds that no Slot is left. So an End that
// comes late finds its slot empty, and asks the recorder where it went.
type segment struct {
	next atomic.Uint64 // number of the next free slot; may run past the end
	_    [56]byte      // next is written by every client; keep it off the line that all of them read

	slots []Operation
	half  uint32 // when this slot is taken, the following segment is prepared
	part  uint32
	path  string
	mapping

	firstOwn uint32 // slots below were moved here
	settled  uint32 // every slot below is Completed
	// origins are the Slots that clients hold of the operations which were moved into the first slots here.
	origins []Slot
}

// begin takes a slot and commits op to it as Invoked; false: the segment is full.
func (s *segment) begin(op *Operation) (uint32, bool) {
	i := s.next.Add(1) - 1
	if i >= uint64(len(s.slots)) {
		return 0, false
	}
	o := &s.slots[i]
	o.Call, o.Return = op.Call, op.Return
	o.A, o.B, o.C, o.D = op.A, op.B, op.C, op.D
	o.Key, o.Worker, o.Client, o.Node, o.Error = op.Key, op.Worker, op.Client, op.Node, op.Error
	o.word().Store(uint32(op.Kind) | uint32(Invoked)<<16 | uint32(op.Flags)<<24)
	return uint32(i), true
}

// end completes a slot in place; false: it isn't open here.
//
// The answer is written before it is known whether the slot is still the client's; that saves a locked instruction. If the
// operation was moved meanwhile, the exchange fails, and End completes it where it is now. So an open operation that is
// found in a segment may have some of its answer's fields already; its outcome is unknown all the same.
func (s *segment) end(i uint32, op *Operation) bool {
	o := &s.slots[i]
	w := o.word()
	old := w.Load()
	if commitOf(old) != Invoked {
		return false
	}
	o.Return = op.Return
	o.A, o.B, o.C, o.D = op.A, op.B, op.C, op.D
	o.Node, o.Error = op.Node, op.Error
	ended := w.CompareAndSwap(old, old&0xff|uint32(op.Outcome)<<8|uint32(Completed)<<16|uint32(op.Flags)<<24)
	runtime.KeepAlive(s) // and with it the addresses
	return ended
}

// frozen is added to next when no more slots are to be had.
const frozen = 1 << 62

// taken is how many slots have been handed out.
func (s *segment) taken() uint32 { return uint32(min(s.next.Load()&^frozen, uint64(len(s.slots)))) }

// freeze hands out no more slots, and says how many it has.
func (s *segment) freeze() uint32 {
	return uint32(min(s.next.Add(frozen)-frozen, uint64(len(s.slots))))
}

// isSettled reports whether every slot is Completed.
func (s *segment) isSettled() bool {
	for int(s.settled) < len(s.slots) && commitOf(s.slots[s.settled].word().Load()) == Completed {
		s.settled++
	}
	return int(s.settled) == len(s.slots)
}

// claim takes the open operations among the first n slots away from their clients: their slots are moving, and End can no
// longer complete them. It waits for clients that have taken a slot and are just writing it; that is a few stores, and as
// long as the scheduler lets them wait for a processor.
func (s *segment) claim(n uint32) []uint32 {
	var open []uint32
	for i := s.settled; i < n; i++ {
		w := s.slots[i].word()
		for spins := 0; ; spins++ {
			old := w.Load()
			c := commitOf(old)
			if c == Invoked && w.CompareAndSwap(old, withCommit(old, moving)) {
				open = append(open, i)
				break
			}
			if c == Completed || c == moving {
				break
			}
			if spins < 100 {
				runtime.Gosched()
			} else {
				time.Sleep(50 * time.Microsecond)
			}
		}
	}
	return open
}

// unclaim gives operations back to their clients.
func (s *segment) unclaim(open []uint32) {
	for _, i := range open {
		w := s.slots[i].word()
		w.Store(withCommit(w.Load(), Invoked))
	}
}

// snapshot copies a slot that is open or Completed; false: it is neither yet.
func (s *segment) snapshot(i uint32) (Operation, bool) {
	o := &s.slots[i]
	w := o.word().Load()
	op := *o
	op.setWord(w)
	switch op.Commit {
	case moving:
		op.Commit = Invoked
	case Free:
		return op, false
	}
	return op, true
}

func (o *Operation) setWord(w uint32) {
	o.Kind, o.Outcome, o.Commit, o.Flags = Kind(w), Outcome(w>>8), Commit(w>>16), Flags(w>>24)
}
