package models

import (
	"time"

	"fencepost.dev/history"
)

// Input is all that checks may look at. It is the recorded run, after Prepare.
type Input struct {
	Primitive string
	Contract  Contract
	// Operations of clients in order of Call: intervals widened by each process's clock error, unknown ones marked Optional
	// with their bound as Return (Unbounded if none).
	Operations []history.Operation
	// Resource holds the witness's own log, in Sequence order per key. Fenced: it enforced tokens.
	Resource []history.Operation
	Fenced   bool
	Events   []history.Event
	// Gap says what of the clients' operations is missing, in words, and ResourceGap what of the witness's log; "" if nothing
	// is. What rests on nothing missing can't accuse anybody then.
	Gap, ResourceGap string
	Names            *history.Names
	// End is when the last final read was done: no operation was open after it.
	End   int64
	Limit Limit
	// Drift is ρ: how much faster or slower than the coordinator's a store's clock may run (0.001 is 0.1%).
	Drift float64
	// Granularity is g: the store's expiry granularity, and a client's own lag in noticing it.
	Granularity time.Duration
}

// Limit bounds what deciding may cost.
type Limit struct {
	Time   time.Duration // per check; 0: a minute
	Memory int64         // bytes, per check; 0: 1 GiB
	// Engine decides linearizability; "": Porcupine where an object has at most a few thousand operations, and the stream engine
	// where it has more or Porcupine can't decide it in its memory or half of the time that is left.
	Engine Engine
	// Parallel is how many partitions are decided at once; 0: as many as there are CPUs.
	Parallel int
	// Progress, if not nil, is told now and then how many operations have been decided. It must not block.
	Progress func(decided int)
}

// Engine names who decides linearizability.
type Engine string

const (
	EngineStream    Engine = "stream"
	EnginePorcupine Engine = "porcupine"
	// EngineBoth runs both and compares: a difference is an error of ours, and loud.
	EngineBoth Engine = "both"
)
