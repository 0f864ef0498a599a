package history

import "fmt"

// Names are the strings that operations refer to by number. Index 0 of Keys and Errors is the empty string.
type Names struct {
	Keys    []string
	Errors  []string
	Workers []Process
}

// Process is one incarnation of one worker: the process that ran its clients.
type Process struct {
	Worker      string `json:"worker"` // such as "w1"
	Incarnation int    `json:"incarnation"`
	// ClockError bounds, in nanoseconds, how far this process's times are from the coordinator's clock, either way.
	ClockError int64 `json:"clock_error_ns"`
}

func (p Process) String() string {
	if p.Incarnation > 1 {
		return fmt.Sprintf("%s.%d", p.Worker, p.Incarnation)
	}
	return p.Worker
}

// Key is the key's name, or "" if there is none.
func (n *Names) Key(i uint32) string {
	if int(i) < len(n.Keys) {
		return n.Keys[i]
	}
	return ""
}

// Err is the error's text, or "" if there is none.
func (n *Names) Err(i uint16) string {
	if int(i) < len(n.Errors) {
		return n.Errors[i]
	}
	return ""
}

// ClientName names one client of one incarnation, such as "w1/c3" or "w1.2/c3".
func (n *Names) ClientName(o *Operation) string {
	if int(o.Worker) < len(n.Workers) {
		return fmt.Sprintf("%s/c%d", n.Workers[o.Worker], o.Client)
	}
	return fmt.Sprintf("?%d/c%d", o.Worker, o.Client)
}
