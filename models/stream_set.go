package models

import "hash/maphash"

// configuration is what can be true at one instant: the object's state, and which of the pending operations have had their
// effect ("are spent").
type configuration[S comparable, M bits] struct {
	state S
	spent M
}

// linearly is how many configurations are looked through one by one; more are hashed.
const linearly = 12

// set is a set of configurations without those that others of it dominate, as far as adding them one by one tells: an element
// that a later one dominates may stay. Cleared, it keeps its memory for the next use.
type set[S comparable, M bits] struct {
	items []configuration[S, M]
	table []int32 // open addressing: index into items plus one; in use beyond linearly, if indexed
	// indexed: the table is of the present items.
	indexed bool
	most    int // how many there may be
	seed    maphash.Seed
}

// rules say when a configuration is not needed beside another.
type rules[S comparable, M bits] struct {
	optional  M
	dominates func(a, b S) bool
}

// covers reports whether whatever can follow b can follow a: they have spent the same mandatory operations, a has spent no
// optional one that b hasn't, and a's state is b's or dominates it.
//
// Proof for the optional ones. Let a linearization continue b. Each operation that it places is unspent in b; so it is unspent
// in a, which has spent fewer. Placed in the same order from a state that is equal, or dominates, it is legal again. The
// mandatory operations that it must place are the same. What a has left over is optional and is left out. This is the design's
// rule without which n unknown operations make 2^n configurations.
func (r *rules[S, M]) covers(a, b *configuration[S, M]) bool {
	for w := range len(a.spent) {
		x, y := a.spent[w], b.spent[w]
		if x&^y != 0 || y&^x&^r.optional[w] != 0 {
			return false
		}
	}
	return a.state == b.state || r.dominates != nil && r.dominates(a.state, b.state)
}

func (s *set[S, M]) clear() { s.items, s.indexed = s.items[:0], false }

// add adds c unless it is covered. If c covers another, it may take that one's place, if replace says so.
func (s *set[S, M]) add(r *rules[S, M], c *configuration[S, M], replace bool) bool {
	if len(s.items) < linearly {
		for i := range s.items {
			if r.covers(&s.items[i], c) {
				return false
			}
			if replace && r.covers(c, &s.items[i]) {
				s.items[i] = *c
				return true
			}
		}
		s.items = append(s.items, *c)
		return true
	}
	if !s.indexed || 2*len(s.items) >= len(s.table) {
		s.rehash(r)
	}
	mask := uint64(len(s.table) - 1)
	at := s.hash(r, c) & mask
	for ; s.table[at] != 0; at = (at + 1) & mask {
		other := &s.items[s.table[at]-1]
		if r.covers(other, c) {
			return false
		}
		if replace && r.covers(c, other) { // and so hashes alike
			*other = *c
			return true
		}
	}
	s.items = append(s.items, *c)
	s.table[at] = int32(len(s.items))
	return true
}

// hash is equal for configurations of which one may cover the other.
func (s *set[S, M]) hash(r *rules[S, M], c *configuration[S, M]) uint64 {
	var h uint64
	if r.dominates == nil {
		h = maphash.Comparable(s.seed, c.state)
	}
	for w := range len(c.spent) {
		h = (h ^ c.spent[w]&^r.optional[w]) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// rehash makes the table at least four times as long as there are items.
func (s *set[S, M]) rehash(r *rules[S, M]) {
	s.indexed = true
	n := 64
	for n < 4*len(s.items) {
		n *= 2
	}
	if cap(s.table) < n {
		s.table = make([]int32, n)
	} else {
		s.table = s.table[:n]
		clear(s.table)
	}
	mask := uint64(n - 1)
	for i := range s.items {
		at := s.hash(r, &s.items[i]) & mask
		for s.table[at] != 0 {
			at = (at + 1) & mask
		}
		s.table[at] = int32(i + 1)
	}
}
