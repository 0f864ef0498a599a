package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func openJournal(t *testing.T) *Journal {
	t.Helper()
	j, err := OpenJournal(filepath.Join(t.TempDir(), "state", "run.journal"))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestJournalIsRemovedWhenAllIsUndone(t *testing.T) {
	j := openJournal(t)
	first, err1 := j.Begin("link", "w1>valkey/0")
	done, err2 := j.Begin("link", "w2>valkey/0")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err == nil || !strings.Contains(err.Error(), "2 entries") {
		t.Errorf("Close with entries open: %v", err)
	}
	if err := first(); err != nil {
		t.Fatal(err)
	}
	if !exists(j.Path()) {
		t.Fatal("the journal was removed with an entry open")
	}
	if _, err := j.Begin("link", nil); err == nil {
		t.Error("Begin after Close")
	}
	for range 2 { // the second time does nothing
		if err := done(); err != nil {
			t.Fatal(err)
		}
	}
	if exists(j.Path()) {
		t.Error("the journal is left after the last done")
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestJournalOfSomebodyElseIsNotTouched(t *testing.T) {
	j := openJournal(t)
	defer j.Close()
	if _, err := OpenJournal(j.Path()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("opened twice: %v", err)
	}
	other := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(other, []byte("buy milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Replay(other, nil); err == nil || !exists(other) {
		t.Errorf("replayed a file that is no journal: %v", err)
	}
}

func TestJournalConcurrently(t *testing.T) {
	j := openJournal(t)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 50 {
				done, err := j.Begin("n", g*1000+i)
				if err == nil && i%2 == 0 {
					err = done()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var undone int
	if err := Replay(j.Path(), Undo{"n": func(json.RawMessage) error { undone++; return nil }}); err != nil {
		t.Fatal(err)
	}
	if undone != 8*25 {
		t.Errorf("%d entries were undone, want %d", undone, 8*25)
	}
	j.file.Close()
}

// Whatever a journal's writer had come to when it was killed, Replay undoes what was begun and not ended, newest first, once.
func TestReplayUndoesExactlyWhatIsOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "journal")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "run.journal")
		j, err := OpenJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		head, _ := os.ReadFile(path)
		type step struct {
			begin, end int
			size       int // of the file after it
		}
		var steps []step
		dones := map[int]func() error{}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			open := make([]int, 0, len(dones))
			for id := range dones {
				open = append(open, id)
			}
			slices.Sort(open)
			var s step
			if len(open) > 0 && rapid.Bool().Draw(t, "end") {
				s.end = rapid.SampledFrom(open).Draw(t, "which")
				err = dones[s.end]()
				delete(dones, s.end)
			} else {
				s.begin = len(steps) + 1
				var done func() error
				done, err = j.Begin("n", s.begin)
				dones[s.begin] = done
			}
			if err != nil {
				t.Fatal(err)
			}
			text, _ := os.ReadFile(path)
			s.size = len(text)
			steps = append(steps, s)
		}
		j.file.Close()

		text, _ := os.ReadFile(path)
		cut := rapid.IntRange(len(head), len(text)).Draw(t, "cut")
		if err := os.Truncate(path, int64(cut)); err != nil {
			t.Fatal(err)
		}
		var want []int
		for _, s := range steps {
			if s.size > cut+1 { // a line without its line break is whole
				break
			}
			if s.begin > 0 {
				want = append([]int{s.begin}, want...)
			} else {
				want = slices.DeleteFunc(want, func(n int) bool { return n == s.end })
			}
		}

		// The first attempt fails at one of them, and only that one is tried again.
		bad := -1
		if len(want) > 0 {
			bad = rapid.SampledFrom(want).Draw(t, "bad")
		}
		var got []int
		undo := Undo{"n": func(data json.RawMessage) error {
			var n int
			if err := json.Unmarshal(data, &n); err != nil {
				return err
			}
			got = append(got, n)
			if n == bad {
				bad = -1
				return errors.New("not now")
			}
			return nil
		}}
		err = Replay(path, undo)
		if !slices.Equal(got, want) || (err != nil) != (len(want) > 0) {
			t.Fatalf("undone %v (%v), want %v", got, err, want)
		}
		got = nil
		if err := Replay(path, undo); err != nil || len(got) != min(1, len(want)) {
			t.Fatalf("the second time undone %v (%v)", got, err)
		}
		if exists(path) {
			t.Fatal("the journal is left")
		}
		if err := Replay(path, undo); err != nil {
			t.Fatalf("a journal that is gone: %v", err)
		}
	})
}

func TestReplayGoesOnAfterWhatItCannotUndo(t *testing.T) {
	j := openJournal(t)
	defer j.file.Close()
	for _, kind := range []string{"fine", "unheard-of", "broken"} {
		if _, err := j.Begin(kind, nil); err != nil {
			t.Fatal(err)
		}
	}
	fine := 0
	err := Replay(j.Path(), Undo{
		"fine":   func(json.RawMessage) error { fine++; return nil },
		"broken": func(json.RawMessage) error { panic("oh") },
	})
	if fine != 1 || err == nil || !strings.Contains(err.Error(), "unheard-of") || !strings.Contains(err.Error(), "oh") {
		t.Errorf("fine %d, error %v", fine, err)
	}
	text, _ := os.ReadFile(j.Path())
	if !bytes.Contains(text, []byte(`"failed":3,"error":"panic: oh"`)) {
		t.Errorf("the journal does not say why:\n%s", text)
	}
}

// edit rewrites a journal's text.
func edit(t *testing.T, path, old, new string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("no %q in %s (%v)", old, text, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReplayKills(t *testing.T) {
	t.Run("a process that is paused", func(t *testing.T) {
		j := openJournal(t)
		p, log := begin(t, "stubborn", j)
		awaitLog(t, log, "ready")
		if err := p.Pause(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := Replay(j.Path(), nil); err != nil {
			t.Fatal(err)
		}
		awaitDone(t, p)
	})
	t.Run("not one that has the number of ours", func(t *testing.T) {
		j := openJournal(t)
		p, _ := begin(t, "sleep", nil)
		self, err := lookup(p.PID())
		if err != nil {
			t.Fatal(err)
		}
		rec := record{Name: "dead", PID: p.PID(), Group: p.PID(), Session: self.session, Start: self.start - 1}
		if _, err := j.Begin(processKind, rec); err != nil {
			t.Fatal(err)
		}
		if err := Replay(j.Path(), nil); err != nil {
			t.Fatal(err)
		}
		if gone(p.PID()) {
			t.Error("a stranger was killed")
		}
		if exists(j.Path()) {
			t.Error("the journal is left")
		}
		j.file.Close()
	})
	t.Run("nothing of before the machine's last start", func(t *testing.T) {
		j := openJournal(t)
		p, _ := begin(t, "sleep", j)
		edit(t, j.Path(), boot(), "another-boot")
		if err := Replay(j.Path(), nil); err != nil {
			t.Fatal(err)
		}
		if gone(p.PID()) {
			t.Error("it was killed")
		}
	})
	t.Run("a group whose leader has ended", func(t *testing.T) {
		// A shell puts the group together, so that no reaper of ours ends it first.
		p, log := begin(t, "parent", nil)
		child := spawned(t, log)
		self, err := lookup(child)
		if err != nil {
			t.Fatal(err)
		}
		// As if the group were that of a process that started just before it and is gone.
		rec := record{Name: "leader", PID: 1 << 30, Group: p.PID(), Session: self.session, Start: self.start}
		if killed, err := killGroup(rec); err != nil || killed != p.PID() {
			t.Errorf("killed %d, %v", killed, err)
		}
		awaitDone(t, p)

		rec.Group = 1 << 30
		if killed, err := killGroup(rec); err != nil || killed != 0 {
			t.Errorf("killed %d, %v of a group that is empty", killed, err)
		}
	})
	t.Run("not a group of that number in another session, or an older one", func(t *testing.T) {
		p, _ := begin(t, "sleep", nil)
		self, err := lookup(p.PID())
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range []record{
			{PID: 1 << 30, Group: p.PID(), Session: self.session + 1, Start: self.start},
			{PID: 1 << 30, Group: p.PID(), Session: self.session, Start: self.start + 1},
		} {
			if killed, err := killGroup(rec); err != nil || killed != 0 {
				t.Errorf("%+v: killed %d, %v", rec, killed, err)
			}
		}
	})
	t.Run("what has left its group", func(t *testing.T) {
		j := openJournal(t)
		p, log := begin(t, "daemon", j)
		child := spawned(t, log)
		if err := Replay(j.Path(), nil); err != nil {
			t.Fatal(err)
		}
		awaitDone(t, p)
		if !gone(child) {
			t.Error("the grandchild in a session of its own is left")
		}
	})
}

func TestCloseEndsWhatHasLeftItsGroup(t *testing.T) {
	j := openJournal(t)
	p, log := begin(t, "daemon", j)
	child := spawned(t, log)
	if err := p.Kill(soon(t)); err != nil {
		t.Fatal(err)
	}
	if gone(child) {
		t.Fatal("it was in the group after all")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if !gone(child) {
		t.Error("the grandchild in a session of its own is left")
	}
}

func TestOrphans(t *testing.T) {
	j := openJournal(t)
	defer j.file.Close()
	dir := filepath.Dir(j.Path())
	orphans := func() []string {
		t.Helper()
		found, err := Orphans(dir)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for name, text := range map[string]string{"empty": "", "notes.txt": "buy milk\n", "other.json": "{}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := orphans(); len(got) != 0 {
		t.Errorf("while its runner lives: %v", got)
	}
	self, err := lookup(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	edit(t, j.Path(), fmt.Sprintf(`"start":%d`, self.start), `"start":1`)
	if got := orphans(); !slices.Equal(got, []string{j.Path()}) {
		t.Errorf("when its runner's number is another's: %v", got)
	}
	edit(t, j.Path(), pidSpace(), "pid:[1]")
	if got := orphans(); len(got) != 0 {
		t.Errorf("of another container: %v", got)
	}
	if err := Replay(j.Path(), nil); err == nil || !exists(j.Path()) {
		t.Errorf("replayed another container's journal: %v", err)
	}
	edit(t, j.Path(), boot(), "another-boot")
	if got := orphans(); !slices.Equal(got, []string{j.Path()}) {
		t.Errorf("of another start of the machine: %v", got)
	}
	if found, err := Orphans(filepath.Join(dir, "absent")); err != nil || found != nil {
		t.Errorf("no directory: %v, %v", found, err)
	}
}
