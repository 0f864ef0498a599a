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
	Name      string // "critical-section"
	Primitive string // of the subjects it drives: "lock"; what may stand in for it, such as lease, is in Accepts
	Accepts   []string
	Summary   string
	Points    []string // where a client can be caught
	// Parameters gives a pointer to a fresh struct with defaults: its yaml tags are the scenario's fields, and its
	// Validate() error, if it has one, judges them.
	Parameters func() any
	// New makes the workload of one worker. subject is what the subject's New returned.
	New func(subject any, parameters any, env Env) (Workload, error)
	// Fenced says whether the witness enforces tokens under these parameters.
	Fenced func(parameters any) bool
}

// Workload is what the clients of one worker do.
type Workload interface {
	// Turn is one arrival: a whole critical section, a whole request. It is called by one goroutine per client; c.Due is
	// when it was due, which its first operation's latency counts from. It returns when the turn is over, whatever came of
	// it, and early when ctx ends.
	Turn(ctx context.Context, c *Client)
}

// Env is what workloads of a worker share.
type Env struct {
	Register witness.Register
	Point    func(ctx context.Context, c *Client, name string) // see Client.Point
	Log      *slog.Logger
}

// Client is one simulated client: it has one operation in flight.
type Client struct {
	Process uint16 // this incarnation of the worker
	Number  uint16
	Rand    *rand.Rand // seeded by run, process and client
	Recorder
	// Due is when the present turn was due, ns since the run's epoch; 0 in a closed loop.
	Due int64
	// Grant is the grant that the client works under, for traps to tell; 0 if none.
	Grant history.GrantID
	// Now is the clock that the client's own code reads (to look whether its lock still holds): skewed by faults.
	Now      func() time.Time
	sequence uint32
}

// NextGrant names the client's next grant.
func (c *Client) NextGrant() history.GrantID {
	c.sequence++
	return history.NewGrantID(c.Process, c.Number, c.sequence)
}

// Recorder is where a client's operations go. Begin stamps Call, commits the slot, and starts the latency clock; End stamps
// Return, completes the slot and counts the operation's latency.
type Recorder interface {
	// Key and Error intern a string. They are safe to call concurrently.
	Key(name string) uint32
	Error(err error) uint16
	Begin(op *history.Operation) history.Slot
	End(slot history.Slot, op *history.Operation)
}

// kinds is the table of workloads: a new one is a file of its own and a line here.
var kinds = []Kind{}

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
