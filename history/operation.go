// Package history is what happened: every operation of every client, every attempt on a protected resource, and every
// fault, on one time line. It imports nothing else of Fencepost.
package history

import (
	"fmt"
	"slices"
)

// Operation is one call of one client: 64 bytes, for every primitive. What A to D mean depends on Kind; the accessors in
// <primitive>.go give them names. What stores and loads operations copies them; nothing else touches them.
//
// Times are nanoseconds since the run's epoch on the coordinator's monotonic clock. The interval is closed: the operation
// took effect, if it did, at some instant t with Call ≤ t ≤ Return. For an Unknown outcome Return is when the client gave
// up; the effect may come later (see models.Prepare).
type Operation struct {
	Call, Return int64
	A, B, C, D   int64
	Key          uint32 // index into Names.Keys
	Worker       uint16 // index into Names.Workers: one entry per incarnation of a worker
	Client       uint16 // within the worker, from 0
	Node         uint16 // the store node that was asked, from 0; NoNode if it isn't known
	Error        uint16 // index into Names.Errors; 0 is no error
	Kind         Kind
	Outcome      Outcome
	Commit       Commit
	Flags        Flags
}

// NoNode is the Node of an operation whose store node isn't known, or that went to several.
const NoNode = ^uint16(0)

// Outcome is what a client knows of its operation.
type Outcome uint8

const (
	// Unknown: it may or may not have taken effect, or may still take it. It is the zero value on purpose: an operation
	// whose answer was never recorded is unknown.
	Unknown Outcome = iota
	// OK: it took effect and the answer is known.
	OK
	// Refused: a definite, legitimate "no": busy, rejected, stale, not found.
	Refused
	// Failed: it definitely had no effect: never sent, or the store answered that it did not do it.
	Failed
)

var outcomeNames = [...]string{"unknown", "ok", "refused", "failed"}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// ParseOutcome is the inverse of String.
func ParseOutcome(s string) (Outcome, error) {
	for i, name := range outcomeNames {
		if name == s {
			return Outcome(i), nil
		}
	}
	return Unknown, fmt.Errorf("history: no outcome is called %q", s)
}

// Commit says how far a slot of a segment got. It is written last, so that a slot found after SIGKILL tells the truth.
type Commit uint8

const (
	Free      Commit = iota // never used
	Invoked                 // the call is recorded; the answer is not
	Completed               // the answer is recorded too
)

// Flags mark what is true of one operation whatever its kind.
type Flags uint8

const (
	// Synthetic: derived from other operations (an expiry), not called by any client.
	Synthetic Flags = 1 << iota
	// Degraded: answered without the store, by a declared fallback.
	Degraded
	// Optional: may be left out of a linearization. Set by models on unknown operations; never recorded.
	Optional
)

// Kind is what was called. Kinds are numbered once for all primitives, ten to a primitive; each primitive's file registers
// its own, with the names that histories and reports use.
type Kind uint8

type kindInfo struct{ primitive, name string }

var kinds [256]kindInfo

// registerKinds gives names to consecutive kinds from first on. It runs during package initialization only.
func registerKinds(primitive string, first Kind, names ...string) struct{} {
	for i, name := range names {
		kinds[int(first)+i] = kindInfo{primitive, name}
	}
	return struct{}{}
}

// String is the kind's name within its primitive, such as "acquire".
func (k Kind) String() string {
	if kinds[k].name == "" {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kinds[k].name
}

// Primitive is the primitive whose kind it is, such as "lock".
func (k Kind) Primitive() string { return kinds[k].primitive }

// KindNames are the names of all kinds of all primitives.
func KindNames() []string {
	var names []string
	for _, info := range kinds {
		if info.name != "" && !slices.Contains(names, info.name) {
			names = append(names, info.name)
		}
	}
	return names
}

// ParseKind finds a kind by primitive and name.
func ParseKind(primitive, name string) (Kind, error) {
	for i, info := range kinds {
		if info.name == name && info.primitive == primitive {
			return Kind(i), nil
		}
	}
	return 0, fmt.Errorf("history: %s has no operation called %q", primitive, name)
}
