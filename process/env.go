package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	roleVariable    = "FENCEPOST_ROLE"
	tokenVariable   = "FENCEPOST_TOKEN"
	journalVariable = "FENCEPOST_JOURNAL"
	markVariable    = "FENCEPOST_MARK"

	guardRole = "guard"
)

// Role is what this process was started as ($FENCEPOST_ROLE): "" by a person, "guard" by StartGuard, "client" by an agent.
func Role() string { return os.Getenv(roleVariable) }

// StateDir is where what outlives a process is kept, journals for one: ${XDG_STATE_HOME:-~/.local/state}/fencepost. It may
// not exist yet. A machine without a home directory gets one per user under the temporary directory.
func StateDir() string {
	// The XDG base directory specification: a relative path is invalid and is to be ignored.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fencepost")
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "fencepost")
	}
	return filepath.Join(os.TempDir(), "fencepost-"+strconv.Itoa(os.Getuid()))
}

// childEnv is what a child inherits: ours, less what must not be handed on, plus what is added for it. A program under test
// has no business with our token or with anybody's password.
func childEnv(ours []string, added ...[]string) []string {
	var env []string
	for _, entry := range ours {
		name, _, _ := strings.Cut(entry, "=")
		if !private(name) {
			env = append(env, entry)
		}
	}
	for _, more := range added {
		env = append(env, more...)
	}
	return env
}

func private(name string) bool {
	switch name {
	case roleVariable, tokenVariable, journalVariable, markVariable, "REDISCLI_AUTH", "VALKEYCLI_AUTH":
		return true
	}
	upper := strings.ToUpper(name)
	return strings.Contains(upper, "PASSWORD") || strings.Contains(upper, "PASSWD")
}
