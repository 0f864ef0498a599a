package history

// Attempts on a protected resource. A client records its own view of them (Call to Return); the witness records each as it
// decided it (Call = Return = the decision), in the order of Sequence, and that is what fencing and lost-update read.
const (
	Read  Kind = 20 + iota // ok: the version was read; refused: the fence was higher
	Write                  // ok: accepted; refused: the fence was higher
)

var _ = registerKinds("resource", Read, "read", "write")

// Token (A) and Grant (C) are those of lock.go: under which grant the attempt was made, with which token, 0 for none.

// Version is the resource's version: for a Read the one that was read, for a Write the one that it was based on.
// A Write that is accepted makes the next version.
func (o *Operation) Version() int64 { return o.B }

// SetVersion records the version read or based on.
func (o *Operation) SetVersion(v int64) { o.B = v }

// Sequence is the attempt's place in the resource's own order, per key, from 1.
func (o *Operation) Sequence() int64 { return o.D }

// SetSequence records the attempt's place.
func (o *Operation) SetSequence(n int64) { o.D = n }
