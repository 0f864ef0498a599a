package history

import "iter"

// History is a recorded run in memory.
type History struct {
	Names      Names
	Operations []Operation // of clients, by Call
	Resource   []Operation // the witness's log: by key, and in Sequence order within a key
	Events     []Event     // by ID
	Sources    []Source    // by base name; the witness's log is among them
}

// Source is one recorder's files.
type Source struct {
	Base   string
	Number uint16 // index into Names.Workers
	// Closed: the recorder was closed in order. A process that was killed did not.
	Closed bool
	// Streamed: the files were written by a Receiver. If Closed is false too, the last of what the process did is missing.
	Streamed bool
	// Dropped counts operations that could not be recorded, and Error says why.
	Dropped int64
	Error   string
}

// Load reads the results directory dir whole: dir/history, dir/resource.parquet and dir/faults.jsonl.
func Load(dir string) (*History, error) { return &History{}, nil }

// Finish converts what dead processes left in the results directory dir.
func Finish(dir string) error { return nil }

// Reader reads a recorded run as a stream.
type Reader struct{}

// Open finds the files of the results directory dir.
func Open(dir string) (*Reader, error) { return &Reader{}, nil }

// Names are the strings that the operations yielded so far refer to.
func (r *Reader) Names() *Names                         { return &Names{} }
func (r *Reader) All() iter.Seq2[Operation, error]      { return func(func(Operation, error) bool) {} }
func (r *Reader) Resource() iter.Seq2[Operation, error] { return func(func(Operation, error) bool) {} }
func (r *Reader) Sources() []Source                     { return nil }
func (r *Reader) Close() error                          { return nil }

// EventLog writes faults.jsonl.
type EventLog struct{}

// NewEventLog opens path for appending.
func NewEventLog(path string) (*EventLog, error)  { return &EventLog{}, nil }
func (l *EventLog) Append(e Event) (Event, error) { return e, nil }
func (l *EventLog) End(e Event, at int64) error   { return nil }
func (l *EventLog) Close() error                  { return nil }
func LoadEvents(path string) ([]Event, error)     { return nil, nil }
