package process

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Journal says on disk what must be undone if we die. It is a file of JSON lines, only ever added to, each line by one
// write: what was begun is in the kernel's hands before Begin returns and survives SIGKILL of the writer (not a loss of
// power, which ends the processes anyway). All methods may be called concurrently.
//
// The first line says whose journal it is. Then each thing to undo has a line when it begins, and one when it is undone:
//
//	{"journal":1,"runner":4711,"start":88123,"boot":"…","pids":"pid:[…]","mark":"…"}
//	{"begin":1,"kind":"process","data":{"name":"w1","pid":4720,…}}
//	{"end":1}
type Journal struct {
	path string
	mark string

	mu     sync.Mutex
	file   *os.File
	last   int
	open   map[int]bool
	torn   bool // the last write failed midway
	closed bool
}

// line is any line of a journal.
type line struct {
	Journal int    `json:"journal,omitempty"` // the format's version, on the first line
	Runner  int    `json:"runner,omitempty"`
	Start   uint64 `json:"start,omitempty"`
	Boot    string `json:"boot,omitempty"`
	PIDs    string `json:"pids,omitempty"`
	Mark    string `json:"mark,omitempty"`

	Begin int             `json:"begin,omitempty"`
	Kind  string          `json:"kind,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`

	End int `json:"end,omitempty"`

	Failed int    `json:"failed,omitempty"` // written by Replay
	Error  string `json:"error,omitempty"`
}

const journalVersion = 1

// OpenJournal makes a new journal; its directory is made too. A file that is there already is somebody's journal, and an
// error: replay it first.
func OpenJournal(path string) (*Journal, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	self, err := lookup(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("open journal: find our own start time: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{path: path, mark: rand.Text(), file: file, open: map[int]bool{}}
	err = j.append(line{
		Journal: journalVersion, Runner: self.pid, Start: self.start, Boot: boot(), PIDs: pidSpace(), Mark: j.mark,
	})
	if err != nil {
		file.Close()
		os.Remove(path)
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return j, nil
}

// Path is where the journal is, absolute.
func (j *Journal) Path() string { return j.path }

// Begin journals that something is about to be done that must be undone, and returns what to call once it was. data is what
// undoing it will need, as JSON; kind chooses who undoes it. If Begin fails, don't do it.
//
// done may be called more than once, and after Close. If it fails, undoing happens once more, if we die: harmless.
func (j *Journal) Begin(kind string, data any) (done func() error, err error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", kind, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, fmt.Errorf("journal %s: %s is closed", kind, j.path)
	}
	j.last++
	id := j.last
	if err := j.append(line{Begin: id, Kind: kind, Data: raw}); err != nil {
		return nil, fmt.Errorf("journal %s: %w", kind, err)
	}
	j.open[id] = true
	return func() error { return j.end(id) }, nil
}

func (j *Journal) end(id int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open[id] {
		return nil
	}
	if err := j.append(line{End: id}); err != nil {
		return fmt.Errorf("journal the end of entry %d: %w", id, err)
	}
	delete(j.open, id)
	return j.finish()
}

// Close removes the journal if all is undone, and ends what still runs of those that left their group. Otherwise the file
// stays until the last done is called, and the error says how much there is to undo.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	if n := len(j.open); n > 0 {
		return fmt.Errorf("close journal: %d entries of %s are not undone", n, j.path)
	}
	return j.finish()
}

// finish removes the file of a closed journal that has nothing left to undo.
func (j *Journal) finish() error {
	if !j.closed || len(j.open) > 0 {
		return nil
	}
	if j.last > 0 {
		if err := endMarked(j.mark); err != nil {
			return fmt.Errorf("close journal: %w", err)
		}
	}
	if err := os.Remove(j.path); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return j.file.Close()
}

// append writes one line. After a write that failed midway (a full disk) the next begins a line of its own.
func (j *Journal) append(l line) error {
	text, err := encode(l)
	if err != nil {
		return err
	}
	if j.torn {
		text = append([]byte{'\n'}, text...)
	}
	_, err = j.file.Write(text)
	j.torn = err != nil
	return err
}

func encode(l line) ([]byte, error) {
	text, err := json.Marshal(l)
	return append(text, '\n'), err
}

// markEnv is what children started under this journal carry in their environment, and theirs after them. It finds them
// where the journal has no line (yet), or no line that leads to them: a grandchild that made a session of its own.
func (j *Journal) markEnv() []string {
	if j == nil {
		return nil
	}
	return []string{markVariable + "=" + j.mark}
}
