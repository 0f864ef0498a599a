package history

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// part is an open Parquet part.
type part struct {
	path    string
	file    *os.File
	parquet *parquet.File
	meta    partMetadata
	data    int64 // how many bytes are under sum
	sum     uint32
}

// partStream decodes a part column by column: a batch of rows at a time, one page of each column in memory.
type partStream struct {
	*part
	names *interner

	group   int
	rows    int64 // left in the row group
	columns [columnCount]columnStream
	read    int64
	last    int64 // the last Call

	keys, errors  []uint32 // of the current dictionary, by its index: number in names, plus one
	primitiveKind map[[2]string]Kind
	operations    []Operation
}

// columnStream reads one column of one row group.
type columnStream struct {
	pages parquet.Pages
	page  parquet.Page
	at    int
	left  int // in the page

	longs      []int64
	shorts     []int32 // values, or indexes into the dictionary
	bits       []byte
	dictionary parquet.Dictionary
	strings    []string // the dictionary's, or the page's if it has none
	fresh      bool     // strings has changed since it was last looked at
}

func newPartStream(p *part, names *interner) *partStream {
	return &partStream{part: p, names: names, primitiveKind: map[[2]string]Kind{}, last: minTime}
}

// next gives the following rows, by Call; io.EOF after the last. The slice is reused.
func (s *partStream) next() (ops []Operation, err error) {
	defer func() {
		// The checksums make damage improbable here; what remains is a file made to deceive, and that is no reason to panic.
		if broken := recover(); broken != nil {
			err = damaged(s.path, ErrCorrupt, "%v", broken)
		}
	}()
	for s.rows == 0 {
		s.closeColumns()
		groups := s.parquet.RowGroups()
		if s.group == len(groups) {
			if s.read != s.meta.Rows {
				return nil, damaged(s.path, ErrTruncated, "it should hold %d operations and holds %d", s.meta.Rows, s.read)
			}
			return nil, io.EOF
		}
		g := groups[s.group]
		s.group++
		s.rows = g.NumRows()
		for c, chunk := range g.ColumnChunks() {
			s.columns[c] = columnStream{pages: chunk.Pages(), shorts: s.columns[c].shorts[:0]}
		}
	}
	n := int(min(s.rows, rowsPerBatch))
	for c := range s.columns {
		if s.columns[c].left == 0 {
			if err := s.columns[c].turn(c); err != nil {
				return nil, s.broken(c, err)
			}
		}
		n = min(n, s.columns[c].left)
	}
	if cap(s.operations) < n {
		s.operations = make([]Operation, rowsPerBatch)
	}
	ops = s.operations[:n]
	if err := s.decode(ops); err != nil {
		return nil, err
	}
	for c := range s.columns {
		s.columns[c].at += n
		s.columns[c].left -= n
	}
	s.rows -= int64(n)
	s.read += int64(n)
	return ops, nil
}

func (s *partStream) broken(c int, err error) error {
	kind := ErrCorrupt
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		kind, err = ErrTruncated, errors.New("it ends early")
	}
	return damaged(s.path, kind, "column %s: %v", partSchema.Columns()[c][0], err)
}

// turn goes to the next page that holds anything.
func (c *columnStream) turn(column int) error {
	for {
		if c.page != nil {
			parquet.Release(c.page)
			c.page = nil
		}
		page, err := c.pages.ReadPage()
		if err != nil {
			return err
		}
		c.page, c.at, c.left = page, 0, int(page.NumValues())
		if c.left == 0 {
			continue
		}
		data := page.Data()
		switch column {
		case columnCall, columnReturn, columnA, columnB, columnC, columnD:
			c.longs = data.Int64()
			c.left = len(c.longs)
		case columnPrimitive, columnKind, columnOutcome, columnKey, columnError, columnWorker:
			if d := page.Dictionary(); d != nil {
				c.shorts = data.Int32()
				if d != c.dictionary {
					c.dictionary, c.fresh = d, true
					c.strings = make([]string, d.Len())
					for i := range c.strings {
						c.strings[i] = string(d.Index(int32(i)).ByteArray())
					}
				}
				for _, i := range c.shorts {
					if i < 0 || int(i) >= len(c.strings) {
						return fmt.Errorf("its dictionary has no entry %d", i)
					}
				}
			} else {
				// Too many different strings: the writer gave up its dictionary.
				c.dictionary, c.fresh = nil, true
				bytes, offsets := data.ByteArray()
				c.strings, c.shorts = c.strings[:0:0], make([]int32, c.left)
				for i := range c.left {
					c.strings = append(c.strings, string(bytes[offsets[i]:offsets[i+1]]))
					c.shorts[i] = int32(i)
				}
			}
			c.left = len(c.shorts)
		case columnCompleted:
			c.bits = data.Boolean()
			if len(c.bits)*8 < c.left {
				return errors.New("a page holds less than it says")
			}
		default:
			c.shorts = data.Int32()
			c.left = len(c.shorts)
		}
		if c.left > 0 {
			return nil
		}
	}
}

// decode fills ops from the columns' present pages.
func (s *partStream) decode(ops []Operation) error {
	n := len(ops)
	longs := func(c int) []int64 { return s.columns[c].longs[s.columns[c].at:][:n] }
	shorts := func(c int) []int32 { return s.columns[c].shorts[s.columns[c].at:][:n] }
	call, ret := longs(columnCall), longs(columnReturn)
	a, b, c, d := longs(columnA), longs(columnB), longs(columnC), longs(columnD)
	process, client, node, flags := shorts(columnProcess), shorts(columnClient), shorts(columnNode), shorts(columnFlags)
	primitive, kind := shorts(columnPrimitive), shorts(columnKind)
	outcome, key, fault := shorts(columnOutcome), shorts(columnKey), shorts(columnError)
	s.renumber(columnKey, &s.keys)
	s.renumber(columnError, &s.errors)
	outcomes, err := s.outcomes()
	if err != nil {
		return err
	}
	done := &s.columns[columnCompleted]
	for i := range ops {
		o := &ops[i]
		*o = Operation{
			Call: call[i], Return: ret[i], A: a[i], B: b[i], C: c[i], D: d[i],
			Outcome: outcomes[outcome[i]], Commit: Invoked, Flags: Flags(flags[i]),
			Worker: uint16(process[i]), Client: uint16(client[i]), Node: uint16(node[i]),
		}
		if uint32(process[i])|uint32(client[i]) > 0xffff || node[i] < -1 || node[i] > 0xffff || uint32(flags[i]) > 0xff {
			return damaged(s.path, ErrCorrupt, "operation %d has a number out of range", s.read+int64(i))
		}
		if at := done.at + i; done.bits[at/8]>>(at%8)&1 != 0 {
			o.Commit = Completed
		}
		if o.Kind, err = s.kind(primitive[i], kind[i]); err != nil {
			return err
		}
		if s.keys[key[i]] == 0 {
			s.keys[key[i]] = s.names.key(s.columns[columnKey].strings[key[i]]) + 1
		}
		o.Key = s.keys[key[i]] - 1
		if s.errors[fault[i]] == 0 {
			s.errors[fault[i]] = uint32(s.names.error(s.columns[columnError].strings[fault[i]])) + 1
		}
		o.Error = uint16(s.errors[fault[i]] - 1)
		if o.Call < s.last {
			return damaged(s.path, ErrCorrupt, "operation %d is not in order", s.read+int64(i))
		}
		if o.Return < o.Call {
			return damaged(s.path, ErrCorrupt, "operation %d returned before it was called", s.read+int64(i))
		}
		s.last = o.Call
	}
	return nil
}

// renumber forgets the numbers of a dictionary that is gone.
func (s *partStream) renumber(column int, numbers *[]uint32) {
	if c := &s.columns[column]; c.fresh {
		c.fresh = false
		*numbers = make([]uint32, len(c.strings))
	}
}

func (s *partStream) outcomes() ([]Outcome, error) {
	c := &s.columns[columnOutcome]
	out := make([]Outcome, len(c.strings))
	for i, name := range c.strings {
		o, err := ParseOutcome(name)
		if err != nil {
			return nil, damaged(s.path, ErrCorrupt, "%v", err)
		}
		out[i] = o
	}
	return out, nil
}

func (s *partStream) kind(primitive, kind int32) (Kind, error) {
	name := [2]string{s.columns[columnPrimitive].strings[primitive], s.columns[columnKind].strings[kind]}
	k, ok := s.primitiveKind[name]
	if !ok {
		var err error
		if k, err = ParseKind(name[0], name[1]); err != nil || name[1] == "" {
			return 0, damaged(s.path, ErrCorrupt, "there is no operation called %q of a %q here", name[1], name[0])
		}
		s.primitiveKind[name] = k
	}
	return k, nil
}

func (s *partStream) closeColumns() {
	for i := range s.columns {
		c := &s.columns[i]
		if c.page != nil {
			parquet.Release(c.page)
			c.page = nil
		}
		if c.pages != nil {
			_ = c.pages.Close()
			c.pages = nil
		}
	}
}

func (s *partStream) close() {
	s.closeColumns()
	_ = s.file.Close()
}
