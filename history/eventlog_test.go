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
	log, err := NewEventLog(path)
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

	log, err = NewEventLog(path) // by somebody who goes on
	must(t, err)
	stall, err := log.Append(Event{Kind: EventStall, At: 40, Process: -1, Node: -1, Delay: 5})
	must(t, err)
	must(t, log.Close())

	got, err := LoadEvents(path)
	must(t, err)
	pause.End = 30
	if want := []Event{pause, died, stall}; !reflect.DeepEqual(got, want) || pause.ID != 1 || stall.ID != 3 {
		t.Errorf("loaded %+v, want %+v", got, want)
	}
}

func TestDamagedEvents(t *testing.T) {
	const whole = `{"id":1,"kind":"fault","at_ns":5,"process":-1,"node":-1}` + "\n"
	for _, test := range []struct {
		name, text string
		want       error
		events     int
	}{
		{"whole", whole, nil, 1},
		{"empty", "", nil, 0},
		{"a torn last line", whole + `{"id":2,"ki`, ErrTruncated, 1},
		{"a last line without its end", whole + strings.TrimSpace(whole), ErrTruncated, 1},
		{"a torn line in the middle", whole + `{"id":2,"ki` + "\n" + whole, ErrCorrupt, 1},
		{"no id", `{"kind":"fault"}` + "\n", ErrCorrupt, 0},
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
			if _, e := NewEventLog(path); (e == nil) != (test.want == nil) {
				t.Errorf("opened for appending: %v", e)
			}
		})
	}
}
