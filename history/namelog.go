package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"unicode/utf8"
)

// <base>.names holds the strings that the segments of that base refer to by number, in the order of their numbers, and what
// is known of processes. Records are only appended, each before the first slot that refers to it, so that they outlive
// SIGKILL as slots do:
//
//	length uint32 · CRC-32C of kind and text, uint32 · kind byte · text
//
// The file is locked (flock) by the process that records, for as long as it lives.
const (
	recordBase    = 'b' // JSON baseRecord; the first record
	recordProcess = 'p' // JSON processRecord; the last one of a number counts
	recordKey     = 'k'
	recordError   = 'e'

	// maxErrors is how many different errors one recorder names; OtherErrors stands for the rest, so that an error with a
	// port number in it can't fill the disk.
	maxErrors = 4096
	// OtherErrors is the text of errors beyond those.
	OtherErrors = "(other errors: too many different ones to name)"
	maxName     = 1 << 20
)

type baseRecord struct {
	Format   int    `json:"format"`
	Run      string `json:"run,omitempty"`
	Number   uint16 `json:"number"`
	Streamed bool   `json:"streamed,omitempty"`
}

type processRecord struct {
	Number uint16 `json:"number"`
	Process
}

// nameLog interns strings and writes them down. It is safe for concurrent use.
type nameLog struct {
	mutex  sync.RWMutex
	file   *os.File
	size   int64
	keys   map[string]uint32
	errors map[string]uint16
	err    error
	failed func(error) // told once, before the failing call returns
}

func createNameLog(path string, base baseRecord, failed func(error)) (*nameLog, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("history: %s exists: each incarnation of a worker is recorded once, under a name of its own: %w", path, err)
		}
		return nil, fmt.Errorf("history: %w", err)
	}
	l := &nameLog{file: f, keys: map[string]uint32{"": 0}, errors: map[string]uint16{"": 0}, failed: failed}
	base.Format = formatVersion
	text, _ := json.Marshal(base)
	if err = lock(f); err == nil {
		err = l.append(recordBase, text)
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	return l, nil
}

func nameRecord(kind byte, text []byte) []byte {
	b := make([]byte, 9, 9+len(text))
	b[8] = kind
	b = append(b, text...)
	binary.LittleEndian.PutUint32(b, uint32(len(text)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return b
}

// append writes one record; the caller holds the mutex, or is alone.
func (l *nameLog) append(kind byte, text []byte) error {
	if l.err != nil {
		return l.err
	}
	b := nameRecord(kind, text)
	if _, err := l.file.WriteAt(b, l.size); err != nil {
		l.err = fmt.Errorf("history: writing %s: %w", l.file.Name(), err)
		if l.failed != nil {
			l.failed(l.err)
		}
		return l.err
	}
	l.size += int64(len(b))
	return nil
}

func (l *nameLog) key(name string) uint32 {
	l.mutex.RLock()
	i, ok := l.keys[name]
	l.mutex.RUnlock()
	if ok {
		return i
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if i, ok := l.keys[name]; ok {
		return i
	}
	if l.append(recordKey, []byte(readable(name))) != nil {
		return 0
	}
	i = uint32(len(l.keys))
	l.keys[name] = i
	return i
}

func (l *nameLog) error(text string) uint16 {
	l.mutex.RLock()
	i, ok := l.errors[text]
	l.mutex.RUnlock()
	if ok {
		return i
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.errors) >= maxErrors {
		text = OtherErrors
	}
	if i, ok := l.errors[text]; ok {
		return i
	}
	if l.append(recordError, []byte(readable(text))) != nil {
		return 0
	}
	i = uint16(len(l.errors))
	l.errors[text] = i
	return i
}

func (l *nameLog) process(number uint16, p Process) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	text, _ := json.Marshal(processRecord{number, p})
	_ = l.append(recordProcess, text)
}

// since gives the records from byte offset on, and where they end.
func (l *nameLog) since(offset int64) ([]byte, int64, error) {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	b := make([]byte, l.size-offset)
	if len(b) == 0 {
		return nil, offset, nil
	}
	_, err := l.file.ReadAt(b, offset)
	return b, l.size, err
}

// readable makes a string fit for a Parquet string column: Go's quoted form stands for one that isn't UTF-8 or too long.
func readable(s string) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	if utf8.ValidString(s) {
		return s
	}
	return strconv.Quote(s)
}

// nameTable is what a names file says.
type nameTable struct {
	base      baseRecord
	keys      []string
	errors    []string
	processes map[uint16]Process
	torn      bool // the last record is incomplete: its writer was killed, and no slot refers to it
}

func newNameTable() *nameTable {
	return &nameTable{keys: []string{""}, errors: []string{""}, processes: map[uint16]Process{}}
}

// readNames reads a names file. A torn last record is no error: what was written before it is whole, and a slot that
// refers to more is found when it is read.
func readNames(path string) (*nameTable, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("history: %s is %w, and the segments beside it refer to it; restore it from a copy, or run again", path, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	t := newNameTable()
	if err := t.add(path, b); err != nil {
		return nil, err
	}
	if t.base.Format == 0 {
		return nil, damaged(path, ErrTruncated, "its first record is not there")
	}
	return t, nil
}

// add takes further records.
func (t *nameTable) add(path string, b []byte) error {
	for len(b) > 0 {
		kind, text, size, err := parseNameRecord(b)
		if err == io.ErrUnexpectedEOF {
			t.torn = true
			return nil
		}
		if err != nil {
			return damaged(path, ErrCorrupt, "%v", err)
		}
		b = b[size:]
		switch kind {
		case recordBase:
			if err := json.Unmarshal(text, &t.base); err != nil {
				return damaged(path, ErrCorrupt, "%v", err)
			}
			if t.base.Format != formatVersion {
				return fmt.Errorf("history: %s has format %d; this program reads format %d: use the one that recorded it", path, t.base.Format, formatVersion)
			}
		case recordProcess:
			var p processRecord
			if err := json.Unmarshal(text, &p); err != nil {
				return damaged(path, ErrCorrupt, "%v", err)
			}
			// Whoever narrows its clock error later did not know it better earlier: the widest bound holds for all.
			p.ClockError = max(p.ClockError, t.processes[p.Number].ClockError)
			t.processes[p.Number] = p.Process
		case recordKey:
			t.keys = append(t.keys, string(text))
		case recordError:
			t.errors = append(t.errors, string(text))
		default:
			return damaged(path, ErrCorrupt, "it holds a record of kind %q", kind)
		}
	}
	return nil
}

// parseNameRecord takes the first record of b. io.ErrUnexpectedEOF: b ends within it.
func parseNameRecord(b []byte) (kind byte, text []byte, size int, err error) {
	if len(b) < 9 {
		return 0, nil, 0, io.ErrUnexpectedEOF
	}
	n := binary.LittleEndian.Uint32(b)
	if n > 4*maxName+2 {
		return 0, nil, 0, fmt.Errorf("a record of %d bytes", n)
	}
	size = 9 + int(n)
	if len(b) < size {
		return 0, nil, 0, io.ErrUnexpectedEOF
	}
	if crc32.Checksum(b[8:size], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return 0, nil, 0, errors.New("a record's checksum is wrong")
	}
	return b[8], b[9:size], size, nil
}
