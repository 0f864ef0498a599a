package faults

import (
	"encoding/json"
	"fmt"
	"maps"

	"fencepost.dev/process"
)

// journalKind is the kind of our journal entries.
const journalKind = "fault"

// Record is a fault as the journal keeps it: enough to undo it after its injector died.
type Record struct {
	Fault  string `json:"fault"`
	Target string `json:"target"`
	// PID and Born are the process it was done to and when that started, if it runs on this machine; else 0.
	PID  int    `json:"pid,omitempty"`
	Born uint64 `json:"born,omitempty"`
}

// recordOf describes a fault that is about to be done.
func recordOf(fault Fault, target Target) Record {
	record := Record{Fault: fault.Name, Target: target.Name()}
	if local, ok := target.(Local); ok {
		record.PID = local.PID()
	}
	return record
}

// Undo gives the guard, and whoever else replays a journal, what undoes our entries.
func Undo() process.Undo {
	return process.Undo{journalKind: func(data json.RawMessage) error {
		var record Record
		if err := json.Unmarshal(data, &record); err != nil {
			return fmt.Errorf("faults: reading a journal entry: %w", err)
		}
		fault, err := find(record.Fault)
		if err != nil {
			return fmt.Errorf("faults: undoing a journal entry: %w", err)
		}
		if fault.Heal == nil {
			return nil
		}
		if err := fault.Heal(record); err != nil {
			return fmt.Errorf("faults: undoing %s of %s: %w", record.Fault, record.Target, err)
		}
		return nil
	}}
}

// Heal mends what the journal at path says is still broken, after the process that wrote it died. more undoes the entries of
// others in the same journal (topology.Undo). It may be repeated.
func Heal(path string, more ...process.Undo) error {
	undo := Undo()
	for _, other := range more {
		maps.Copy(undo, other)
	}
	if err := process.Replay(path, undo); err != nil {
		return fmt.Errorf("healing from %s: %w", path, err)
	}
	return nil
}

func (r Record) resume() error { return nil }
