package harness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"fencepost.dev/plane"
	"fencepost.dev/process"
)

// Join runs an agent on this machine for the coordinator at url, until the coordinator's run ends or ctx does. name is how
// the run calls it; empty is the host's name and process id. The agent has a guard of its own: if this process dies, its
// workers do.
//
// An error wraps ErrUnproven once workers ran here, as it then ended a run that had begun.
func Join(ctx context.Context, url, token, name string) error {
	if name == "" {
		name = agentName()
	}
	journalPath, err := newJournalPath()
	if err != nil {
		return err
	}
	conn, err := plane.Dial(ctx, url, token, "agent "+name)
	if err != nil {
		return err
	}
	defer conn.Close()
	journal, err := process.OpenJournal(journalPath)
	if err != nil {
		return err
	}
	guard, err := process.StartGuard(journalPath)
	if err != nil {
		return errors.Join(err, journal.Close())
	}
	defer guard.Close()
	defer journal.Close()
	logs := filepath.Join(process.StateDir(), "agents", name)
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return fmt.Errorf("making a directory for logs: %w", err)
	}
	// What workers record here is temporary: it is streamed. It goes with the agent, also if that is killed.
	histories := filepath.Join(logs, "histories")
	removed, err := journal.Begin(removeEntry, removeRecord{Dir: histories})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(histories, 0o700); err != nil {
		return fmt.Errorf("making a directory for histories: %w", err)
	}
	defer func() { _ = errors.Join(os.RemoveAll(histories), removed()) }()
	if err := os.Setenv("TMPDIR", histories); err != nil {
		return err
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding our own executable, which workers run: %w", err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	agent := plane.NewAgent(conn, plane.AgentOptions{
		ID: name, Version: Version(), Executable: executable, Dir: logs, Journal: journal, Log: log,
		Ended: (&executor{conn: conn, log: log}).ended,
	})
	err = agent.Run(ctx)
	if err != nil && agent.Used() {
		return unproven{err}
	}
	return err
}

// agentName makes a name of the host's and our process id: letters, digits, - and _, as the plane wants it.
func agentName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "agent"
	}
	plain := strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, host)
	return fmt.Sprintf("%s-%d", plain, os.Getpid())
}
