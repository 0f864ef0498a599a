package reports

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"fencepost.dev/models"
)

// Material is all that reports are made from. A results directory holds all of it: verdict.json is Result, history/ and
// resource.parquet give Input, latency.hlog gives Series, so `bench report DIR` renders it again.
type Material struct {
	Result Result
	// Input is the recorded run, for the operations around a witness and for Series where there is none. Nil: the reports say
	// only what Result knows.
	Input *models.Input
	// Series is latency and throughput over time, measured from when each operation was due. Nil: taken from Input, where it
	// counts from the call.
	Series []Series
	// Pages are Porcupine's visualizations, by key. Write writes each beside the report, and links it from the findings on
	// that key; a page that an earlier Write left is linked too.
	Pages map[string][]byte
}

// Series is how one kind of operation fared over time.
type Series struct {
	Kind   string
	Points []Point // in order of At
}

// Point is one interval of a Series. Latencies are in microseconds.
type Point struct {
	At     int64 // when the interval began, ns since the run's epoch
	Length time.Duration
	Count  int64 // operations that ended in it
	Errors int64 // those that failed or are unknown
	P50    float64
	P99    float64
}

// Names of the files of a results directory that people open.
const (
	HTMLFile     = "report.html"
	MarkdownFile = "report.md"
	JUnitFile    = "junit.xml"
)

// Write writes verdict.json, report.html, report.md and junit.xml to a results directory, which it makes if it has to. Each
// file is there whole or not at all; verdict.json comes first.
func Write(dir string, m Material) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("reports: the results directory can't be made: %w", err)
	}
	m.Result = filled(m.Result)
	var verdict bytes.Buffer
	if err := Encode(&verdict, &m.Result); err != nil {
		return err
	}
	if err := writeFile(dir, VerdictFile, verdict.Bytes()); err != nil {
		return err
	}
	return WritePages(dir, m)
}

// WritePages writes the files for people and for other programs, and leaves verdict.json as it is.
func WritePages(dir string, m Material) error {
	m.Result = filled(m.Result)
	for key, page := range m.Pages {
		if err := writeFile(dir, PageFile(key), page); err != nil {
			return err
		}
	}
	linked := linkedPages(dir, &m.Result)
	for _, form := range []struct {
		name   string
		render func(*Material, map[string]string) ([]byte, error)
	}{
		{JUnitFile, renderJUnit},
		{MarkdownFile, renderMarkdown},
		{HTMLFile, renderHTML},
	} {
		text, err := form.render(&m, linked)
		if err != nil {
			return err
		}
		if err := writeFile(dir, form.name, text); err != nil {
			return err
		}
	}
	return nil
}

// linkedPages finds Porcupine's pages in a results directory, for the keys of the findings.
func linkedPages(dir string, r *Result) map[string]string {
	linked := map[string]string{}
	for i := range r.Checks {
		for j := range r.Checks[i].Findings {
			key := r.Checks[i].Findings[j].Key
			if _, known := linked[key]; known {
				continue
			}
			name := PageFile(key)
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
				linked[key] = name
			}
		}
	}
	return linked
}

var unsafeInFile = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// PageFile is the name of the file, beside the report, that Write gives Porcupine's page of a key. Keys that can't be part of
// a file's name, or are too long for one, get a name that is derived from them and no other's.
func PageFile(key string) string {
	name := unsafeInFile.ReplaceAllString(key, "_")
	if name != key || len(name) > 80 || name == "" {
		sum := sha256.Sum256([]byte(key))
		name = name[:min(len(name), 60)] + "-" + hex.EncodeToString(sum[:6])
	}
	return "porcupine-" + name + ".html"
}

// writeFile writes a file of a results directory whole or not at all: beside its place first, then moved there.
func writeFile(dir, name string, content []byte) (err error) {
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return fmt.Errorf("reports: %s can't be written: %w", filepath.Join(dir, name), err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("reports: %s can't be written: %w", filepath.Join(dir, name), err)
		}
	}()
	if _, err := f.Write(content); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}
