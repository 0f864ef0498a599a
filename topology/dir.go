package topology

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"fencepost.dev/process"
)

// directory is a temporary directory of ours. A file in it says so, with a word that only the journal knows beside it, since
// what removes it after we died must be sure of what it removes.
type directory struct {
	path   string
	undone func() error
}

const (
	dirPrefix = "fencepost-"
	dirMarker = ".fencepost"
	dirKind   = "remove-dir"
)

// dirEntry is the data of a journal entry for a directory.
type dirEntry struct {
	Path string `json:"path"`
	Word string `json:"word"` // what the marker file holds
}

// makeDir makes a directory within parent, readable by us only. It is journaled before it exists.
func makeDir(journal *process.Journal, parent, name string) (*directory, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("making a directory for %s: %w", name, err)
	}
	word := rand.Text()
	entry := dirEntry{Path: filepath.Join(parent, dirPrefix+name+"-"+strings.ToLower(word[:10])), Word: word}
	undone, err := begin(journal, dirKind, entry)
	if err != nil {
		return nil, fmt.Errorf("making a directory for %s: %w", name, err)
	}
	err = os.Mkdir(entry.Path, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(entry.Path, dirMarker), []byte(word), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a directory for %s: %w", name, err), undoDir(entry), undone())
	}
	return &directory{path: entry.Path, undone: undone}, nil
}

// remove removes it with all that is in it.
func (d *directory) remove() error {
	if err := removeMarked(d.path); err != nil {
		return err // stays in the journal
	}
	return d.undone()
}

// removeMarked removes the marker last, so that a removal that is cut short can be taken up again.
func removeMarked(path string) error {
	children, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	for _, child := range children {
		if child.Name() != dirMarker {
			if err := os.RemoveAll(filepath.Join(path, child.Name())); err != nil {
				return fmt.Errorf("removing %s: %w", path, err)
			}
		}
	}
	return os.RemoveAll(path)
}

// undoDir removes a directory that a dead run made. Nothing else: it must be named like ours, be a directory and no link to
// one, belong to us, and hold the entry's word. One without a marker is removed only if it is empty: its maker died between
// its two steps, or its remover did.
func undoDir(entry dirEntry) error {
	if entry.Path != filepath.Clean(entry.Path) || !filepath.IsAbs(entry.Path) || entry.Word == "" ||
		!strings.HasPrefix(filepath.Base(entry.Path), dirPrefix) {
		return fmt.Errorf("%q is no directory of ours", entry.Path)
	}
	info, err := os.Lstat(entry.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s is no directory of ours", entry.Path)
	}
	word, err := os.ReadFile(filepath.Join(entry.Path, dirMarker))
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(entry.Path)
	}
	if err != nil {
		return err
	}
	if len(word) == 0 { // made, and not written yet
		if err := os.Remove(filepath.Join(entry.Path, dirMarker)); err != nil {
			return err
		}
		return os.Remove(entry.Path)
	}
	if string(word) != entry.Word {
		return fmt.Errorf("%s is another run's directory", entry.Path)
	}
	return removeMarked(entry.Path)
}
