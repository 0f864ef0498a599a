package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// Subjects that agents and the fleet speak on. An agent's id is one word of them.
const (
	helloSubject = "fleet.hello" // agent → fleet: here I am
	exitSubject  = "fleet.exit"  // agent → fleet: a worker has ended
	byeSubject   = "fleet.bye"   // agent → fleet: I leave, and none of my workers is left
)

func agentSubject(id, verb string) string { return "agent." + id + "." + verb }

// What a fleet asks of an agent.
const (
	verbBeat    = "beat"    // are you there? Heard regularly, it also says that the coordinator lives
	verbLaunch  = "launch"  // start a worker
	verbHandle  = "handle"  // pause, resume, kill or stop one
	verbDismiss = "dismiss" // the run is over
)

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// AgentInfo is what an agent says of itself.
type AgentInfo struct {
	ID       string   `json:"id"`
	Version  string   `json:"version"` // of Fencepost; equal to the coordinator's, or the agent is refused
	Hostname string   `json:"hostname"`
	OS       string   `json:"os"`
	Arch     string   `json:"arch"`
	CPUs     int      `json:"cpus"`
	PID      int      `json:"pid"`
	Clock    Identity `json:"clock"`
	// Instance tells this process's hello from that of another with the same id.
	Instance string `json:"instance"`
}

// Launch is an order to start a worker's client process.
type Launch struct {
	Worker      string          `json:"worker"` // "w1"
	Incarnation int             `json:"incarnation"`
	Assignment  json.RawMessage `json:"assignment"`
	// Log is a file within the agent's directory; empty is "<worker>.<incarnation>.log".
	Log string `json:"log"`
}

// name is how the worker's process is told apart: "w1.2".
func (l Launch) name() string { return fmt.Sprintf("%s.%d", l.Worker, l.Incarnation) }

// launchOrder is a Launch with what the fleet adds.
type launchOrder struct {
	Launch
	Share ClockShare `json:"share"`
}

type launchReply struct {
	PID int `json:"pid"`
}

// handleOrder asks for one thing to be done to a worker's process.
type handleOrder struct {
	Name  string        `json:"name"`
	Do    string        `json:"do"` // "pause", "resume", "kill", "stop"
	Grace time.Duration `json:"grace_ns,omitempty"`
}

// exitReport says how a worker's process ended. The agent repeats it until the fleet has answered.
type exitReport struct {
	Agent    string        `json:"agent"`
	Instance string        `json:"instance"`
	Name     string        `json:"name"`
	Code     int           `json:"code"`
	Signal   string        `json:"signal"`
	Ago      time.Duration `json:"ago_ns"` // since it ended, by the agent's clock
}

// Exit is how a worker's process ended.
type Exit struct {
	Code   int    // -1 if a signal ended it, or if nobody knows
	Signal string // "killed"; "" if it exited by itself
	// Gone: its agent is gone, and so, by the rule that binds agents, is the process.
	Gone bool
	// At is when, on the run's clock. It is as exact as a message is quick, and never before the fact.
	At int64
}

func (e Exit) String() string {
	switch {
	case e.Gone:
		return "gone with its agent"
	case e.Signal != "":
		return "ended by signal: " + e.Signal
	default:
		return fmt.Sprintf("exited with status %d", e.Code)
	}
}

// ClientStart is what a client process is told on its standard input, as one JSON object.
type ClientStart struct {
	URL         string          `json:"url"`
	Token       string          `json:"token"`
	Worker      string          `json:"worker"`
	Incarnation int             `json:"incarnation"`
	Assignment  json.RawMessage `json:"assignment"`
	Share       ClockShare      `json:"share"`
}

// ReadClientStart reads it.
func ReadClientStart(r io.Reader) (ClientStart, error) {
	var start ClientStart
	if err := json.NewDecoder(r).Decode(&start); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("nothing is there: a client is started by an agent, not by hand")
		}
		return start, fmt.Errorf("plane: reading the assignment from standard input: %w", err)
	}
	if start.URL == "" || start.Worker == "" {
		return start, errors.New("plane: the assignment on standard input names no hub or no worker")
	}
	return start, nil
}
