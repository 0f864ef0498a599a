package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"

	"fencepost.dev/process"
)

// journalKind is the kind of our journal entries.
const journalKind = "fault"

// Record is a fault as the journal keeps it: enough to undo it after its injector died.
type Record struct {
	Fault  string `json:"fault"`
	Target string `json:"target"`
	// PID and Born are the process it was done to and when that started, if it runs on this machine. Together they name one
	// process, however often the number is given out.
	PID  int    `json:"pid,omitempty"`
	Born string `json:"born,omitempty"`
}

// RecordOf describes a fault that is about to be done to the target.
func RecordOf(fault string, target Target) Record {
	record := Record{Fault: fault, Target: target.Name()}
	if local, ok := target.(Local); ok {
		record.PID = local.PID()
		record.Born = process.Born(record.PID)
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

// resume sets a stopped process going again, with its group, if it is still the one that was stopped.
func (r Record) resume() error {
	if r.PID <= 1 || r.Born == "" || process.Born(r.PID) != r.Born {
		return nil
	}
	if err := syscall.Kill(-r.PID, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("resuming process group %d: %w", r.PID, err)
	}
	return nil
}
