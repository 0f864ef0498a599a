package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded makes a results directory with two parts and left-over segments of w1.1, and the witness's log.
func recorded(t testing.TB) string {
	dir, inside := resultsDir(t)
	r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: w1, SegmentSize: 8 * int(operationSize)})
	must(t, err)
	for call := range int64(30) {
		op := Operation{Kind: Acquire, Call: call, Return: call + 1, Outcome: OK, Key: r.Key(fmt.Sprint("k", call%3))}
		s := r.Begin(&op)
		if call != 26 {
			r.End(s, &op)
		}
		if call == 20 {
			for r.waiting() {
			}
			r.mutex.Lock()
			r.convert = errors.New("leave the rest")
			r.mutex.Unlock()
		}
	}
	r.mutex.Lock()
	to := t.TempDir()
	must(t, os.CopyFS(to, os.DirFS(dir)))
	r.convert = nil
	r.mutex.Unlock()
	must(t, r.Close())
	w, err := NewRecorder(to, ResourceBase, RecorderOptions{SegmentSize: 8 * int(operationSize)})
	must(t, err)
	w.SetProcess(0, w1)
	for n := range int64(20) {
		op := Operation{Kind: Write, Call: n, Return: n, Outcome: OK, Key: w.Key("k1")}
		op.SetSequence(n + 1)
		w.End(w.Begin(&op), &op)
	}
	must(t, w.Close())
	return to
}

// waiting reports whether a full segment has not been converted yet.
func (r *Recorder) waiting() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.queue) > 0 || r.draining != nil && r.draining.isSettled()
}

func TestRecordedLoads(t *testing.T) {
	dir := recorded(t)
	h, err := Load(dir)
	must(t, err)
	if len(h.Operations) != 30 || len(h.Resource) != 20 {
		t.Fatalf("%d operations and %d attempts", len(h.Operations), len(h.Resource))
	}
	parts, _ := filepath.Glob(filepath.Join(dir, historyDir, "*.parquet"))
	segments, _ := filepath.Glob(filepath.Join(dir, historyDir, "*.seg"))
	if len(parts) < 1 || len(segments) < 1 {
		t.Fatalf("these tests need both: parts %v, segments %v", parts, segments)
	}
	if _, err := os.Stat(filepath.Join(dir, "resource.parquet")); err != nil {
		t.Error(err)
	}
	if rest, _ := filepath.Glob(filepath.Join(dir, "resource*")); len(rest) != 1 {
		t.Errorf("beside resource.parquet: %v", rest)
	}
}

// No byte of a part can change, and none can be missing from any file's end, without an error that names the file.
func TestDamageIsTold(t *testing.T) {
	dir := recorded(t)
	files, _ := filepath.Glob(filepath.Join(dir, historyDir, "*"))
	files = append(files, filepath.Join(dir, "resource.parquet"))
	for _, path := range files {
		whole, err := os.ReadFile(path)
		must(t, err)
		step := max(1, len(whole)/150)
		check := func(what string, b []byte) {
			t.Helper()
			must(t, os.WriteFile(path, b, 0o644))
			h, err := Load(dir)
			if err == nil {
				t.Errorf("%s, %s: read all the same: %d operations", filepath.Base(path), what, len(h.Operations))
				return
			}
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrMissing) {
				t.Errorf("%s, %s: wraps no sentinel: %v", filepath.Base(path), what, err)
			}
			if !strings.Contains(err.Error(), strings.TrimSuffix(filepath.Base(path), ".names")) {
				t.Errorf("%s, %s: doesn't name the file: %v", filepath.Base(path), what, err)
			}
		}
		for n := 0; n < len(whole); n += step {
			if strings.HasSuffix(path, ".names") && n > len(whole)-40 {
				break // records of the end that no slot refers to any more may be missing
			}
			check(fmt.Sprintf("cut to %d of %d bytes", n, len(whole)), whole[:n])
		}
		for n := 0; n < len(whole); n += step {
			if strings.HasSuffix(path, ".seg") && n >= headerChecksum+4 {
				break // slots carry no checksum: they are written by many clients at once
			}
			b := append([]byte(nil), whole...)
			b[n] ^= 0x10
			check(fmt.Sprintf("byte %d of %d changed", n, len(whole)), b)
		}
		must(t, os.WriteFile(path, whole, 0o644))
	}
}

// A part that is missing is told, wherever in the sequence it was.
func TestMissingPart(t *testing.T) {
	left := recorded(t)
	finished := t.TempDir()
	must(t, os.CopyFS(finished, os.DirFS(left)))
	must(t, Finish(finished))
	for _, dir := range []string{left, finished} {
		files, _ := filepath.Glob(filepath.Join(dir, historyDir, "*"))
		for i, path := range files {
			if dir == left && i == len(files)-2 {
				continue // the last segment: as if its process had died before it made it
			}
			whole, err := os.ReadFile(path)
			must(t, err)
			must(t, os.Remove(path))
			if _, err := Load(dir); !errors.Is(err, ErrMissing) {
				t.Errorf("without %s: %v", filepath.Base(path), err)
			}
			must(t, os.WriteFile(path, whole, 0o644))
		}
	}
	if _, err := Load(t.TempDir()); !errors.Is(err, ErrMissing) {
		t.Errorf("an empty directory: %v", err)
	}
}

// Finish can be interrupted between any two of its steps.
func TestFinishGoesOn(t *testing.T) {
	left := recorded(t)
	want, err := Load(left)
	must(t, err)
	finished := t.TempDir()
	must(t, os.CopyFS(finished, os.DirFS(left)))
	must(t, Finish(finished))
	// Every state that an interrupted Finish can leave: some first n segments converted, the last of them removed or not,
	// and half of a file under its temporary name.
	segments, _ := filepath.Glob(filepath.Join(left, historyDir, "*.seg"))
	for n := range len(segments) + 1 {
		for _, removed := range []bool{false, true} {
			dir := t.TempDir()
			must(t, os.CopyFS(dir, os.DirFS(left)))
			for i, segment := range segments[:n] {
				name := filepath.Base(segment)
				part := strings.TrimSuffix(name, ".seg") + ".parquet"
				b, err := os.ReadFile(filepath.Join(finished, historyDir, part))
				must(t, err)
				must(t, os.WriteFile(filepath.Join(dir, historyDir, part), b, 0o644))
				if removed || i < n-1 {
					must(t, os.Remove(filepath.Join(dir, historyDir, name)))
				}
			}
			must(t, os.WriteFile(filepath.Join(dir, historyDir, "w1.1-0009.parquet.new"), []byte("PAR1"), 0o644))
			for range 2 {
				must(t, Finish(dir))
				h, err := Load(dir)
				must(t, err)
				compare(t, &h.Names, h.Operations, want.Operations, want.Names.Keys, want.Names.Errors)
			}
			if rest, _ := filepath.Glob(filepath.Join(dir, historyDir, "*[^t]")); len(rest) > 0 {
				t.Errorf("Finish left %v", rest)
			}
		}
	}
}

func TestFinishLeavesTheLivingAlone(t *testing.T) {
	dir, inside := resultsDir(t)
	r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: w1})
	must(t, err)
	op := Operation{Kind: Acquire}
	s := r.Begin(&op)
	if err := Finish(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("Finish of what is being recorded: %v", err)
	}
	r.End(s, &op)
	must(t, r.Close())
	must(t, Finish(dir))
	h, err := Load(dir)
	must(t, err)
	if len(h.Operations) != 1 || h.Operations[0].Commit != Completed {
		t.Errorf("read %+v", h.Operations)
	}
}

// A gap in the witness's own order is a loss, however whole its file looks.
func TestGapInTheResourceLog(t *testing.T) {
	dir := t.TempDir()
	w, err := NewRecorder(dir, ResourceBase, RecorderOptions{})
	must(t, err)
	for _, n := range []int64{1, 2, 4} {
		op := Operation{Kind: Write, Call: n, Return: n, Outcome: OK, Key: w.Key("k1")}
		op.SetSequence(n)
		w.End(w.Begin(&op), &op)
	}
	must(t, w.Close())
	if _, err := Load(dir); !errors.Is(err, ErrTruncated) {
		t.Errorf("attempt 3 is missing: %v", err)
	}
}
