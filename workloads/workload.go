// Package workloads is how clients use a primitive: what one turn does, and where in it a client can be caught.
package workloads

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/witness"
)

// Kind is one sort of workload.
type Kind struct {
	Name       string   // "critical-section"
	Primitives []string // of the subjects it can drive: "lock", "lease"
	Summary    string
	Points     []string // where a client can be caught, besides the subject's own points
	// Parameters gives a pointer to a fresh struct with defaults: its yaml tags are the scenario's fields, and its
	// Validate() error, if it has one, judges them.
	Parameters func() any
	// New makes the workload of one worker. subject is what the subject's New returned; parameters is a pointer from
	// Parameters, decoded.
	New func(subject any, parameters any, env Env) (Workload, error)
	// Fenced says whether the witness enforces tokens under these parameters.
	Fenced func(parameters any) bool
	// Leftover bounds how long a turn may still run after its arrival, contention aside: what to wait for at the end.
	Leftover func(parameters any) time.Duration
}

// Workload is what the clients of one worker do. Its methods are called concurrently, by one goroutine per client.
type Workload interface {
	// Turn is one arrival: a whole critical section, a whole request. It returns when the turn is over, whatever came of it.
	// When ctx ends it makes no further call.
	Turn(ctx context.Context, c *Client)
}

// Finisher is a Workload that takes final reads: one client calls Final after load has ended, every fault is undone and
// the system has settled.
type Finisher interface {
	Final(ctx context.Context, c *Client)
}

// Env is what the clients of a worker share.
type Env struct {
	Register witness.Register
	// Point is where the workload can be caught. It returns at once unless a trap is armed for that name. If one is, it
	// announces the client and returns when the fault is in force, or after a second; at RequestInFlight it announces and
	// doesn't wait.
	Point func(ctx context.Context, c *Client, name string)
	Log   *slog.Logger
}

// RequestInFlight is the point at which a client is about to send a request: a trap there doesn't hold the client back.
const RequestInFlight = "request-in-flight"

// Client is one simulated client: it has one operation in flight. It belongs to the goroutine that runs its turns.
type Client struct {
	Process uint16     // this incarnation of the worker, as in history.Names.Workers
	Number  uint16     // within the worker, from 0
	Rand    *rand.Rand // seeded by run, process and client
	// Now is the clock that the client's own code reads, to look whether its lock still holds. Faults may skew it; the
	// history's clock is another.
	Now func() time.Time
	// Grant is the grant that the client works under, for traps to tell; 0 if none.
	Grant history.GrantID
	Recorder

	grants uint32
}

// Recorder is where one client's operations go.
type Recorder interface {
	// Key and Error intern a string; a nil error is 0.
	Key(name string) uint32
	Error(err error) uint16
	// Begin stamps the client and Call on the operation and commits it. The request must not be sent before it returns.
	Begin(op *history.Operation) history.Slot
	// End stamps Return, completes the operation and counts its latency: that of a turn's first operation from when the turn
	// was due.
	End(slot history.Slot, op *history.Operation)
}

// NextGrant names the client's next grant.
func (c *Client) NextGrant() history.GrantID {
	c.grants++
	return history.NewGrantID(c.Process, c.Number, c.grants)
}

// kinds is the table of workloads: a new one is a file of its own and a line here.
var kinds = []Kind{
	criticalSection,
}

// All lists the kinds.
func All() []Kind { return kinds }

// Find gives the kind of that name.
func Find(name string) (Kind, bool) {
	for _, k := range kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}
