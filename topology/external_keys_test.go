package topology

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fencepost.dev/process"
	"fencepost.dev/topology/endpoint"
)

// TestKeysOfADeadRunAreRemoved leaves the keys of a run to its journal, as a run that is killed does.
func TestKeysOfADeadRunAreRemoved(t *testing.T) {
	theirs, address := foreign(t, nil)
	admin := client(t, theirs, 5*time.Second)
	set(t, admin, "theirs")
	set(t, admin, "fencepost:other:theirs")
	for _, user := range []string{"app on >secret ~* &* +@all", "default off"} {
		command := []any{"ACL", "SETUSER"}
		for _, word := range strings.Fields(user) {
			command = append(command, word)
		}
		if err := admin.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "run.journal")
	journal, err := process.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	order := externalOrder(endpoint.Endpoint{Addresses: []string{address}, Username: "app", Password: "secret"})
	order.Journal = journal
	if _, err := Up(t.Context(), order); err != nil { // and nobody closes it
		t.Fatal(err)
	}
	for i := range 1500 { // more than one SCAN's worth
		if err := admin.Set(t.Context(), order.Namespace+time.Duration(i).String(), "", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "secret") {
		t.Fatalf("the journal has the password, or can't be read (%v): %s", err, text)
	}
	for _, c := range []struct{ password, refused string }{{"", "NOAUTH"}, {"guess", "WRONGPASS"}} {
		err := process.Replay(path, Undo(Credentials{Password: c.password, Patience: time.Second}))
		if err == nil || !strings.Contains(err.Error(), c.refused) {
			t.Errorf("with the password %q: %v", c.password, err)
		}
	}
	if n := admin.DBSize(t.Context()).Val(); n != 1502 {
		t.Errorf("%d keys are there before anything was removed", n)
	}
	if err := process.Replay(path, Undo(Credentials{Password: "secret"})); err != nil {
		t.Error(err)
	}
	if n := admin.DBSize(t.Context()).Val(); n != 2 || get(t, admin, "theirs") != "kept" || get(t, admin, "fencepost:other:theirs") != "kept" {
		t.Errorf("%d keys are left", n)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the journal is left: %v", err)
	}
}

// TestOnlyARunsKeysAreRemoved holds the undoing of a journal to what a run can have made.
func TestOnlyARunsKeysAreRemoved(t *testing.T) {
	theirs, address := foreign(t, nil)
	admin := client(t, theirs, 5*time.Second)
	set(t, admin, "theirs")
	set(t, admin, "fencepost:other:theirs")
	for _, namespace := range []string{"", "fencepost", "fencepost:", "fencepost::", "theirs:"} {
		entry, err := json.Marshal(keysEntry{
			Nodes: []endpoint.Endpoint{{Kind: "standalone", Addresses: []string{address}}}, Namespace: namespace,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := Undo(Credentials{})[keysKind](entry); err == nil || !strings.Contains(err.Error(), "no namespace of a run") {
			t.Errorf("%q: %v", namespace, err)
		}
	}
	if n := admin.DBSize(t.Context()).Val(); n != 2 {
		t.Errorf("%d keys are left", n)
	}
}
