// Package subjects is how an implementation under test is named and reached: built in (one adapter file each, registered in
// init), an external program, or a live HTTP API.
package subjects

import (
	"context"
	"fmt"
	"log/slog"
	"sort"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
	"fencepost.dev/topology/endpoint"
)

// Subject is one implementation of a primitive, as the catalogue knows it.
type Subject struct {
	Name      string // "lock/valkey", "flawed/lock/delete-without-owner"
	Primitive string // "lock"
	Summary   string // one line
	Contract  models.Contract
	Stores    []string // which of the topology's stores it needs: "valkey"
	Flawed    bool     // wrong on purpose
	Points    []string // points of its own at which a trap can catch it
	Options   []string // names of the options that it takes
	// New builds it in a worker process. What it returns satisfies the primitive's interface (Lock, …) and, if it holds
	// resources, io.Closer. An error here ends the run before its barrier.
	New func(context.Context, Env) (any, error)
}

// Env is what a worker hands to the subject that it builds.
type Env struct {
	Worker    string // "w1"
	Clients   int    // how many clients the worker runs: so many connections are made ready before the barrier
	Endpoints endpoint.Set
	Now       func() time.Time // the clock the subject reads: skewed by faults, never used for history
	// Point is where a client may be caught: it returns at once unless a trap is armed for that name, and then blocks until
	// the fault is in force, or a second has gone by. ctx is the one the operation was called with.
	Point   func(ctx context.Context, name string)
	Options map[string]any // the scenario's options for the subject
	Log     *slog.Logger
}

// Answer is how one call ended: its outcome, on purpose, and why.
type Answer struct {
	Outcome history.Outcome
	Err     error  // why it is refused, failed or unknown; nil for ok
	Node    uint16 // the store node that was asked; history.NoNode if several or unknown
}

// Lock is what a lock or lease subject does. Calls of different clients are concurrent; a client makes one at a time.
type Lock interface {
	// Acquire tries once. OK: granted, and Grant says what is known of it. Refused: busy.
	Acquire(ctx context.Context, client int, key string, ttl time.Duration) (Grant, Answer)
	// Extend makes the grant's time-to-live run anew. Refused: it is no longer the holder.
	Extend(ctx context.Context, client int, key string, g Grant, ttl time.Duration) Answer
	// Release gives it up. Refused: it was no longer the holder.
	Release(ctx context.Context, client int, key string, g Grant) Answer
}

// Grant is what a subject gave to a client.
type Grant struct {
	Token    int64           // fencing token; 0: the subject gives none
	Validity time.Duration   // how long from the call on the subject vouches for it; 0: the TTL
	Lost     <-chan struct{} // closed when the subject knows that the hold is lost; nil if it never says
	Handle   any             // the subject's own: passed back untouched
}

var registered = map[string]Subject{}

// Register adds a subject to the catalogue. It is called from init, and panics on a duplicate or incomplete entry.
func Register(s Subject) {
	if s.Name == "" || s.Primitive == "" || s.New == nil {
		panic(fmt.Sprintf("subjects: %q is incomplete", s.Name))
	}
	if _, taken := registered[s.Name]; taken {
		panic(fmt.Sprintf("subjects: %q is registered twice", s.Name))
	}
	registered[s.Name] = s
}

// Find gives the subject of that name.
func Find(name string) (Subject, bool) {
	s, ok := registered[name]
	return s, ok
}

// All lists the catalogue by name.
func All() []Subject {
	list := make([]Subject, 0, len(registered))
	for _, s := range registered {
		list = append(list, s)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}
