package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// finishKilled brings what a killed runner left into its final form, and has its record vouch for it.
func finishKilled(dir string) error {
	if err := history.Finish(dir); err != nil {
		return err
	}
	r, err := readRunRecord(dir)
	if err != nil || r.collected() {
		return nil // it was killed before load or after collecting, or there is nobody left to vouch: check says so
	}
	r.Finished = true
	return r.write(dir)
}

// errChanged: a file is not as the run left it.
var errChanged = errors.New("not this run's, or was changed since")

// unsealed stands where the seal of run.json goes while the sum is taken.
var unsealed = strings.Repeat("0", 2*sha256.Size)

// sealed is the text of the record with the sum of itself in it.
func (r *runRecord) sealed() ([]byte, error) {
	r.Seal = unsealed
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	r.Seal = sealOf(text)
	return withSeal(text, unsealed, r.Seal), nil
}

func sealOf(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// withSeal puts another seal where the one that the record ends with is.
func withSeal(text []byte, old, seal string) []byte {
	i := bytes.LastIndex(text, []byte(old))
	if i < 0 {
		return nil
	}
	return slices.Concat(text[:i], []byte(seal), text[i+len(old):])
}

// readRunRecord reads run.json and sees that it is as it was written, to the byte.
func readRunRecord(dir string) (*runRecord, error) {
	path := filepath.Join(dir, runFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(path, history.ErrMissing, "it says what the run's verdict is to be held against")
	} else if err != nil {
		return nil, unproven{err}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var r runRecord
	if err := d.Decode(&r); err != nil {
		return nil, refuse(path, history.ErrCorrupt, "%v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, refuse(path, history.ErrCorrupt, "something follows its end")
	}
	if len(r.Seal) != len(unsealed) {
		return nil, refuse(path, errChanged, "it has no seal: it was edited, or an older version wrote it")
	}
	if sealOf(withSeal(text, r.Seal, unsealed)) != r.Seal {
		return nil, refuse(path, errChanged, "what it says is not what it was sealed with")
	}
	return &r, nil
}
