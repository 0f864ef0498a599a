package history

// RecorderOptions say whose operations are recorded, and how.
type RecorderOptions struct {
	// Process is the incarnation whose clients are recorded, and Number the number that the coordinator gave it: its index in
	// Names.Workers, which its operations carry as Worker. Both are left zero for the witness's log ("resource"), whose
	// operations are of many processes; see SetProcess.
	Process Process
	Number  uint16
	// SegmentSize is how many bytes a segment holds; 0 is 16 MiB. Tests make it small.
	SegmentSize int
}

// Recorder writes what the clients of one process do.
type Recorder struct{}

// NewRecorder begins a record in dir, which must exist, under the name base: "w1.1" for the first incarnation of w1,
// ResourceBase for the witness's log.
func NewRecorder(dir, base string, o RecorderOptions) (*Recorder, error) { return &Recorder{}, nil }

// ResourceBase is the base name of the witness's log.
const ResourceBase = "resource"

func (r *Recorder) Key(name string) uint32              { return 0 }
func (r *Recorder) Error(text string) uint16            { return 0 }
func (r *Recorder) Begin(op *Operation) Slot            { return Slot{} }
func (r *Recorder) End(s Slot, op *Operation)           {}
func (r *Recorder) SetClockError(ns int64)              {}
func (r *Recorder) SetProcess(number uint16, p Process) {}
func (r *Recorder) Dropped() int64                      { return 0 }
func (r *Recorder) Err() error                          { return nil }
func (r *Recorder) Close() error                        { return nil }
func (r *Recorder) Cursor() *Cursor                     { return &Cursor{} }

// Cursor gives what is new in a recorder, for the coordinator.
type Cursor struct{}

// Next gives the next batch, or nil if nothing is new.
func (c *Cursor) Next() ([]byte, error) { return nil, nil }

// Receiver writes the batches of remote workers as their recorders would have.
type Receiver struct{}

// ReceiverOptions say what else is done with what arrives.
type ReceiverOptions struct {
	// Tap, if not nil, is given each batch decoded, with keys and errors renumbered into one Names for all workers.
	Tap func(base string, names *Names, updates []Update)
}

// Update is an operation that was newly invoked or completed, as its Commit says. ID names it within its base.
type Update struct {
	ID        uint64
	Operation Operation
}

func NewReceiver(dir string, o ReceiverOptions) (*Receiver, error) { return &Receiver{}, nil }
func (r *Receiver) Receive(batch []byte) error                     { return nil }
func (r *Receiver) Close() error                                   { return nil }
