package topology

import (
	"encoding/json"
	"fmt"

	"fencepost.dev/process"
)

// Undo gives the guard, and whoever else replays a journal, what undoes our entries. The servers themselves are in the
// journal as processes.
func Undo(c Credentials) process.Undo {
	return process.Undo{
		dirKind:  undoing(undoDir),
		portKind: undoing(undoPort),
		keysKind: undoing(c.undoKeys),
	}
}

func undoing[E any](undo func(E) error) func(json.RawMessage) error {
	return func(data json.RawMessage) error {
		var entry E
		if err := json.Unmarshal(data, &entry); err != nil {
			return fmt.Errorf("topology: reading a journal entry: %w", err)
		}
		return undo(entry)
	}
}

// begin journals what is about to be made; without a journal it does nothing.
func begin(journal *process.Journal, kind string, data any) (undone func() error, err error) {
	if journal == nil {
		return func() error { return nil }, nil
	}
	return journal.Begin(kind, data)
}
