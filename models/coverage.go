package models

// Counter is something that coverage counts.
type Counter struct {
	Name  string
	About string // one line
}

// Counters lists all that Count counts.
func Counters() []Counter { return nil }

// Count counts what happened in a run, by counter. Of what depends on clocks only what is definite counts.
func Count(in *Input) map[string]int64 { return nil }
