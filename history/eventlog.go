package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// EventLog writes faults.jsonl, a line an event. Each line is one write, so what has been appended outlives SIGKILL. It is
// safe for concurrent use.
type EventLog struct {
	mutex sync.Mutex
	file  *os.File
	last  int
}

// NewEventLog opens path for appending. IDs go on from those that are there; a file that is damaged is refused.
func NewEventLog(path string) (*EventLog, error) {
	events, err := LoadEvents(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l := &EventLog{}
	for _, e := range events {
		l.last = max(l.last, e.ID)
	}
	if l.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return l, nil
}

// Append writes e and gives it back with its ID.
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
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if n, err := l.file.Write(append(line, '\n')); err != nil {
		if info, e := l.file.Stat(); n > 0 && e == nil {
			_ = l.file.Truncate(info.Size() - int64(n)) // no half a line before the next
		}
		return fmt.Errorf("history: writing %s: %w", l.file.Name(), err)
	}
	return nil
}

// Close ends the log.
func (l *EventLog) Close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.file.Close()
}

// LoadEvents reads the events at path, each as its last line has it, by ID. With an error that wraps ErrTruncated or
// ErrCorrupt it gives the events before the damage.
func LoadEvents(path string) ([]Event, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	byID := map[int]Event{}
	var damage error
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		b = rest
		if !whole {
			damage = fmt.Errorf("history: %s is %w: its last line (%d) is torn, as if its writer had been killed while writing it; remove that line if the run may be judged without what it told",
				path, ErrTruncated, n)
			break
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			damage = damaged(path, ErrCorrupt, "line %d: %v", n, err)
			break
		}
		if e.ID < 1 || e.Kind == "" {
			damage = damaged(path, ErrCorrupt, "line %d has no id, or no kind", n)
			break
		}
		byID[e.ID] = e
	}
	var events []Event
	for _, e := range byID {
		events = append(events, e)
	}
	slices.SortFunc(events, func(a, b Event) int { return a.ID - b.ID })
	return events, damage
}
