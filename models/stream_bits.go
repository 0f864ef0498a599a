package models

// bits is a set of slots. Arrays of a fixed length can be compared, copied and kept in configurations without allocation;
// each length is compiled for itself.
type bits interface {
	[1]uint64 | [4]uint64 | [16]uint64 | [64]uint64
}

// maxPending is how many operations can be pending at once in the widest representation.
const maxPending = 64 * 64

func has[M bits](m *M, i int32) bool { return (*m)[i>>6]>>(uint(i)&63)&1 != 0 }

func include[M bits](m *M, i int32) { (*m)[i>>6] |= 1 << (uint(i) & 63) }

func exclude[M bits](m *M, i int32) { (*m)[i>>6] &^= 1 << (uint(i) & 63) }

// within reports whether all of a is in b.
func within[M bits](a, b *M) bool {
	for w := range len(*a) {
		if (*a)[w]&^(*b)[w] != 0 {
			return false
		}
	}
	return true
}

func unite[M bits](m, more *M) {
	for w := range len(*m) {
		(*m)[w] |= (*more)[w]
	}
}

// widened is the same set in another length. What does not fit must not be there.
func widened[M, N bits](m *M) (n N) {
	for w := range min(len(*m), len(n)) {
		n[w] = (*m)[w]
	}
	return n
}
