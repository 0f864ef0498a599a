package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// serverOptions are the options of servers that we run:
//
//	persistence: true                     what was acknowledged survives a kill; default false
//	config: {maxmemory-policy: noeviction} more lines of the server's configuration; a list is a line for each of its values
type serverOptions struct {
	persistence bool
	config      []string // lines
}

// ours are the directives that a topology sets by itself, with what to do instead where there is something.
var ours = map[string]string{
	"appendonly":     "use the option persistence",
	"save":           "use the option persistence",
	"bind":           "a server that we run listens on loopback only",
	"port":           "ports are found",
	"protected-mode": "a server that we run listens on loopback only",
	"dir":            "the data is in a directory of the run",
	"daemonize":      "a server that we run stays our child",
	"supervised":     "a server that we run stays our child",
	"logfile":        "the log is kept with the results",
	"pidfile":        "",
	"requirepass":    "a server that we run has no password",
	"user":           "a server that we run has no users",
	"aclfile":        "a server that we run has no users",
	"include":        "give the lines themselves",
}

func parseServerOptions(options map[string]any) (serverOptions, error) {
	var parsed serverOptions
	for _, name := range slices.Sorted(maps.Keys(options)) {
		value := options[name]
		switch name {
		case "persistence":
			on, ok := value.(bool)
			if !ok {
				return parsed, fmt.Errorf("option persistence is true or false, not %v", value)
			}
			parsed.persistence = on
		case "config":
			config, ok := value.(map[string]any)
			if !ok {
				return parsed, fmt.Errorf("option config is a map of the server's directives, not %v", value)
			}
			lines, err := configLines(config)
			if err != nil {
				return parsed, err
			}
			parsed.config = lines
		default:
			return parsed, fmt.Errorf("there is no option %q; there are persistence, config", name)
		}
	}
	return parsed, nil
}

func configLines(config map[string]any) ([]string, error) {
	var lines []string
	for _, directive := range slices.Sorted(maps.Keys(config)) {
		if instead, taken := ours[strings.ToLower(directive)]; taken {
			return nil, fmt.Errorf("config %s is set by the topology: %s", directive, instead)
		}
		values, several := config[directive].([]any)
		if !several {
			values = []any{config[directive]}
		}
		for _, value := range values {
			text, err := configValue(value)
			if err != nil || strings.ContainsAny(directive, " \t\r\n\x00#\"'") {
				return nil, fmt.Errorf("config %s: a directive is a name with a word, a number, true, false, or a list of them", directive)
			}
			lines = append(lines, directive+" "+text)
		}
	}
	return lines, nil
}

// configValue writes a value as the server reads it. A text of several words is several arguments, as in the server's own
// file.
func configValue(value any) (string, error) {
	switch value := value.(type) {
	case bool:
		if value {
			return "yes", nil
		}
		return "no", nil
	case string:
		if strings.ContainsAny(value, "\r\n\x00") {
			return "", fmt.Errorf("%q has several lines", value)
		}
		if value == "" {
			return `""`, nil
		}
		return value, nil
	case int, int64, uint64, float64:
		return fmt.Sprint(value), nil
	default:
		return "", fmt.Errorf("%v is none", value)
	}
}

// lines is the configuration of a server at the port, with its data in dir.
func (o serverOptions) lines(port int, dir string) string {
	lines := []string{
		fmt.Sprintf("port %d", port),
		"bind 127.0.0.1",
		"protected-mode no", // on loopback only
		fmt.Sprintf("dir %q", dir),
		"daemonize no",
		`logfile ""`, // stdout, which is kept
		`save ""`,
		"repl-diskless-sync-delay 0", // a replica's first sync waits 5 s otherwise
	}
	if o.persistence {
		// With "always" a write is in the file, and the file on the disk, before it is acknowledged. Under "everysec" the
		// server puts writes off by up to two seconds while an earlier fsync is under way, and acknowledges them meanwhile: a
		// kill then loses what was acknowledged.
		lines = append(lines, "appendonly yes", "appendfsync always")
	} else {
		lines = append(lines, "appendonly no")
	}
	// The last line of a directive counts.
	return strings.Join(append(lines, o.config...), "\n") + "\n"
}
