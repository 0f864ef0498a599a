package models

import (
	"fmt"

	"fencepost.dev/history"
)

// lockState is a lock or lease in the eyes of the store: who holds it, and which of its extensions governs.
type lockState struct {
	grant      history.GrantID // 0: free
	generation int64
	// expired: its time is over and nobody has taken it since. Only where the contract says Takeable; otherwise it is free.
	expired bool
}

func (s lockState) held() bool { return s.grant != 0 && !s.expired }

// governs reports whether the grant and generation that an expiry is about hold the lock.
func (s lockState) governs(op *history.Operation) bool {
	return s.held() && s.grant == op.Grant() && s.generation == op.Generation()
}

// lockStep is one rule: what one operation, answered in one way, requires and does.
type lockStep func(lockState, *history.Operation) (lockState, bool)

// lockRules are the rules of Step, by operation and answer. They are fields so that a test can break each and see that some
// history tells the difference.
type lockRules struct {
	granted, busy          lockStep
	extended, notExtended  lockStep
	released, notReleased  lockStep
	expires, lapses, freed lockStep
}

// newLockRules gives the rules of a lock that keeps the contract.
//
// Three rules are about expiry, which Derive turns into operations (see lockExpiry.derive). expires: the time is over; it
// frees the lock if that generation of that grant still has it, and does nothing otherwise. Where the operation that it
// belongs to may come after it in a linearization, it is told as two: lapses, which can only free, and freed, which says that
// by now it has.
func newLockRules(c Contract) lockRules {
	lapsed := lockState{}
	expire := func(s lockState) lockState { return lapsed }
	if c.AfterExpiry == Takeable {
		expire = func(s lockState) lockState { s.expired = true; return s }
	}
	refused := func(s lockState, op *history.Operation) (lockState, bool) {
		return s, !(s.held() && s.grant == op.Grant())
	}
	return lockRules{
		granted: func(s lockState, op *history.Operation) (lockState, bool) {
			return lockState{grant: op.Grant()}, !s.held()
		},
		busy: func(s lockState, op *history.Operation) (lockState, bool) {
			return s, s.held()
		},
		extended: func(s lockState, op *history.Operation) (lockState, bool) {
			return lockState{grant: op.Grant(), generation: op.Generation()}, s.grant == op.Grant()
		},
		notExtended: refused,
		released: func(s lockState, op *history.Operation) (lockState, bool) {
			return lockState{}, s.grant == op.Grant()
		},
		notReleased: refused,
		expires: func(s lockState, op *history.Operation) (lockState, bool) {
			if s.governs(op) {
				return expire(s), true
			}
			return s, true
		},
		lapses: func(s lockState, op *history.Operation) (lockState, bool) {
			return expire(s), s.governs(op)
		},
		freed: func(s lockState, op *history.Operation) (lockState, bool) {
			return s, !s.governs(op)
		},
	}
}

func (r *lockRules) step(s lockState, op *history.Operation) (lockState, bool) {
	refused := op.Outcome == history.Refused
	switch op.Kind {
	case history.Acquire:
		if refused {
			return r.busy(s, op)
		}
		return r.granted(s, op)
	case history.Extend:
		if refused {
			return r.notExtended(s, op)
		}
		return r.extended(s, op)
	case history.Release:
		if refused {
			return r.notReleased(s, op)
		}
		return r.released(s, op)
	case history.Expire:
		switch op.Outcome {
		case history.Refused:
			return r.freed(s, op)
		case history.Unknown:
			return r.lapses(s, op)
		}
		return r.expires(s, op)
	}
	return s, false
}

// lockSpec is the specification of a lock or lease that keeps in's contract.
func lockSpec(in *Input) Spec[lockState] {
	return lockSpecOf(newLockRules(in.Contract), newLockExpiry(in))
}

func lockSpecOf(rules lockRules, expiry lockExpiry) Spec[lockState] {
	return Spec[lockState]{
		Name: "lock",
		Init: func() lockState { return lockState{} },
		Step: rules.step,
		ReadOnly: func(op *history.Operation) bool {
			return op.Outcome == history.Refused
		},
		Class: lockClass,
		Relax: func(op *history.Operation) bool {
			return op.Outcome == history.Refused && op.Kind != history.Expire
		},
		Derive:            expiry.derive,
		DescribeState:     describeLock,
		DescribeOperation: describeLockOperation,
	}
}

// lockClass: every "busy" means the same, whoever is told. That a given grant is not the holder means the same whether an
// extension or a release was told. Grants differ: each is another holder.
func lockClass(op *history.Operation) uint64 {
	if op.Outcome != history.Refused || op.Flags&history.Optional != 0 {
		return 0
	}
	switch op.Kind {
	case history.Acquire:
		return 1
	case history.Extend, history.Release:
		return uint64(op.Grant()) // at least 1<<48
	}
	return 0
}

// isLockOperation says which recorded operations the spec is about. What failed had no effect, and being told of a loss is
// the end of a client's belief, not of the hold.
func isLockOperation(op *history.Operation) bool {
	switch op.Kind {
	case history.Acquire, history.Extend, history.Release:
		return op.Outcome != history.Failed
	}
	return false
}

func describeLock(s lockState) string {
	switch {
	case s.grant == 0:
		return "free"
	case s.expired:
		return "expired, last held by " + grantName(s.grant)
	case s.generation > 0:
		return fmt.Sprintf("held by %s, extended (%d)", grantName(s.grant), s.generation)
	}
	return "held by " + grantName(s.grant)
}

// grantName is a grant's name without a history's names: process, client and sequence, as NewGrantID packs them.
func grantName(g history.GrantID) string {
	return fmt.Sprintf("%d/c%d#%d", int64(g)>>48-1, uint16(g>>32), uint32(g))
}

func describeLockOperation(op *history.Operation) string {
	what := fmt.Sprintf("%s(%s)", op.Kind, grantName(op.Grant()))
	switch {
	case op.Kind == history.Expire && op.Outcome == history.Refused:
		return what + " → over by now"
	case op.Kind == history.Expire:
		return what
	case op.Kind == history.Acquire && op.Outcome == history.Refused:
		return what + " → busy"
	case op.Outcome == history.Refused:
		return what + " → not the holder"
	case op.Kind == history.Acquire && op.Outcome == history.OK && op.Token() != 0:
		return fmt.Sprintf("%s → granted, token %d", what, op.Token())
	case op.Kind == history.Acquire && op.Outcome == history.OK:
		return what + " → granted"
	}
	return what + " → " + op.Outcome.String()
}
