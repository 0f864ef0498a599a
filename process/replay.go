package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// Undo says, by kind of entry, how to undo it from the entry's data. Each must be idempotent, and take for undone what is
// gone: the processes are killed before any of them is called. The kind "process" is built in.
type Undo map[string]func(json.RawMessage) error

// Replay undoes what a journal has begun and not ended: first it kills every process group, then it undoes the rest, newest
// first, and then it removes the file. What can't be undone keeps the file, with a line that says why, and is in the error;
// the others are still undone, and not again by the next Replay. No file is nothing to do.
//
// Replay is for the journal of a runner that is dead. Replaying one journal twice at a time does no harm.
func Replay(path string, undo Undo) error {
	entries, head, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && head.Boot == boot() && head.PIDs != pidSpace() {
		err = fmt.Errorf("%s is of another container, whose processes can't be seen from here", path)
	}
	if err != nil {
		return fmt.Errorf("replay journal: %w", err)
	}
	r := replay{path: path}
	r.processes(entries, head)
	for _, e := range entries {
		if e.Kind != processKind {
			r.note(e, call(undo[e.Kind], e))
		}
	}
	if err := errors.Join(r.failed...); err != nil {
		return fmt.Errorf("replay journal %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replay journal: %w", err)
	}
	return nil
}

// read gives a journal's entries that are begun and not ended, newest first. A line that can't be read is one whose write
// was cut short: what it was to announce was then never done.
func read(path string) (entries []line, head line, err error) {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 { // empty: its runner died before the first line
		return nil, line{Boot: boot(), PIDs: pidSpace()}, err
	}
	begun := map[int]line{}
	for n, part := range bytes.Split(text, []byte{'\n'}) {
		var l line
		err := json.Unmarshal(part, &l)
		switch {
		case n == 0 && (err != nil || l.Journal == 0):
			return nil, line{}, fmt.Errorf("%s is not a journal", path)
		case n == 0 && l.Journal > journalVersion:
			return nil, line{}, fmt.Errorf("%s was written by a newer version (format %d)", path, l.Journal)
		case n == 0:
			head = l
		case err != nil:
		case l.Begin > 0:
			begun[l.Begin] = l
		case l.End > 0:
			delete(begun, l.End)
		}
	}
	for _, e := range begun {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b line) int { return b.Begin - a.Begin })
	return entries, head, nil
}

type replay struct {
	path   string
	failed []error
}

// note writes down what became of an entry. Lines are added as the runner adds them, so a Replay that is cut short loses
// nothing; the line break before each is for a last line that was torn.
func (r *replay) note(e line, err error) {
	l := line{End: e.Begin}
	if err != nil {
		r.failed = append(r.failed, fmt.Errorf("undo %s: %w", e.Kind, err))
		l = line{Failed: e.Begin, Error: err.Error()}
	}
	text, err := encode(l)
	if err != nil {
		return
	}
	file, err := os.OpenFile(r.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.Write(append([]byte{'\n'}, text...))
}

func call(undo func(json.RawMessage) error, e line) (err error) {
	if undo == nil {
		return errors.New("nothing here knows how")
	}
	defer func() {
		if p := recover(); p != nil { // one broken undo must not keep the others from being called
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return undo(e.Data)
}

// processes kills all groups at once, and then waits for each. After a restart of the machine there are none.
func (r *replay) processes(entries []line, head line) {
	if head.Boot != boot() {
		entries = slices.DeleteFunc(slices.Clone(entries), func(e line) bool {
			if e.Kind == processKind {
				r.note(e, nil)
			}
			return e.Kind == processKind
		})
		head.Mark = ""
	}
	type killed struct {
		entry line
		group int // 0: nothing was there to kill
		err   error
	}
	var all []killed
	for _, e := range entries {
		if e.Kind != processKind {
			continue
		}
		k := killed{entry: e}
		var rec record
		if k.err = json.Unmarshal(e.Data, &rec); k.err == nil {
			k.group, k.err = killGroup(rec)
		}
		all = append(all, k)
	}
	if err := endMarked(head.Mark); err != nil {
		r.failed = append(r.failed, err)
	}
	for _, k := range all {
		if k.err == nil && k.group > 0 {
			k.err = awaitKilled(k.group)
		}
		r.note(k.entry, k.err)
	}
}

// killGroup sends SIGKILL to what is left of a process and its group, and returns the group, or 0 if nothing is left. SIGKILL ends what is stopped, too; a SIGCONT before
// it would let a paused process run for a moment, and do what it was kept from.
//
// The number may be a stranger's by now. It is still ours if its process started when ours did. If there is no such process,
// then the group may live on without its leader; the kernel gives a number out again only when no group uses it, so ours are
// the members from our session that are no older than the leader.
func killGroup(rec record) (killed int, err error) {
	if rec.Group <= 1 {
		return 0, fmt.Errorf("group %d is not one of ours", rec.Group)
	}
	leader, err := lookup(rec.PID)
	switch {
	case err == nil && leader.start != rec.Start:
		return 0, nil
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	default:
		left, err := members(rec.Group)
		if err != nil {
			return 0, err
		}
		if !slices.ContainsFunc(left, func(r row) bool { return r.session == rec.Session && r.start >= rec.Start }) {
			return 0, nil
		}
	}
	err = syscall.Kill(-rec.Group, syscall.SIGKILL)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return 0, fmt.Errorf("kill group %d (%s): %w", rec.Group, rec.Name, err)
	}
	return rec.Group, nil
}

// killWait is how long SIGKILL may take. A process in an uninterruptible wait takes it when that ends.
const killWait = 2 * time.Second

func awaitKilled(group int) error {
	awaitGroup(group, killWait)
	if left, err := members(group); err != nil || len(left) > 0 {
		return fmt.Errorf("group %d still has %d processes %v after SIGKILL", group, len(left), killWait)
	}
	return nil
}

// endMarked kills whatever carries a journal's mark, until it has found nothing twice: one that forks may be a step ahead,
// and one that is executing a program has no environment for a moment.
func endMarked(mark string) error {
	if mark == "" {
		return nil
	}
	empty := 0
	for deadline := time.Now().Add(killWait); ; time.Sleep(5 * scanEvery) {
		left, err := marked(markVariable + "=" + mark)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			if empty++; empty == 2 {
				return nil
			}
			continue
		}
		empty = 0
		for _, r := range left {
			_ = syscall.Kill(r.pid, syscall.SIGKILL)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes are left %v after SIGKILL, the first is %d", len(left), killWait, left[0].pid)
		}
	}
}
