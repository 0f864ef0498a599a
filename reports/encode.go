package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// VerdictFile is the name of verdict.json in a results directory.
const VerdictFile = "verdict.json"

// Encode writes a result as verdict.json has it: indented, in a fixed order, empty lists as [] and empty tables as {}.
func Encode(w io.Writer, r *Result) error {
	whole := filled(*r)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&whole); err != nil {
		return fmt.Errorf("reports: encoding the verdict: %w", err)
	}
	return nil
}

// Decode reads what Encode wrote. A file of another schema is an error.
func Decode(r io.Reader) (*Result, error) {
	var result Result
	dec := json.NewDecoder(r)
	if err := dec.Decode(&result); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("it ends too early: %w", err)
		}
		return nil, err
	}
	if result.Schema != Schema {
		return nil, fmt.Errorf("its schema is %q; this version of bench reads %q", result.Schema, Schema)
	}
	return &result, nil
}

// ReadResult reads the verdict.json of a results directory.
func ReadResult(dir string) (*Result, error) {
	path := filepath.Join(dir, VerdictFile)
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reports: %s holds no results that can be read: %w", dir, err)
	}
	defer f.Close()
	result, err := Decode(f)
	if err != nil {
		return nil, fmt.Errorf("reports: reading %s: %w", path, err)
	}
	return result, nil
}

// filled is the result with nothing missing that readers of the file may rely on.
func filled(r Result) Result {
	r.Schema = Schema
	r.ExpectedChecks.Must = list(r.ExpectedChecks.Must)
	r.ExpectedChecks.May = list(r.ExpectedChecks.May)
	r.Checks = list(r.Checks)
	checks := make([]Check, len(r.Checks))
	for i, c := range r.Checks {
		findings := make([]Finding, len(c.Findings))
		for j, f := range c.Findings {
			f.Operations = list(f.Operations)
			findings[j] = f
		}
		c.Findings = findings
		checks[i] = c
	}
	r.Checks = checks
	r.Coverage = table(r.Coverage)
	r.Thresholds = list(r.Thresholds)
	r.Load.Latency = table(r.Load.Latency)
	r.Faults = list(r.Faults)
	r.Stalls = list(r.Stalls)
	r.Environment.Provider = table(r.Environment.Provider)
	r.Environment.Topology = table(r.Environment.Topology)
	r.Environment.Servers = table(r.Environment.Servers)
	r.Environment.Workers = list(r.Environment.Workers)
	return r
}

func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func table[V any](items map[string]V) map[string]V {
	if items == nil {
		return map[string]V{}
	}
	return items
}
