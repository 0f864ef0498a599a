package topology

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// errPortTaken: the server could not listen, since another process has the port.
var errPortTaken = errors.New("its port was taken")

const (
	tailLines = 8
	tailBytes = 16 << 10
)

// tail reads what one run of a server wrote to its log, which holds those of earlier runs too.
type tail struct {
	path string
	from int64
}

func openTail(path string) tail {
	info, err := os.Stat(path)
	if err != nil {
		return tail{path: path} // not there yet
	}
	return tail{path: path, from: info.Size()}
}

func (t tail) text() []byte {
	file, err := os.Open(t.path)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	text := make([]byte, min(tailBytes, info.Size()-t.from))
	n, _ := file.ReadAt(text, info.Size()-int64(len(text)))
	return text[:n]
}

// say gives the last lines, to end an error with.
func (t tail) say() string {
	lines := strings.Split(strings.TrimSpace(string(t.text())), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	if lines[0] == "" {
		return "; its log " + t.path + " is empty"
	}
	return fmt.Sprintf("; the end of its log %s:\n\t%s", t.path, strings.Join(lines, "\n\t"))
}

// cause is err, or errPortTaken if that is what the server says.
func (t tail) cause(err error) error {
	if bytes.Contains(t.text(), []byte("Address already in use")) {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}
