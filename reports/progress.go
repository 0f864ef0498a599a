package reports

import (
	"fmt"
	"io"
	"strings"
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
	Changes   []Change      // faults that began or ended since the last tick, in order
}

// Change is a fault that began, or ended.
type Change struct {
	At     time.Duration // since load started
	Fault  string        // such as "pause w1"
	Ended  bool
	Lasted time.Duration // of one that has ended
}

// mostChanges is how many of them a run's progress tells, two for most faults; faults.jsonl has them all.
const mostChanges = 40

// Progress shows where a run stands: one line that is rewritten where Options.Live, else a line a second; nothing when quiet.
// Each fault's beginning and end is a line of its own besides, however short it is.
// What can't be written is dropped: a run doesn't fail for its progress. It is not safe for concurrent use.
type Progress struct {
	p     *printer
	o     Options
	next  time.Duration // when a line is due, where lines aren't rewritten
	doing string        // as told last
	shown bool          // a line stands that has no end yet
	told  int           // changes
}

// NewProgress begins to show progress.
func NewProgress(w io.Writer, o Options) *Progress { return &Progress{p: newPrinter(w, o), o: o} }

// Show shows a tick.
func (p *Progress) Show(t Tick) {
	if p.o.Quiet {
		return
	}
	p.changes(t.Changes)
	switch {
	case p.o.Live:
		io.WriteString(p.p.w, "\r\x1b[K"+p.line(t))
		p.shown = true
	case t.At >= p.next || t.Doing != p.doing:
		p.p.line(p.line(t))
		p.next = t.At.Truncate(time.Second) + time.Second
		p.doing = t.Doing
	}
}

// Done takes the line away, so that what follows starts on a clean one.
func (p *Progress) Done() {
	if p.shown {
		io.WriteString(p.p.w, "\r\x1b[K")
		p.shown = false
	}
}

// changes tells of faults as they come and go, until there were too many.
func (p *Progress) changes(changes []Change) {
	for _, c := range changes {
		if p.told++; p.told > mostChanges+1 {
			return
		}
		p.Done()
		text := "▒ " + cleanName(c.Fault)
		switch {
		case p.told > mostChanges:
			text = "▒ … what else begins and ends is in faults.jsonl"
		case c.Ended:
			text += " over after " + span(c.Lasted)
		}
		p.p.line(p.p.paint(bold, fmt.Sprintf("%5.1f s", c.At.Seconds())) + "  " + p.p.paint(yellow, clean(text, p.p.width-10)))
	}
}

// line is one tick in at most a terminal's width, less one column: a full line would wrap on some.
func (p *Progress) line(t Tick) string {
	at := fmt.Sprintf("%5.1f s", t.At.Seconds())
	if t.At == 0 && t.Doing != "" {
		at = "       "
	}
	if t.Total > 0 && t.Doing == "" {
		at += fmt.Sprintf(" of %s", span(t.Total))
	}
	parts := []cell{{at, bold}}
	if t.Doing != "" {
		parts = append(parts, cell{cleanName(t.Doing), plain})
	} else {
		errors := cell{count(t.Errors, "error"), dim}
		if t.Errors > 0 {
			errors.style = plain
		}
		parts = append(parts,
			cell{fmt.Sprintf("%7s/s", significant(t.Rate)), plain},
			cell{fmt.Sprintf("p50 %-7s p99 %-7s", microseconds(float64(t.P50)/1e3), microseconds(float64(t.P99)/1e3)), plain},
			errors)
	}
	if len(t.Faults) > 0 {
		parts = append(parts, cell{"▒ " + clean(strings.Join(t.Faults, ", "), longName), yellow})
	}
	line, left := "", p.p.width-1
	for i, part := range parts {
		text := part.text
		if i > 0 {
			text = "  " + text
		}
		text = clean(text, max(0, left-1))
		left -= columns(text)
		line += p.p.paint(part.style, text)
		if left <= 1 {
			break
		}
	}
	return line
}
