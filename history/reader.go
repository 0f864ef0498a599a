package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Where things are in a results directory.
const (
	historyDir = "history"
	eventsFile = "faults.jsonl"
)

// Reader reads a recorded run as a stream, in memory that does not grow with its length. It may be used by one goroutine
// at a time.
type Reader struct {
	dir      string
	run      string // whose files these are
	clients  []*source
	resource *source
	names    *interner
	workers  []Process
	claimed  map[uint16]string
}

// Source is what is known of one recorder's files.
type Source struct {
	Base   string
	Number uint16 // index into Names.Workers
	// Closed: the recorder was closed in order. That of a process that was killed was not.
	Closed bool
	// Streamed: the files were written by a Receiver. If Closed is false too, the last of what the process did is missing; that
	// of a process that was killed is closed once somebody has sent the rest of it.
	Streamed bool
	// Dropped counts operations that could not be recorded, and Error says why.
	Dropped int64
	Error   string
	// Rows is how many operations there are; of segments not converted yet it counts all slots.
	Rows int64
}

// Open finds the files of the results directory dir: dir/history, or dir itself if it has no such directory, and the
// witness's log. It takes segments that are not converted yet as well. It reads what files say of themselves; what is wrong
// inside them comes with the operations.
func Open(dir string) (*Reader, error) {
	r := &Reader{dir: dir, names: newInterner(), claimed: map[uint16]string{}}
	inside := filepath.Join(dir, historyDir)
	if _, err := os.Stat(inside); errors.Is(err, fs.ErrNotExist) {
		inside = dir
	}
	bases, err := listBases(inside)
	if err != nil {
		return nil, err
	}
	for _, b := range bases {
		if b.base == ResourceBase || b.empty() {
			continue
		}
		s, err := openSource(b)
		if err != nil {
			return nil, err
		}
		if err := r.claim(s); err != nil {
			return nil, err
		}
		r.clients = append(r.clients, s)
	}
	if bases, err = listBases(dir); err != nil {
		return nil, err
	}
	for _, b := range bases {
		if b.base == ResourceBase && !b.empty() {
			if r.resource, err = openSource(b); err != nil {
				return nil, err
			}
			for _, p := range r.resource.processes {
				r.worker(p.Number)
				if r.claimed[p.Number] == "" {
					r.workers[p.Number] = p.Process
				}
			}
		}
	}
	for i, s := range r.sources() {
		if i == 0 {
			r.run = s.final.Run
		} else if s.final.Run != r.run {
			return nil, ofAnotherRun(s.says, s.final.Run, r.run)
		}
	}
	if len(r.clients) == 0 && r.resource == nil {
		return nil, fmt.Errorf("history: a history in %s is %w: no <worker>.<incarnation>-<part>.parquet or .seg is there; give the results directory of a run", dir, ErrMissing)
	}
	return r, nil
}

func (b *baseFiles) empty() bool {
	return len(b.parts) == 0 && len(b.segments) == 0 && b.whole == "" && !b.names
}

// claim enters a recorder's process among the workers.
func (r *Reader) claim(s *source) error {
	n := s.final.Number
	if other := r.claimed[n]; other != "" {
		return damaged(filepath.Join(s.dir, s.base), ErrCorrupt, "%s and %s both say that they are process %d", other, s.base, n)
	}
	r.claimed[n] = s.base
	r.worker(n)
	r.workers[n] = s.final.Process
	return nil
}

// worker makes sure that there is a worker of that number.
func (r *Reader) worker(n uint16) {
	for len(r.workers) <= int(n) {
		r.workers = append(r.workers, Process{Worker: fmt.Sprintf("?%d", len(r.workers))})
	}
}

// Names are the strings that operations refer to. Workers are all there from the start, except for those that only an
// operation tells of; keys and errors as far as operations have been read. It is valid until the next operation is read.
func (r *Reader) Names() *Names {
	return &Names{Keys: r.names.table.keys, Errors: r.names.table.errors, Workers: r.workers}
}

// Run is the id of the run whose files these are; "" if they don't say.
func (r *Reader) Run() string { return r.run }

// Sources tell of each recorder's files, the witness's log last.
func (r *Reader) Sources() []Source {
	var list []Source
	for _, s := range r.sources() {
		m := s.final
		list = append(list, Source{Base: s.base, Number: m.Number, Closed: m.Closed, Streamed: m.Streamed, Dropped: m.Dropped, Error: m.Error, Rows: s.rows})
	}
	return list
}

func (r *Reader) sources() []*source {
	if r.resource == nil {
		return r.clients
	}
	return append(r.clients[:len(r.clients):len(r.clients)], r.resource)
}

// All yields the clients' operations by Call. After an error it ends. It can be called again, from the start.
func (r *Reader) All() iter.Seq2[Operation, error] { return r.read(r.clients...) }

// Resource yields the witness's log in the order of its decisions.
func (r *Reader) Resource() iter.Seq2[Operation, error] {
	if r.resource == nil {
		return func(func(Operation, error) bool) {}
	}
	return r.read(r.resource)
}

func (r *Reader) read(sources ...*source) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		var streams []*head
		for _, s := range sources {
			streams = append(streams, s.streams(r.names)...)
		}
		for op, err := range merge(streams) {
			if int(op.Worker) >= len(r.workers) {
				r.worker(op.Worker)
			}
			if !yield(op, err) {
				return
			}
		}
	}
}

// Events are those of faults.jsonl, by ID; none if there is no such file.
func (r *Reader) Events() ([]Event, error) {
	path := filepath.Join(r.dir, eventsFile)
	f, err := readEvents(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && f.lines > 0 && f.run != r.run {
		return nil, ofAnotherRun(path, f.run, r.run)
	}
	return f.events, err
}

// Close ends the use of a Reader.
func (r *Reader) Close() error { return nil }

// source is one recorder's files, surveyed.
type source struct {
	*baseFiles
	final     partMetadata // of the last part; of segments, as far as it is known
	says      string       // the path of the file that says it
	processes []processRecord
	rows      int64
	first     map[uint32]int64 // the first Call of each part
	left      *leftovers
	table     *nameTable
}

func openSource(b *baseFiles) (*source, error) {
	s := &source{baseFiles: b, first: map[uint32]int64{}}
	if b.whole != "" {
		b.parts, b.segments = map[uint32]string{0: b.whole}, nil
	} else if err := b.check(); err != nil {
		return nil, err
	}
	processes := map[uint16]Process{}
	note := func(p processRecord) {
		p.ClockError = max(p.ClockError, processes[p.Number].ClockError)
		processes[p.Number] = p.Process
	}
	var last uint32
	var run *string // of the first part
	for _, n := range slices.Sorted(maps.Keys(b.parts)) {
		path := b.parts[n]
		p, err := openPart(path)
		if err != nil {
			return nil, err
		}
		_ = p.file.Close()
		if run == nil {
			run = &p.meta.Run
		} else if p.meta.Run != *run {
			return nil, ofAnotherRun(path, p.meta.Run, *run)
		}
		if p.meta.Base != b.base || p.meta.Part != n {
			return nil, damaged(path, ErrCorrupt, "it says that it is part %d of %s", p.meta.Part, p.meta.Base)
		}
		s.first[n] = p.meta.First
		s.rows += p.meta.Rows
		for _, r := range p.meta.Processes {
			note(r)
		}
		last, s.final, s.says = n, p.meta, path
	}
	if len(b.segments) > 0 || len(b.parts) == 0 {
		var err error
		s.says = namesPath(b.dir, b.base)
		if s.table, err = readNames(s.says); err != nil {
			return nil, err
		}
		if run != nil && s.table.base.Run != *run {
			return nil, ofAnotherRun(s.says, s.table.base.Run, *run)
		}
		if s.left, err = surveyLeftovers(b.segments); err != nil {
			return nil, err
		}
		s.final = partMetadata{Run: s.table.base.Run, Base: b.base, Number: s.table.base.Number, Streamed: s.table.base.Streamed, Dropped: s.left.dropped}
		if s.final.Dropped > 0 {
			s.final.Error = "the recorder could not write"
		}
		for number, p := range s.table.processes {
			note(processRecord{number, p})
		}
		for part, first := range s.left.first {
			s.first[part] = first
		}
	} else if !s.final.Final {
		return nil, fmt.Errorf("history: what follows %s is %w: it is not the last part of its record; restore the later ones from a copy, or run again: nothing is decided from a part of a history",
			b.parts[last], ErrMissing)
	}
	if b.base != ResourceBase {
		s.final.Process = processes[s.final.Number]
	}
	for number, p := range processes {
		s.processes = append(s.processes, processRecord{number, p})
	}
	slices.SortFunc(s.processes, func(a, b processRecord) int { return int(a.Number) - int(b.Number) })
	return s, nil
}

// streams gives a stream for each part, not opened yet.
func (s *source) streams(names *interner) []*head {
	var list []*head
	for n, path := range s.parts {
		list = append(list, &head{first: s.first[n], base: s.base, part: n, open: func() (stream, error) {
			p, err := openPart(path)
			if err != nil {
				return nil, err
			}
			if err := p.verify(); err != nil {
				_ = p.file.Close()
				return nil, err
			}
			return newPartStream(p, names), nil
		}})
	}
	for n := range s.segments {
		list = append(list, &head{first: s.first[n], base: s.base, part: n, open: func() (stream, error) {
			ops, err := s.left.read(n, s.table, s.left.latest, nil)
			if err != nil {
				return nil, err
			}
			for i := range ops {
				ops[i].Key = names.key(s.table.keys[ops[i].Key])
				ops[i].Error = names.error(s.table.errors[ops[i].Error])
			}
			return &segmentStream{ops: ops}, nil
		}})
	}
	slices.SortFunc(list, func(a, b *head) int { return int(a.part) - int(b.part) })
	return list
}

// segmentStream is a left-over segment, sorted in memory.
type segmentStream struct {
	ops   []Operation
	order []sortKey
	batch []Operation
}

func (s *segmentStream) next() ([]Operation, error) {
	if s.batch == nil {
		var c converter
		s.order = c.sorted(s.ops)
		s.batch = make([]Operation, 0, rowsPerBatch)
	}
	n := min(len(s.order), rowsPerBatch)
	if n == 0 {
		return nil, io.EOF
	}
	s.batch = s.batch[:0]
	for _, k := range s.order[:n] {
		s.batch = append(s.batch, s.ops[k.index])
	}
	s.order = s.order[n:]
	return s.batch, nil
}

func (s *segmentStream) close() {}

// interner gives numbers to strings across files.
type interner struct {
	table  *nameTable
	keys   map[string]uint32
	errors map[string]uint16
}

func newInterner() *interner {
	return &interner{table: newNameTable(), keys: map[string]uint32{"": 0}, errors: map[string]uint16{"": 0}}
}

func (n *interner) key(name string) uint32 {
	i, ok := n.keys[name]
	if !ok {
		i = uint32(len(n.table.keys))
		n.keys[name] = i
		n.table.keys = append(n.table.keys, name)
	}
	return i
}

func (n *interner) error(text string) uint16 {
	i, ok := n.errors[text]
	if !ok {
		if len(n.table.errors) >= 1<<16-1 && text != OtherErrors {
			return n.error(OtherErrors)
		}
		i = uint16(len(n.table.errors))
		n.errors[text] = i
		n.table.errors = append(n.table.errors, text)
	}
	return i
}
