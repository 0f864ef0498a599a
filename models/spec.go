// Package models is what correct means: the sequential specification of each primitive, invariants read off the history,
// the engines that decide, and how their answers combine into one verdict. It imports only history.
package models

import "fencepost.dev/history"

// Spec is the sequential specification of one object: what a single-threaded, instantaneous implementation would do. It is
// written once and run by every engine. All functions are pure and safe to call concurrently.
//
// Unknown operations are the engines' business: an engine may place one anywhere in its interval or leave it out, and calls
// Step on it only to place it. Step sees such an operation with Outcome Unknown and treats it as having had its effect.
type Spec[S comparable] struct {
	// Name is the check's name for messages, such as "lock".
	Name string
	// Init is the state of an object that nobody has touched.
	Init func() S
	// Step applies one operation; false: this answer is impossible in this state.
	Step func(S, *history.Operation) (S, bool)
	// ReadOnly says that an operation, given its answer, changes no state, whatever the state. Of a timed spec: it changes only
	// what is known, and the state before it dominates that after it.
	ReadOnly func(*history.Operation) bool
	// Class groups operations that are interchangeable: same effect, same answer. 0 is unlike any other.
	Class func(*history.Operation) uint64
	// Relax says that an operation is a refusal which the relaxed spec accepts anywhere. Nil: nothing can be relaxed.
	Relax func(*history.Operation) bool
	// Derive gives the synthetic operations (expiries) that the operations of one partition imply. Unknown operations carry
	// their bound in Return already. Nil: none.
	Derive func([]history.Operation) []history.Operation
	// Partition names the object that an operation is on. Nil: its Key.
	Partition func(*history.Operation) uint32
	// Timed: Step reads Call and Return, and S carries the time of the linearization so far. A wider interval must then be as
	// legal and lead to a state that dominates, and so must a state that dominates.
	Timed bool
	// Dominates says that whatever can follow b can follow a. Nil: only equal states.
	Dominates func(a, b S) bool
	// DescribeState and DescribeOperation say them in words, for witnesses and visualizations.
	DescribeState     func(S) string
	DescribeOperation func(*history.Operation) string
}

// Contract is what a subject says of itself, and is held to.
type Contract struct {
	// AfterExpiry: what an expired grant can still do.
	AfterExpiry AfterExpiry `json:"after_expiry,omitempty"`
	// LateBy is how long after expiry a refusal is still legitimate, as a multiple of the TTL: a lease that judges expiry by
	// watching the record may answer busy for a whole further TTL (1).
	LateBy float64 `json:"late_by,omitempty"`
	// Renews says who extends a hold: the client, whose extensions are in the history, or the subject itself.
	Renews Renews `json:"renews,omitempty"`
	// Refusals says whether a refusal means that the object really wasn't free.
	Refusals Refusals `json:"refusals,omitempty"`
	// Tokens: grants carry fencing tokens.
	Tokens bool `json:"tokens,omitempty"`
	// ClockSkew bounds, in nanoseconds, how far apart the clocks may be that the subject relies on.
	ClockSkew int64 `json:"clock_skew_ns,omitempty"`
	// RequestBound: for how long, in nanoseconds, a request can still take effect after its client gave up. 0: as the path
	// bounds it (reference clients); Unbounded: nobody knows (programs of others).
	RequestBound int64 `json:"request_bound_ns,omitempty"`
}

// Unbounded is the RequestBound of a subject that can't tell when an abandoned request can no longer take effect.
const Unbounded = int64(1<<63 - 1)

type (
	// AfterExpiry is part of a Contract.
	AfterExpiry string
	// Renews is part of a Contract.
	Renews string
	// Refusals is part of a Contract.
	Refusals string
)

const (
	// Gone: an expired grant can be neither renewed nor released. The zero Contract means Gone.
	Gone AfterExpiry = "gone"
	// Takeable: it can, until somebody else takes it.
	Takeable AfterExpiry = "takeable"

	// RenewsClient: every extension is an operation of the history. The zero Contract means it.
	RenewsClient Renews = "client"
	// RenewsItself: heartbeats inside the subject are not in the history.
	RenewsItself Renews = "itself"

	// Exact: a refusal means that it really was not free. The zero Contract means it.
	Exact Refusals = "exact"
	// MayBeSpurious: a free object may be refused too.
	MayBeSpurious Refusals = "may-be-spurious"
)
