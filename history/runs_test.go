package history

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// ofRun is a results directory: w1.1 in several parts, w2.1 killed before it was converted, the witness's log, an event.
func ofRun(t *testing.T, run string) string {
	t.Helper()
	dir, inside := resultsDir(t)
	record(t, inside, "w1.1", RecorderOptions{Run: run, Process: w1, SegmentSize: 64 * 30}, 0, 100)
	alive := t.TempDir()
	r, err := NewRecorder(alive, "w2.1", RecorderOptions{Run: run, Process: Process{Worker: "w2", Incarnation: 1}, Number: 1})
	must(t, err)
	copyStill(t, r, alive, inside)
	must(t, r.Close())
	record(t, dir, ResourceBase, RecorderOptions{Run: run}, 0, 0)
	log, err := NewEventLog(filepath.Join(dir, eventsFile), run)
	must(t, err)
	_, err = log.Append(Event{Kind: EventLoadStarted, Process: -1, Node: -1})
	must(t, err)
	must(t, log.Close())
	return dir
}

// Files of two runs are the history of neither, and what is converted later still says whose it is.
func TestFilesOfTwoRunsAreToldApart(t *testing.T) {
	theirs := ofRun(t, "b")
	for _, name := range []string{"", "history/w1.1-0001.parquet", "history/w1.1-0003.parquet", "history/w2.1.names", "resource.parquet", "faults.jsonl"} {
		ours := ofRun(t, "a")
		want := error(nil)
		if name != "" {
			b, err := os.ReadFile(filepath.Join(theirs, name))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(ours, name), b, 0o644))
			want = ErrCorrupt
		}
		for _, as := range []string{"left", "finished"} {
			h, err := Load(ours)
			if !errors.Is(err, want) || err == nil && h.Run != "a" {
				t.Errorf("%q of another run, %s: %v, want %v", name, as, err, want)
			}
			must(t, Finish(ours))
		}
	}
}
