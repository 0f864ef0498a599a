package history

import "time"

// Operations of locks and leases. A grant is one successful acquire; its GrantID is chosen by the client before it asks, so
// that an acquire whose answer was lost has one too. Ids are unique in a run and never 0.
const (
	Acquire Kind = 10 + iota // ok: granted; refused: busy
	Extend                   // ok: the time-to-live runs anew; refused: not the holder
	Release                  // ok: freed; refused: not the holder
	Lost                     // the subject told its client, unasked, that the hold is lost (Call = Return)
	Expire                   // synthetic: the grant's generation reaches its time-to-live
)

var _ = registerKinds("lock", Acquire, "acquire", "extend", "release", "lost", "expire")

// Token is the fencing token of a grant; 0 if the subject gives none.
func (o *Operation) Token() int64 { return o.A }

// SetToken records the fencing token of a grant.
func (o *Operation) SetToken(t int64) { o.A = t }

// TTL is the time-to-live asked for by an Acquire or Extend.
func (o *Operation) TTL() time.Duration { return time.Duration(o.B) }

// SetTTL records the time-to-live asked for.
func (o *Operation) SetTTL(d time.Duration) { o.B = int64(d) }

// Grant is the grant that the operation makes, extends, releases or is made under.
func (o *Operation) Grant() GrantID { return GrantID(o.C) }

// SetGrant records the grant.
func (o *Operation) SetGrant(g GrantID) { o.C = int64(g) }

// Validity is how long the subject said that the grant may be relied on from the call on (Redlock's validity time); 0 if
// it said nothing, and then it is the TTL. Acquire and Extend only.
func (o *Operation) Validity() time.Duration {
	if o.Kind == Acquire && o.D != 0 {
		return time.Duration(o.D)
	}
	return o.TTL()
}

// SetValidity records what the subject said of an Acquire's validity.
func (o *Operation) SetValidity(d time.Duration) { o.D = int64(d) }

// Generation numbers the extensions of one grant from 1; the Acquire itself is generation 0. Extend and Expire only.
func (o *Operation) Generation() int64 {
	if o.Kind == Acquire {
		return 0
	}
	return o.D
}

// SetGeneration records which extension of its grant it is.
func (o *Operation) SetGeneration(n int64) { o.D = n }

// GrantID names a grant: the worker's incarnation, the client, and a sequence number of that client.
type GrantID int64

// NewGrantID packs a grant's name. process is the number that the coordinator gave this incarnation of the worker.
func NewGrantID(process, client uint16, sequence uint32) GrantID {
	return GrantID(int64(process+1)<<48 | int64(client)<<32 | int64(sequence))
}
