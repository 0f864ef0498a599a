package history

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// On a disk that is really full there is no SIGBUS, and what was taken before is all there.
func TestFullFileSystem(t *testing.T) {
	disk := t.TempDir()
	err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=600k")
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("mounting needs root; TestDiskFull stands in")
	}
	must(t, err)
	defer unix.Unmount(disk, unix.MNT_DETACH)
	r, err := NewRecorder(disk, "w1.1", RecorderOptions{Process: w1, SegmentSize: 128 << 10})
	must(t, err)
	const count = 100_000
	for call := range int64(count) {
		// Noise, so that parts are no smaller than segments.
		x := call * -7046029254386353131
		op := Operation{Kind: Acquire, Call: call, Return: call, Outcome: OK, A: x, B: x * x, C: x ^ x>>31, D: x * 3}
		s := r.Begin(&op)
		if call%1000 == 0 {
			continue // never answered
		}
		r.End(s, &op)
	}
	dropped := r.Dropped()
	if dropped == 0 || r.Err() == nil {
		t.Fatalf("%d operations of 64 bytes on a disk of 600 kB: %d dropped, %v", count, dropped, r.Err())
	}
	t.Logf("%d of %d dropped: %v", dropped, count, r.Err())
	if err := r.Close(); err == nil {
		t.Error("Close does not say what recording met")
	}
	dir, inside := resultsDir(t)
	files, _ := filepath.Glob(filepath.Join(disk, "w1.1*"))
	for _, path := range files {
		b, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(inside, filepath.Base(path)), b, 0o644))
	}
	for range 2 {
		h, err := Load(dir)
		must(t, err)
		if got := int64(len(h.Operations)); got != count-dropped || h.Sources[0].Dropped != dropped {
			t.Errorf("%d operations were taken, %d read; %d dropped, and %d by the files", count-dropped, got, dropped, h.Sources[0].Dropped)
		}
		must(t, Finish(dir))
	}
}
