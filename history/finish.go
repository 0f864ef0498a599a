package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	baseName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	fileName = regexp.MustCompile(`^(.+)-([0-9]{4,9})\.(parquet|seg)$`)
)

// baseFiles are the files of one recorder.
type baseFiles struct {
	base, dir string
	parts     map[uint32]string
	segments  map[uint32]string // those that have not become parts
	converted []string          // segments that have, and were not removed
	names     bool
	whole     string // resource.parquet
	remains   []string
}

// listBases finds the recorders' files in dir, by base name.
func listBases(dir string) ([]*baseFiles, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	found := map[string]*baseFiles{}
	of := func(base string) *baseFiles {
		if found[base] == nil {
			found[base] = &baseFiles{base: base, dir: dir, parts: map[uint32]string{}, segments: map[uint32]string{}}
		}
		return found[base]
	}
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		if e.IsDir() {
			continue
		}
		if name == ResourceBase+".parquet" {
			of(ResourceBase).whole = path
		} else if base, ok := strings.CutSuffix(name, ".names"); ok && baseName.MatchString(base) {
			of(base).names = true
		} else if m := fileName.FindStringSubmatch(name); m != nil && baseName.MatchString(m[1]) {
			n, _ := strconv.ParseUint(m[2], 10, 32)
			if m[3] == "seg" {
				of(m[1]).segments[uint32(n)] = path
			} else {
				of(m[1]).parts[uint32(n)] = path
			}
		} else if unfinished, ok := strings.CutSuffix(name, ".new"); ok {
			if m := fileName.FindStringSubmatch(unfinished); m != nil {
				of(m[1]).remains = append(of(m[1]).remains, path)
			} else if unfinished == ResourceBase+".parquet" {
				of(ResourceBase).remains = append(of(ResourceBase).remains, path)
			}
		}
	}
	var list []*baseFiles
	for _, b := range found {
		for n, path := range b.segments {
			// A part has its name only when it is whole.
			if b.parts[n] != "" {
				b.converted = append(b.converted, path)
				delete(b.segments, n)
			}
		}
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *baseFiles) int { return strings.Compare(a.base, b.base) })
	return list, nil
}

// check finds gaps in the numbers.
func (b *baseFiles) check() error {
	count := uint32(len(b.parts) + len(b.segments))
	for n := uint32(1); n <= count; n++ {
		if b.parts[n] == "" && b.segments[n] == "" {
			return fmt.Errorf("history: %s (or .parquet) is %w, though later parts are there; restore it from a copy, or run again: nothing is decided from a part of a history",
				segmentPath(b.dir, b.base, n), ErrMissing)
		}
	}
	return nil
}

// Finish converts what dead processes left in the results directory dir (its history/ and its resource log) to Parquet.
// Operations that have no answer become Unknown, returned when their process died, by the worker-died event in
// faults.jsonl, or else at the greatest time in their record. It may be interrupted at any moment and called again. Records
// that a living process still writes are left alone; the error then wraps ErrInUse. A damaged record is left as it is, and
// told.
func Finish(dir string) error {
	died := map[int]int64{}
	// What is wrong with the events is told by whoever needs them all.
	events, _ := LoadEvents(filepath.Join(dir, eventsFile))
	for _, e := range events {
		if e.Kind == EventWorkerDied && e.Process >= 0 {
			died[e.Process] = e.At
		}
	}
	var errs []error
	for _, d := range []string{dir, filepath.Join(dir, historyDir)} {
		bases, err := listBases(d)
		if err != nil {
			if d != dir && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return errors.Join(append(errs, err)...)
		}
		for _, b := range bases {
			errs = append(errs, b.finish(died))
		}
	}
	return errors.Join(errs...)
}

// finish locks one base and converts it.
func (b *baseFiles) finish(died map[int]int64) error {
	if !b.names {
		for _, path := range append(b.remains, b.converted...) {
			_ = os.Remove(path)
		}
		if len(b.segments) > 0 {
			return fmt.Errorf("history: %s is %w, and the segments beside it refer to it; restore it from a copy, or run again", namesPath(b.dir, b.base), ErrMissing)
		}
		return nil
	}
	f, err := os.OpenFile(namesPath(b.dir, b.base), os.O_RDWR, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody else has just finished it
		}
		return fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	if err := lock(f); err != nil {
		return err
	}
	return finishBase(b.dir, b.base, ending{died: died})
}

// ending is what is known of how a record ended.
type ending struct {
	closed  bool
	dropped int64
	err     string
	died    map[int]int64 // when processes died, by number
}

// finishBase makes parts of all segments of a base, and then removes its names. The caller has its lock. Whatever is
// interrupted here is done by the next call: each step leaves a state that it accepts.
func finishBase(dir, base string, e ending) error {
	bases, err := listBases(dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(bases, func(b *baseFiles) bool { return b.base == base })
	if i < 0 || !bases[i].names {
		return nil
	}
	b := bases[i]
	for _, path := range append(b.remains, b.converted...) {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("history: %w", err)
		}
	}
	if b.whole == "" {
		if err := b.check(); err != nil {
			return err
		}
		if err := b.convert(e); err != nil {
			return err
		}
		if base == ResourceBase {
			if err := mergeResource(dir); err != nil {
				return err
			}
		}
	}
	if base == ResourceBase {
		// resource.parquet is whole: what it was made of can go.
		leftover, err := filepath.Glob(filepath.Join(dir, ResourceBase+"-[0-9]*"))
		if err != nil {
			return err
		}
		for _, path := range leftover {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("history: %w", err)
			}
		}
	}
	if err := os.Remove(namesPath(dir, base)); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// convert makes parts of the segments. The last part is final.
func (b *baseFiles) convert(e ending) error {
	names, err := readNames(namesPath(b.dir, b.base))
	if err != nil {
		return err
	}
	left, err := surveyLeftovers(b.segments)
	if err != nil {
		return err
	}
	unanswered := left.latest
	if at, ok := e.died[int(names.base.Number)]; ok && b.base != ResourceBase {
		unanswered = at
	}
	final := uint32(len(b.parts) + len(b.segments))
	meta := partMetadata{Run: names.base.Run, Base: b.base, Number: names.base.Number, Streamed: names.base.Streamed}
	var c converter
	if final == 0 {
		// Its process died before the first segment.
		meta.Part, meta.Final = 1, true
		return c.write(b.dir, segmentPath(b.dir, b.base, 1), nil, names, meta)
	}
	for _, part := range left.parts {
		ops, err := left.read(part, names, unanswered, c.slots)
		if err != nil {
			return err
		}
		c.slots = ops
		meta.Part = part
		if part == final {
			meta.Final, meta.Closed, meta.Dropped, meta.Error = true, e.closed, max(e.dropped, left.dropped), e.err
			if meta.Dropped > 0 && meta.Error == "" {
				meta.Error = "the recorder could not write, and died before it said why"
			}
		}
		if err := c.write(b.dir, b.segments[part], ops, names, meta); err != nil {
			return err
		}
	}
	return nil
}

// mergeResource makes resource.parquet of the parts of the witness's log.
func mergeResource(dir string) error {
	bases, err := listBases(dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(bases, func(b *baseFiles) bool { return b.base == ResourceBase })
	if i < 0 {
		return nil
	}
	source, err := openSource(bases[i])
	if err != nil {
		return err
	}
	names := newInterner()
	for _, p := range source.processes {
		names.table.processes[p.Number] = p.Process
	}
	meta := source.final
	meta.Part, meta.Rows, meta.Processes = 0, 0, nil
	w, err := newPartWriter(filepath.Join(dir, ResourceBase+".parquet"), names.table, meta)
	if err != nil {
		return err
	}
	defer w.abandon()
	for op, err := range merge(source.streams(names)) {
		if err != nil {
			return err
		}
		if err := w.write(&op); err != nil {
			return err
		}
	}
	return w.finish()
}
