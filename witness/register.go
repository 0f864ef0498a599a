// Package witness is the server side of what a lock protects: a register, kept by the harness and never faulted, so that what happened to them is known and not inferred; and the interface that workloads see.
package witness

import (
	"context"

	"fencepost.dev/history"
)

// Register is a protected resource with one version per key. It decides attempts one after the other and logs each in the
// order in which it decided.
//
// Unfenced it takes what comes. Fenced, every attempt that carries a token, reads included, raises the fence; a lower token
// is refused, and so is a known token from another grant.
type Register interface {
	// Attempt makes one attempt. a.Kind is Read or Write; Key is the key's name. A Write is based on Version.
	Attempt(ctx context.Context, a Attempt) (Decision, error)
}

// Attempt is what a client asks of the resource.
type Attempt struct {
	Kind    history.Kind // history.Read or history.Write
	Key     string
	Process uint16 // as in Names.Workers
	Client  uint16
	Grant   history.GrantID
	Token   int64 // 0: none
	Version int64 // a Write's base
}

// Decision is the resource's answer.
type Decision struct {
	Accepted bool
	Version  int64 // the version read, or made
	Sequence int64 // its place in the resource's own order
}
