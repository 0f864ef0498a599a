package history

import (
	"cmp"
	"path/filepath"
	"slices"
)

// History is a recorded run in memory.
type History struct {
	Run        string // its id; "" if the files don't say
	Names      Names
	Operations []Operation // of clients, by Call
	Resource   []Operation // the witness's log: by key, and in Sequence order within a key
	Events     []Event     // by ID
	Sources    []Source    // by base name, the witness's log last
}

// Load reads the results directory dir whole: its history/, its resource log and its faults.jsonl, as Open finds them.
func Load(dir string) (*History, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := &History{}
	for op, err := range r.All() {
		if err != nil {
			return nil, err
		}
		h.Operations = append(h.Operations, op)
	}
	for op, err := range r.Resource() {
		if err != nil {
			return nil, err
		}
		h.Resource = append(h.Resource, op)
	}
	h.Run, h.Names, h.Sources = r.Run(), *r.Names(), r.Sources()
	if err := h.orderResource(dir); err != nil {
		return nil, err
	}
	if h.Events, err = r.Events(); err != nil {
		return nil, err
	}
	return h, nil
}

// orderResource puts the witness's log in its own order. The Sequence of a key counts from 1 without a gap: one that is
// missing was recorded and lost.
func (h *History) orderResource(dir string) error {
	slices.SortStableFunc(h.Resource, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Sequence(), b.Sequence()))
	})
	for _, s := range h.Sources {
		if s.Base == ResourceBase && s.Dropped > 0 {
			return nil // known to lack some
		}
	}
	var key uint32
	var want int64 = 1
	for i := range h.Resource {
		o := &h.Resource[i]
		if o.Key != key {
			key, want = o.Key, 1
		}
		if o.Sequence() != want {
			kind := ErrTruncated
			if o.Sequence() < want {
				kind = ErrCorrupt
			}
			return damaged(filepath.Join(dir, ResourceBase+".parquet"), kind, "the attempt on %q that should be number %d is number %d",
				h.Names.Key(o.Key), want, o.Sequence())
		}
		want++
	}
	return nil
}
