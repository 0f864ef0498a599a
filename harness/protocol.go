// Package harness is a run: the coordinator, from start to verdict, and the worker, which carries out one assignment. It is
// the only package that knows all the others.
package harness

import (
	"fmt"
	"os"
	"path/filepath"

	"fencepost.dev/history"
	"fencepost.dev/load"
	"fencepost.dev/topology/endpoint"
)

// What coordinator and workers say to each other, by subject on the plane. A worker's whole life:
//
//	worker                                   coordinator
//	run.ready {process, clock error}  ──▶    waits for all, then answers {start, traps armed}
//	run.progress {interval, stalls}   ──▶    every 100 ms
//	                                  ◀──    run.arm, run.disarm {trap}
//	run.sprung {trap, client}         ──▶    answers when the fault is in force
//	run.drained                       ──▶    when its last turn is over
//	run.settled {until}               ──▶    every 100 ms, of a run that is watched: see watcher
//	                                  ◀──    run.stop: start no more turns (an interrupt, or the watcher)
//	                                  ◀──    run.final.N (one worker): final reads; answers when taken
//	                                  ◀──    run.finish: close the history, exit
//
// And when a worker on another machine has ended, its agent:
//
//	run.lack {process}                ──▶    answers what of its history has not come
//	run.history                       ──▶    the rest
//	run.log {process, text}           ──▶    the end of its log
const (
	subjectReady    = "run.ready"
	subjectProgress = "run.progress"
	subjectArm      = "run.arm"
	subjectDisarm   = "run.disarm"
	subjectSprung   = "run.sprung"
	subjectDrained  = "run.drained"
	subjectStop     = "run.stop"
	subjectFinish   = "run.finish"
	subjectHistory  = "run.history"
	subjectSettled  = "run.settled"
	subjectLack     = "run.lack"
	subjectLog      = "run.log"
)

// finalSubject asks one worker for the final reads.
func finalSubject(process uint16) string { return fmt.Sprintf("run.final.%d", process) }

// assignment is what one incarnation of a worker is to do.
type assignment struct {
	Run         string       `json:"run"`
	Worker      string       `json:"worker"`
	Index       int          `json:"index"` // of the worker, from 0: its share of the load
	Incarnation int          `json:"incarnation"`
	Process     uint16       `json:"process"` // of this incarnation, as in history.Names.Workers
	Scenario    string       `json:"scenario"`
	Seed        uint64       `json:"seed"`
	Endpoints   endpoint.Set `json:"endpoints"`
	// HistoryDir is where to record, for a worker on the coordinator's machine; empty: in a temporary directory, and stream.
	HistoryDir string `json:"history_dir,omitempty"`
	// Watched: stream it in any case, and say how far it is settled.
	Watched bool `json:"watched,omitempty"`
}

// incarnation is who carries the assignment out, as the history knows it.
func (a *assignment) incarnation() history.Process {
	return history.Process{Worker: a.Worker, Incarnation: a.Incarnation}
}

// base names the incarnation's files.
func (a *assignment) base() string { return baseOf(a.Worker, a.Incarnation) }

func baseOf(worker string, incarnation int) string { return fmt.Sprintf("%s.%d", worker, incarnation) }

// streamedDir is where an incarnation on another machine records, within the temporary directory that its agent gave it.
func (a *assignment) streamedDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("fencepost-history-%s-%s", a.Run, a.base()))
}

// lackRequest asks what has not come of a dead worker's history.
type lackRequest struct {
	Process uint16 `json:"process"`
}

// workerLog is the end of a worker's log.
type workerLog struct {
	Process uint16 `json:"process"`
	Text    []byte `json:"text"`
}

// ready is what a worker says when it could start its load at once.
type ready struct {
	Process    uint16 `json:"process"`
	ClockError int64  `json:"clock_error_ns"`
	SameClock  bool   `json:"same_clock"`
	// Error is why it can't; then it has given up.
	Error string `json:"error,omitempty"`
}

// barrier is the answer to ready.
type barrier struct {
	Start int64  `json:"start_ns"` // when load starts, on the run's clock
	Armed []trap `json:"armed,omitempty"`
}

// progress is what a worker reports every 100 ms.
type progress struct {
	Process    uint16          `json:"process"`
	ClockError int64           `json:"clock_error_ns"`
	Intervals  []load.Interval `json:"intervals,omitempty"`
	Turns      int64           `json:"turns"` // begun so far
	Stalls     []stall         `json:"stalls,omitempty"`
}

// stall is a gap in a worker's scheduling, or a movement of its real-time clock.
type stall struct {
	Kind   string `json:"kind"`
	At     int64  `json:"at_ns"`
	Length int64  `json:"length_ns"`
	Delay  int64  `json:"delay_ns"` // Length, or how far the clock moved
	Detail string `json:"detail"`
}

// drained is said once by each worker, when no turn is running any more.
type drained struct {
	Process   uint16 `json:"process"`
	Turns     int64  `json:"turns"`     // begun
	Unstarted int64  `json:"unstarted"` // arrivals that never got a free client
}

// trap is armed at the workers named; an empty list is all of them.
type trap struct {
	ID      int      `json:"id"`
	Point   string   `json:"point"`
	Workers []string `json:"workers,omitempty"`
}

// sprung announces a client at a trap's point.
type sprung struct {
	Trap    int             `json:"trap"`
	Process uint16          `json:"process"`
	Client  uint16          `json:"client"`
	Grant   history.GrantID `json:"grant,omitempty"`
	At      int64           `json:"at_ns"`
	Waits   bool            `json:"waits"` // it stays blocked until answered
}
