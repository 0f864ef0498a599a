package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

const (
	minTime = -1 << 63
	maxTime = 1<<63 - 1
)

// converter turns segments into parts. It keeps its buffers: one segment, and its order.
type converter struct {
	slots []Operation
	order []sortKey
}

type sortKey struct {
	call  int64
	index uint32
}

// convertLive converts a retired segment of a recorder that goes on. What was moved out of it is in a later segment.
func (c *converter) convertLive(dir, base, path string) error {
	names, err := readNames(namesPath(dir, base))
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	h, err := readHeader(f)
	if err != nil {
		return err
	}
	if c.slots, err = readSegment(f, h, c.slots); err != nil {
		return err
	}
	ops, err := judge(path, c.slots, names, maxTime, func(uint32) bool { return true })
	if err != nil {
		return err
	}
	return c.write(dir, path, ops, names, partMetadata{Run: names.base.Run, Base: base, Part: h.part, Number: names.base.Number, Streamed: names.base.Streamed})
}

// write makes a part of ops and removes the segment at path.
func (c *converter) write(dir, path string, ops []Operation, names *nameTable, meta partMetadata) error {
	w, err := newPartWriter(partPath(dir, meta.Base, meta.Part), names, meta)
	if err != nil {
		return err
	}
	defer w.abandon()
	for _, k := range c.sorted(ops) {
		if err := w.write(&ops[k.index]); err != nil {
			return err
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// sorted orders ops by Call, and those of one Call as they were begun.
func (c *converter) sorted(ops []Operation) []sortKey {
	c.order = c.order[:0]
	for i := range ops {
		c.order = append(c.order, sortKey{ops[i].Call, uint32(i)})
	}
	slices.SortFunc(c.order, func(a, b sortKey) int {
		return cmp.Or(cmp.Compare(a.call, b.call), cmp.Compare(a.index, b.index))
	})
	return c.order
}

// judge keeps what slots say that happened, in their order, and gives up on a file that no recorder wrote. An operation
// without an answer becomes Unknown, returned at unanswered. moved says of a moving slot that its operation is elsewhere.
// slots is overwritten.
func judge(path string, slots []Operation, names *nameTable, unanswered int64, moved func(index uint32) bool) ([]Operation, error) {
	ops := slots[:0]
	for i := range slots {
		o := slots[i]
		switch o.Commit {
		case Free:
			continue
		case moving:
			if moved(uint32(i)) {
				continue
			}
			fallthrough
		case Invoked:
			o.Commit, o.Outcome, o.Return = Invoked, Unknown, max(unanswered, o.Call)
		case Completed:
			if o.Return < o.Call {
				return nil, damaged(path, ErrCorrupt, "the operation in slot %d returned before it was called", i)
			}
		default:
			return nil, damaged(path, ErrCorrupt, "slot %d is in no state that there is", i)
		}
		switch {
		case kinds[o.Kind].name == "":
			return nil, damaged(path, ErrCorrupt, "slot %d holds an operation of no kind that there is (%d)", i, o.Kind)
		case int(o.Outcome) >= len(outcomeNames):
			return nil, damaged(path, ErrCorrupt, "slot %d holds no outcome that there is (%d)", i, o.Outcome)
		case int(o.Key) >= len(names.keys) || int(o.Error) >= len(names.errors):
			return nil, damaged(path, ErrTruncated, "slot %d refers to a name that the names file beside it does not have", i)
		}
		ops = append(ops, o)
	}
	return ops, nil
}

// leftovers are the segments of one base that are not parts yet.
type leftovers struct {
	paths   map[uint32]string
	parts   []uint32        // in order
	moved   map[origin]bool // operations that a later segment holds
	latest  int64           // the greatest time in them
	first   map[uint32]int64
	dropped int64
}

// surveyLeftovers reads the segments of a base once, for what must be known of all before one is converted.
func surveyLeftovers(paths map[uint32]string) (*leftovers, error) {
	l := &leftovers{paths: paths, moved: map[origin]bool{}, latest: minTime, first: map[uint32]int64{}}
	var slots []Operation
	for part := range paths {
		l.parts = append(l.parts, part)
	}
	slices.Sort(l.parts)
	for _, part := range l.parts {
		err := func() error {
			f, err := os.Open(paths[part])
			if err != nil {
				return fmt.Errorf("history: %w", err)
			}
			defer f.Close()
			h, err := readHeader(f)
			if err != nil {
				return err
			}
			if h.part != part {
				return damaged(paths[part], ErrCorrupt, "it is part %d by its header", h.part)
			}
			for _, o := range h.origins {
				l.moved[o] = true
			}
			l.dropped += h.dropped
			if slots, err = readSegment(f, h, slots); err != nil {
				return err
			}
			first := int64(maxTime)
			for i := range slots {
				o := &slots[i]
				if o.Commit == Free {
					continue
				}
				first = min(first, o.Call)
				l.latest = max(l.latest, o.Call)
				if o.Commit == Completed {
					l.latest = max(l.latest, o.Return)
				}
			}
			l.first[part] = first
			return nil
		}()
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// read gives the operations of one left-over segment; unanswered is when those without an answer were given up.
func (l *leftovers) read(part uint32, names *nameTable, unanswered int64, slots []Operation) ([]Operation, error) {
	f, err := os.Open(l.paths[part])
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	h, err := readHeader(f)
	if err != nil {
		return nil, err
	}
	if slots, err = readSegment(f, h, slots); err != nil {
		return nil, err
	}
	return judge(f.Name(), slots, names, unanswered, func(i uint32) bool { return l.moved[origin{part, i}] })
}
