package history

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestEventLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), eventsFile)
	log, err := NewEventLog(path, "r")
	must(t, err)
	pause, err := log.Append(Event{Kind: EventFault, Fault: "pause", Target: "w1", At: 10, Node: -1, Confirmed: true})
	must(t, err)
	died, err := log.Append(Event{Kind: EventWorkerDied, At: 20, Process: 1, Node: -1})
	must(t, err)
	must(t, log.End(pause, 30))
	if err := log.End(Event{ID: 3}, 1); err == nil {
		t.Error("an event that was never appended has ended")
	}
	must(t, log.Close())

	log, err = NewEventLog(path, "r") // by somebody who goes on
	must(t, err)
	stall, err := log.Append(Event{Kind: EventStall, At: 40, Process: -1, Node: -1, Delay: 5})
	must(t, err)
	must(t, log.Close())
	must(t, log.Close())
	if _, err := log.Append(Event{Kind: EventStall}); !errors.Is(err, ErrClosed) {
		t.Errorf("appended to a closed log: %v", err)
	}
	if _, err := NewEventLog(path, "another"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("another run's events are gone on with: %v", err)
	}

	got, err := LoadEvents(path)
	must(t, err)
	pause.End = 30
	if want := []Event{pause, died, stall}; !reflect.DeepEqual(got, want) || pause.ID != 1 || stall.ID != 3 {
		t.Errorf("loaded %+v, want %+v", got, want)
	}
}

func TestDamagedEvents(t *testing.T) {
	const (
		whole  = `{"run":"r","line":1,"id":1,"kind":"fault","at_ns":5,"process":-1,"node":-1}` + "\n"
		second = `{"run":"r","line":2,"id":2,"kind":"stall","at_ns":6,"process":-1,"node":-1}` + "\n"
		again  = `{"run":"r","line":3,"id":1,"kind":"fault","at_ns":5,"end_ns":7,"process":-1,"node":-1}` + "\n"
		fourth = `{"run":"r","line":4,"id":3,"kind":"stall","at_ns":8,"process":-1,"node":-1}` + "\n"
	)
	for _, test := range []struct {
		name, text string
		want       error
		events     int
	}{
		{"whole", whole + second + again + fourth, nil, 3},
		{"empty", "", nil, 0},
		{"a torn last line", whole + `{"id":2,"ki`, ErrTruncated, 1},
		{"a last line without its end", whole + strings.TrimSpace(second), ErrTruncated, 1},
		{"a torn line in the middle", whole + `{"id":2,"ki` + "\n" + again, ErrCorrupt, 1},
		{"no id", `{"line":1,"kind":"fault"}` + "\n", ErrCorrupt, 0},
		{"no line", `{"id":1,"kind":"fault"}` + "\n", ErrCorrupt, 0},
		{"its first line cut out", second + again + fourth, ErrCorrupt, 0},
		{"a line cut out", whole + again + fourth, ErrCorrupt, 1},
		{"the end of an event cut out", whole + second + fourth, ErrCorrupt, 2},
		{"a line twice", whole + whole + second, ErrCorrupt, 1},
		{"lines that changed places", whole + again + second, ErrCorrupt, 1},
		{"an event that is not told of", whole + strings.Replace(second, `"id":2`, `"id":3`, 1), ErrCorrupt, 1},
		{"a line of another run", whole + strings.Replace(second, `"run":"r"`, `"run":"q"`, 1), ErrCorrupt, 1},
		{"a line of no run", whole + strings.Replace(second, `"run":"r",`, ``, 1), ErrCorrupt, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), eventsFile)
			must(t, os.WriteFile(path, []byte(test.text), 0o644))
			events, err := LoadEvents(path)
			if !errors.Is(err, test.want) || len(events) != test.events {
				t.Errorf("%d events, %v", len(events), err)
			}
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("doesn't name the file: %v", err)
			}
			if _, e := NewEventLog(path, "r"); (e == nil) != (test.want == nil) {
				t.Errorf("opened for appending: %v", e)
			}
		})
	}
}
