package history

import "time"

// Event is something that happened to the run and not in it: a line of faults.jsonl. An event with an end is written when
// it begins and again, with the same ID, when it ends; the last line counts.
type Event struct {
	ID   int       `json:"id"`
	Kind EventKind `json:"kind"`
	At   int64     `json:"at_ns"`            // since the run's epoch
	End  int64     `json:"end_ns,omitempty"` // 0: an instant, or it never ended

	// Fault is what was done ("pause"), for kind fault. Target is what it was done to: a worker ("w1"), a store node
	// ("valkey/0"), a path ("w1>valkey/0").
	Fault  string `json:"fault,omitempty"`
	Target string `json:"target,omitempty"`
	// Process is the index into Names.Workers for what happened to a worker's process, else -1.
	Process int `json:"process"`
	// Node is the store node for what happened to one, else -1.
	Node int `json:"node"`

	// Confirmed: the fault was seen to be in force, not just asked for.
	Confirmed bool `json:"confirmed,omitempty"`
	// Point, Client and Grant say which client sprang the trap, and where, for a fault that was aimed.
	Point  string  `json:"point,omitempty"`
	Client string  `json:"client,omitempty"`
	Grant  GrantID `json:"grant,omitempty"`

	// Delay is the largest delay that a fault on a path adds, or the length of a stall, or for how long a node may not have
	// answered that answers again.
	Delay  time.Duration `json:"delay_ns,omitempty"`
	Detail string        `json:"detail,omitempty"` // for people
}

// EventKind says what sort of thing happened.
type EventKind string

const (
	EventFault         EventKind = "fault"          // something was done on purpose; has an end when undone
	EventTrapMissed    EventKind = "trap-missed"    // a client waited a second at its point and no fault came
	EventNodeAnswering EventKind = "node-answering" // a store node answers again after it did not
	EventPathHealed    EventKind = "path-healed"    // a cut or delayed path carries again; Delay = how long it did not
	EventWorkerDied    EventKind = "worker-died"    // a worker's process ended, on purpose or not
	EventWorkerStarted EventKind = "worker-started" // an incarnation passed its barrier
	EventStall         EventKind = "stall"          // a process was not scheduled, or its real-time clock moved; Delay = by how much
	EventLoadStarted   EventKind = "load-started"
	EventLoadEnded     EventKind = "load-ended" // no arrival starts after this
)

// Since tells an instant of the run as a duration, for people.
func Since(at int64) time.Duration { return time.Duration(at) }
