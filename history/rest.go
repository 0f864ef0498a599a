package history

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
)

// Lack is what a Receiver has not of one base, when it is asked: what somebody who has the dead sender's files needs to send
// the rest.
type Lack struct {
	Sequence uint64              `json:"sequence"` // of the last batch that came
	Names    int64               `json:"names"`    // bytes of the sender's names file that came
	Closed   bool                `json:"closed"`   // the last batch came: nothing lacks
	Parts    map[uint32]PartLack `json:"parts"`    // those that were told of
}

// PartLack is what lacks of one part.
type PartLack struct {
	Skip uint32      `json:"skip"` // the first slot that is the part's own
	Open [][2]uint32 `json:"open"` // slots, from and to (exclusive), of operations that did not come completed
	Told []uint32    `json:"told"` // those of Open that came as invoked
}

func (p *PartLack) isOpen(slot uint32) bool {
	return slices.ContainsFunc(p.Open, func(r [2]uint32) bool { return r[0] <= slot && slot < r[1] })
}

// Lack says what of a base is not here, and takes no more from its sender, of which a batch may still be on its way: only
// what Rest gives from then on.
func (r *Receiver) Lack(base string) (Lack, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case r.closed:
		return Lack{}, fmt.Errorf("history: the receiver is %w", ErrClosed)
	case r.dir == "":
		return Lack{}, errors.New("history: a receiver that keeps nothing can't say what it lacks")
	}
	r.resting[base] = true
	l := Lack{Parts: map[uint32]PartLack{}}
	from := r.bases[base]
	if from == nil {
		return l, nil
	}
	l.Sequence, l.Names, l.Closed = from.sequence, from.named, from.ended
	var slots []Operation
	for part, s := range from.segments {
		p := PartLack{Skip: s.skip}
		if s.file != nil {
			h := &segmentHeader{size: s.header, capacity: s.capacity}
			if cap(slots) < int(h.capacity) {
				slots = make([]Operation, h.capacity)
			}
			slots = slots[:h.capacity]
			if _, err := s.file.ReadAt(operationBytes(slots), int64(h.size)); err != nil {
				return Lack{}, fmt.Errorf("history: reading %s: %w", s.file.Name(), err)
			}
			for i := s.skip; i < s.capacity; i++ {
				switch slots[i].Commit {
				case Completed:
					continue
				case Invoked:
					p.Told = append(p.Told, i)
				}
				if n := len(p.Open); n > 0 && p.Open[n-1][1] == i {
					p.Open[n-1][1]++
				} else {
					p.Open = append(p.Open, [2]uint32{i, i + 1})
				}
			}
		}
		l.Parts[part] = p
	}
	return l, nil
}

// Rest gives the batches that a Receiver lacks of what a dead process recorded in dir under base; after the last of them it
// has all, and the record counts as closed. An error says that some can't be sent: a segment became Parquet before all of it
// was, and its slots are not known any more. The error wraps ErrInUse if the process lives, fs.ErrNotExist if it recorded
// nothing.
func Rest(dir, base string, lack Lack) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(namesPath(dir, base))
		if err != nil {
			yield(nil, fmt.Errorf("history: %w", err))
			return
		}
		defer f.Close()
		b := batch{base: base, flags: batchRest, sequence: lack.Sequence}
		var names []byte
		if err = lock(f); err == nil {
			if names, err = os.ReadFile(f.Name()); err == nil && int64(len(names)) < lack.Names {
				err = damaged(f.Name(), ErrTruncated, "%d bytes of it were sent, it has %d", lack.Names, len(names))
			}
		}
		var updates []Update
		if err == nil {
			updates, err = b.gather(dir, lack)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		names = names[lack.Names:]
		if lack.Sequence == 0 && len(wholeRecords(names)) == 0 {
			yield(nil, damaged(f.Name(), ErrTruncated, "its first record is not there"))
			return
		}
		for b.flags&batchLast == 0 {
			if b.sequence++; b.sequence == 1 {
				b.flags |= batchFirst
			}
			// Names first, then what refers to them. A torn one at the end is referred to by nothing.
			if b.names = wholeRecords(names); len(b.names) == 0 {
				n := min(len(updates), maxUpdates)
				b.updates, updates = updates[:n], updates[n:]
				if len(updates) == 0 {
					b.flags |= batchLast
				}
			}
			names = names[len(b.names):]
			if !yield(b.encode(), nil) {
				return
			}
			b.flags &^= batchFirst
			b.segments, b.updates = nil, nil
		}
	}
}

// gather reads the segments that are left: it gives the operations that lack, and enters the segments and what was dropped.
func (b *batch) gather(dir string, lack Lack) ([]Update, error) {
	bases, err := listBases(dir)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(bases, func(f *baseFiles) bool { return f.base == b.base })
	if i < 0 {
		return nil, fmt.Errorf("history: %s: %w", namesPath(dir, b.base), fs.ErrNotExist)
	}
	files := bases[i]
	// Later segments first: they say which operations of the earlier ones are elsewhere.
	moved := map[origin]bool{}
	var updates []Update
	for _, part := range slices.Backward(slices.Sorted(maps.Keys(files.segments))) {
		h, slots, err := openSegment(files.segments[part])
		if err != nil {
			return nil, err
		}
		b.dropped += h.dropped
		before := len(updates)
		for i := range slots {
			op, at := slots[i], origin{part, uint32(i)}
			if op.Commit == Free || moved[at] {
				continue
			}
			if i < len(h.origins) {
				at = h.origins[i]
				moved[at] = true
				if p, known := lack.Parts[at.part]; known && at.index < p.Skip || !known && files.segments[at.part] == "" {
					return nil, fmt.Errorf("history: where an operation of %s was begun is not known any more: it was moved twice", files.segments[part])
				}
			}
			p, known := lack.Parts[at.part]
			if known && !p.isOpen(at.index) {
				continue
			}
			if op.Commit != Completed {
				if slices.Contains(p.Told, at.index) {
					continue
				}
				op.Commit, op.Outcome, op.Return = Invoked, Unknown, op.Call
			}
			updates = append(updates, Update{updateID(at.part, at.index), op})
		}
		// The one prepared to follow a full one, that nothing was written to, is of no interest.
		if _, known := lack.Parts[part]; !known && (part == 1 || len(updates) > before || len(b.segments) > 0) {
			b.segments = append(b.segments, segmentInfo{part, h.capacity, uint32(len(h.origins))})
		}
	}
	if b.dropped > 0 {
		b.err = "the recorder could not write, and died before it said why"
	}
	for part, path := range files.parts {
		p, known := lack.Parts[part]
		for _, r := range p.Open {
			for i := r[0]; i < r[1] && known; i++ {
				known = moved[origin{part, i}]
			}
		}
		if !known {
			return nil, fmt.Errorf("history: %s was not sent whole before it became Parquet", path)
		}
	}
	return updates, nil
}

func openSegment(path string) (*segmentHeader, []Operation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	h, err := readHeader(f)
	if err != nil {
		return nil, nil, err
	}
	slots, err := readSegment(f, h, nil)
	return h, slots, err
}
