package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// EventLog writes faults.jsonl, a line an event. Each line is one write, so what has been appended outlives SIGKILL. It is
// safe for concurrent use.
type EventLog struct {
	mutex  sync.Mutex
	file   *os.File
	run    string
	last   int // id
	lines  int
	closed bool
}

// eventLine is a line of faults.jsonl. It says which run it is of and which line it is, so that one that was cut out, or put
// in from elsewhere, shows also in a file whose writer was killed.
type eventLine struct {
	Run  string `json:"run,omitempty"`
	Line int    `json:"line"` // from 1
	Event
}

// NewEventLog opens path for appending the events of a run. IDs go on from those that are there; a file that is damaged, or
// of another run, is refused.
func NewEventLog(path, run string) (*EventLog, error) {
	old, err := readEvents(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if old.lines > 0 && old.run != run {
		return nil, ofAnotherRun(path, old.run, run)
	}
	l := &EventLog{run: run, last: len(old.events), lines: old.lines}
	if l.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return l, nil
}

// Append writes e and gives it back with its ID. The error after Close wraps ErrClosed.
func (l *EventLog) Append(e Event) (Event, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	e.ID = l.last + 1
	if err := l.write(e); err != nil {
		return e, err
	}
	l.last = e.ID
	return e, nil
}

// End writes e, which Append gave, again, now that it ended. Other fields may have changed too: the last line counts.
func (l *EventLog) End(e Event, at int64) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if e.ID < 1 || e.ID > l.last {
		return fmt.Errorf("history: event %d has not been appended to %s", e.ID, l.file.Name())
	}
	e.End = at
	return l.write(e)
}

func (l *EventLog) write(e Event) error {
	if l.closed {
		return fmt.Errorf("history: %s has been %w", l.file.Name(), ErrClosed)
	}
	line, err := json.Marshal(eventLine{l.run, l.lines + 1, e})
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if n, err := l.file.Write(append(line, '\n')); err != nil {
		if info, e := l.file.Stat(); n > 0 && e == nil {
			_ = l.file.Truncate(info.Size() - int64(n)) // no half a line before the next
		}
		return fmt.Errorf("history: writing %s: %w", l.file.Name(), err)
	}
	l.lines++
	return nil
}

// Close ends the log; it may be called again.
func (l *EventLog) Close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return l.file.Close()
}

// LoadEvents reads the events at path, each as its last line has it, by ID. With an error that wraps ErrTruncated or
// ErrCorrupt it gives the events before the damage.
func LoadEvents(path string) ([]Event, error) {
	f, err := readEvents(path)
	return f.events, err
}

// eventFile is what faults.jsonl holds.
type eventFile struct {
	run    string
	lines  int
	events []Event // by ID, which counts from 1 without a gap
}

func readEvents(path string) (f eventFile, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return f, fmt.Errorf("history: %w", err)
	}
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		b = rest
		if !whole {
			return f, fmt.Errorf("history: %s is %w: its last line (%d) is torn, as if its writer had been killed while writing it; remove that line if the run may be judged without what it told",
				path, ErrTruncated, n)
		}
		var e eventLine
		if err := json.Unmarshal(line, &e); err != nil {
			return f, damaged(path, ErrCorrupt, "line %d: %v", n, err)
		}
		if n == 1 {
			f.run = e.Run
		}
		switch {
		case e.ID < 1 || e.Kind == "":
			return f, damaged(path, ErrCorrupt, "line %d has no id, or no kind", n)
		case e.Line != n:
			return f, damaged(path, ErrCorrupt, "line %d says that it is line %d: lines were cut out or put in", n, e.Line)
		case e.Run != f.run:
			return f, ofAnotherRun(fmt.Sprintf("line %d of %s", n, path), e.Run, f.run)
		case e.ID > len(f.events)+1:
			return f, damaged(path, ErrCorrupt, "line %d tells of event %d, and none of event %d", n, e.ID, len(f.events)+1)
		case e.ID == len(f.events)+1:
			f.events = append(f.events, e.Event)
		default:
			f.events[e.ID-1] = e.Event
		}
		f.lines = n
	}
	return f, nil
}
