package harness

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk begins a run on a disk that has no room: one sentence that says what to do, and nothing is left there.
func TestFullDisk(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	disk := t.TempDir()
	err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=600k")
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("mounting needs root")
	} else if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	_, err = Run(t.Context(), Options{Scenario: scenarioOf(t, "lock-baseline"), Out: disk})
	if err == nil || errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), "0 MB left") || !strings.Contains(err.Error(), "--out") {
		t.Errorf("a run on a full disk: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a sentence: %v", err)
	}
	if entries, err := os.ReadDir(disk); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}
