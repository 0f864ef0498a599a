package reports

import (
	"io"
	"time"
)

// Tick is where a run stands.
type Tick struct {
	At, Total time.Duration // since load started, and how long load takes; 0: it is not known
	Doing     string        // instead of load, such as "settling"; "": load
	Rate      float64       // operations per second, lately
	P50, P99  time.Duration // lately
	Count     int64         // operations so far
	Errors    int64         // so far
	Faults    []string      // in force, such as "pause w1"
}

// Progress shows where a run stands: one line that is rewritten where Options.Live, else a line a second; nothing when quiet.
// It is not safe for concurrent use.
type Progress struct {
	w io.Writer
	o Options
}

// NewProgress begins to show progress.
func NewProgress(w io.Writer, o Options) *Progress { return &Progress{w, o} }

// Show shows a tick.
func (p *Progress) Show(t Tick) {}

// Done takes the line away, so that what follows starts on a clean one.
func (p *Progress) Done() {}
