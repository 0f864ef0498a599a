package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Orphans are the journals in a directory whose runner is dead: what `chaos heal` replays. A runner from
// before the machine's last start is dead; one in another container can't be seen from here, and is left alone. Other files
// are ignored. A directory that isn't there has none.
func Orphans(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for journals: %w", err)
	}
	var orphans []string
	for _, file := range files {
		path := filepath.Join(dir, file.Name())
		if file.Type().IsRegular() && orphaned(path) {
			orphans = append(orphans, path)
		}
	}
	return orphans, nil
}

func orphaned(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	text, err := bufio.NewReaderSize(file, 4096).ReadSlice('\n')
	var head line
	if err != nil || json.Unmarshal(text, &head) != nil || head.Journal == 0 {
		return false
	}
	if head.Boot != boot() {
		return true
	}
	if head.PIDs != pidSpace() {
		return false
	}
	runner, err := lookup(head.Runner)
	return errors.Is(err, fs.ErrNotExist) || err == nil && (runner.start != head.Start || runner.ended())
}
