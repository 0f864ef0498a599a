package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"fencepost.dev/history"
)

// run.json vouches for the files that a verdict rests on, and for itself, by their SHA-256. This finds what was cut off,
// mixed up or edited; whoever means to forge a record can compute sums as well.

// fileSum is what run.json says of one file.
type fileSum struct {
	Name   string `json:"name"` // in the results directory, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// wholeCopy is what to do about a results directory that isn't as its run left it.
const wholeCopy = "copy the results directory whole, or run again"

// errChanged: a file is not as the run left it.
var errChanged = errors.New("not this run's, or was changed since")

// refuse says what is wrong with a file of a results directory.
func refuse(path string, kind error, format string, args ...any) error {
	return unproven{fmt.Errorf("%s is %w: %s; %s", path, kind, fmt.Sprintf(format, args...), wholeCopy)}
}

// evidenceFiles lists the files in dir that a verdict rests on, run.json aside, in order of their names.
func evidenceFiles(dir string) ([]string, error) {
	var names []string
	for _, pattern := range []string{scenarioFile, faultsFile, latencyFile, history.ResourceBase + "*", historyDir + "/*"} {
		found, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			switch filepath.Ext(name) {
			case ".parquet", ".seg", ".names", filepath.Ext(scenarioFile), filepath.Ext(faultsFile), filepath.Ext(latencyFile):
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// sum reads one file of dir as a stream.
func sum(dir, name string) (fileSum, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return fileSum{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.CopyBuffer(h, struct{ io.Reader }{f}, make([]byte, 256<<10))
	if err != nil {
		return fileSum{}, fmt.Errorf("reading %s: %w", f.Name(), reason(err))
	}
	return fileSum{Name: name, Size: size, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// sumFiles are the sums of the named files of dir.
func sumFiles(dir string, names []string) ([]fileSum, error) {
	var sums []fileSum
	for _, name := range names {
		s, err := sum(dir, name)
		if err != nil {
			return nil, err
		}
		sums = append(sums, s)
	}
	return sums, nil
}

// unchanged is an error unless dir has exactly the files that the record vouches for, as they were. Before the load there
// was only the scenario: of a run that ended without a last word, the others are not vouched for.
func (r *runRecord) unchanged(dir string) error {
	listed := map[string]bool{}
	for _, want := range r.Files {
		path := filepath.Join(dir, filepath.FromSlash(want.Name))
		listed[want.Name] = true
		got, err := sum(dir, want.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return refuse(path, history.ErrMissing, "the run left it")
		case err != nil:
			return unproven{err}
		case got.Size < want.Size:
			return refuse(path, history.ErrTruncated, "it has %d bytes, and had %d when the run ended", got.Size, want.Size)
		case got != want:
			return refuse(path, errChanged, "its SHA-256 is not the one in %s", runFile)
		}
	}
	if !listed[scenarioFile] {
		return refuse(filepath.Join(dir, runFile), errChanged, "it does not vouch for %s", scenarioFile)
	}
	if !r.collected() {
		return nil
	}
	names, err := evidenceFiles(dir)
	if err != nil {
		return unproven{err}
	}
	for _, name := range names {
		if !listed[name] {
			return refuse(filepath.Join(dir, name), errChanged, "the run did not leave such a file")
		}
	}
	return nil
}
