package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"fencepost.dev/history"
	"fencepost.dev/plane"
)

// maxLog bounds what of a worker's log its agent sends: the last that it says.
const maxLog = 1 << 20

// executor sends the coordinator what workers left on an agent's machine when they ended. It is safe for concurrent use.
type executor struct {
	conn *plane.Conn
	log  *slog.Logger
}

// ended is plane.AgentOptions.Ended.
func (e *executor) ended(ctx context.Context, left plane.Left) {
	var a assignment
	if err := json.Unmarshal(left.Assignment, &a); err != nil {
		e.log.Error("reading the assignment of a worker that ended", "error", err)
		return
	}
	if err := e.sendLog(ctx, &a, left.Log); err != nil {
		e.log.Error("sending a worker's log", "worker", a.base(), "error", err)
	}
	if err := e.sendHistory(ctx, &a); err != nil {
		e.log.Error("sending the rest of a worker's history", "worker", a.base(), "error", err)
	}
}

// sendHistory sends what a worker that could not close its history had not sent, and removes it.
func (e *executor) sendHistory(ctx context.Context, a *assignment) (err error) {
	dir := a.streamedDir()
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil // it has done so itself, or recorded nothing
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var lack history.Lack
	if err := e.conn.Request(ctx, subjectLack, lackRequest{Process: a.Process}, &lack); err != nil {
		return err
	}
	if lack.Closed {
		return nil
	}
	for batch, err := range history.Rest(dir, a.base(), lack) {
		if err == nil {
			err = e.conn.Request(ctx, subjectHistory, batch, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendLog sends the end of a worker's log.
func (e *executor) sendLog(ctx context.Context, a *assignment, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening a worker's log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-maxLog), maxLog))
	if err != nil {
		return fmt.Errorf("reading a worker's log: %w", err)
	}
	return e.conn.Request(ctx, subjectLog, workerLog{Process: a.Process, Text: text}, nil)
}

// workerLack answers a remote worker's agent what of its history has not come.
func (c *coordinator) workerLack(_ context.Context, m plane.Message) (any, error) {
	var r lackRequest
	if err := m.Decode(&r); err != nil {
		return nil, err
	}
	inc, err := c.crew.known(r.Process)
	if err != nil {
		return nil, err
	}
	return c.receiver.Lack(inc.base())
}

// workerLog keeps the log of a remote worker that has ended, where those of this machine's workers are.
func (c *coordinator) workerLog(_ context.Context, m plane.Message) (any, error) {
	var l workerLog
	if err := m.Decode(&l); err != nil {
		return nil, err
	}
	inc, err := c.crew.known(l.Process)
	if err != nil {
		return nil, err
	}
	return struct{}{}, os.WriteFile(filepath.Join(c.Out, logsDir, inc.logName()), l.Text, 0o644)
}
