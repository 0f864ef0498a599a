package harness

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fencepost.dev/models"
	"fencepost.dev/reports"
)

// results runs a scenario for a second and gives its results directory. Runs of different summaries have different scenarios.
func results(t *testing.T, summary string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	s := scenarioOf(t, "lock-baseline", "load={workers: 2, clients: 2, arrival: {rate: 50, for: 1s}}", "coverage={}", "thresholds={}", "summary="+summary)
	m, err := Run(t.Context(), Options{Scenario: s, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	if m.Result.Verdict != models.Pass {
		t.Fatalf("%s: %v", m.Result.Verdict, m.Result.Reasons)
	}
	return out
}

// killed makes of a results directory what a runner leaves that dies by SIGKILL at the end of its load. Its guard may have
// vouched for it, or not.
func killed(t *testing.T, dir string, guarded bool) {
	t.Helper()
	r, err := readRunRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.End, r.Complete, r.Sources, r.Verdict = 0, false, nil, nil
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{latencyFile, reports.VerdictFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if guarded {
		if err := finishKilled(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// A change is made to a file of a results directory; swap is the same run's file in another's directory.
type change func(t *testing.T, path, swap string)

func edit(f func(text []byte) []byte) change {
	return func(t *testing.T, path, _ string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		now := f(bytes.Clone(text))
		if bytes.Equal(text, now) {
			t.Fatalf("%s: nothing was changed", path)
		}
		if err := os.WriteFile(path, now, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func replace(old, new string) change {
	return edit(func(text []byte) []byte { return bytes.Replace(text, []byte(old), []byte(new), 1) })
}

// cutLine cuts out the n-th line from the front, or from the end if n is negative.
func cutLine(n int) change {
	return edit(func(text []byte) []byte {
		lines := bytes.SplitAfter(text, []byte("\n"))
		lines = lines[:len(lines)-1] // after the last newline there is nothing
		if n < 0 {
			n += len(lines)
		}
		return bytes.Join(append(lines[:n:n], lines[n+1:]...), nil)
	})
}

var (
	truncated = edit(func(text []byte) []byte { return text[:len(text)*9/10] })
	flipped   = edit(func(text []byte) []byte { text[len(text)/2] ^= 1; return text })
	longer    = edit(func(text []byte) []byte { return append(text, '\n') })
	emptied   = edit(func([]byte) []byte { return nil })
)

func removed(t *testing.T, path, _ string) {
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func swapped(t *testing.T, path, swap string) {
	text, err := os.ReadFile(swap)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTamperedResults changes each file of a results directory in each way that accidents and careless hands do. Nothing is
// decided then, and what is said names the file. A whole copy elsewhere is decided as before.
func TestTamperedResults(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	ours, theirs := results(t, "Ours."), results(t, "Theirs.")
	const part, otherPart = "history/w1.1-0001.parquet", "history/w2.1-0001.parquet"
	type tampering struct {
		name, file string
		change     change
	}
	every := []tampering{{"nothing", "", nil}}
	for _, file := range []string{scenarioFile, runFile, faultsFile, latencyFile, part, otherPart, "resource.parquet"} {
		every = append(every, []tampering{
			{"truncated", file, truncated}, {"a bit flipped", file, flipped}, {"longer", file, longer}, {"emptied", file, emptied},
			{"removed", file, removed}, {"of another run", file, swapped},
		}...)
	}
	every = append(every, []tampering{
		{"coverage", scenarioFile, longer},
		{"expectation", scenarioFile, replace("pass", "violation")},
		{"no YAML", scenarioFile, replace("name:", "name: [")},
		{"an unknown field", runFile, replace(`"contract"`, `"kontract": 1, "contract"`)},
		{"a wrong type", runFile, replace(`"complete": true`, `"complete": "yes"`)},
		{"complete", runFile, replace(`"complete": true`, `"complete": false`)},
		{"fenced", runFile, replace(`"fenced": false`, `"fenced": true`)},
		{"space", runFile, replace(`"fenced": false`, `"fenced":  false`)},
		{"contract", runFile, replace(`"contract": {`, `"contract": {"Tokens": true,`)},
		{"the seal", runFile, cutLine(-2)},
		{"trailing", runFile, edit(func(text []byte) []byte { return append(text, "{}\n"...) })},
		{"first line", faultsFile, cutLine(0)},
		{"second line", faultsFile, cutLine(1)},
		{"last line", faultsFile, cutLine(-1)},
		{"one more", "history/w9.1-0001.parquet", swapped},
	}...)
	for _, c := range every {
		t.Run(strings.ReplaceAll(c.file, "/", "_")+" "+c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(ours)); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				from := filepath.Join(theirs, c.file)
				if strings.Contains(c.file, "w9.1") {
					from = filepath.Join(theirs, part)
				}
				c.change(t, filepath.Join(dir, c.file), from)
			}
			m, err := Check(t.Context(), dir, models.Limit{})
			if c.change == nil {
				if err != nil || m.Result.Verdict != models.Pass || !m.Result.AsExpected {
					t.Errorf("an untouched copy: %v", err)
				}
				return
			}
			refused(t, c.file, err)
			if c.name == "one more" && !errors.Is(err, errChanged) {
				t.Errorf("not missed in the list of files: %v", err)
			}
		})
	}
}

func refused(t *testing.T, file string, err error) {
	t.Helper()
	switch {
	case !errors.Is(err, ErrUnproven):
		t.Errorf("%v, want ErrUnproven", err)
	case !strings.Contains(err.Error(), filepath.Base(file)):
		t.Errorf("it does not name %s: %v", file, err)
	case !strings.Contains(err.Error(), "copy") || strings.Contains(err.Error(), "\n"):
		t.Errorf("not a sentence that says what to do: %v", err)
	}
}

// TestTamperedRemains does the same to what a killed runner left. Its guard vouches for that; without it the files' own
// words must do: they say which run they are of, and lines are numbered.
func TestTamperedRemains(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	ours, theirs := results(t, "Ours."), results(t, "Theirs.")
	killed(t, theirs, false)
	for _, guarded := range []bool{true, false} {
		name := map[bool]string{true: "guarded ", false: "unguarded "}[guarded]
		for _, c := range []struct {
			name, file string
			change     change
			guarded    bool // it takes a guard to notice
		}{
			{"nothing", "", nil, false},
			{"expectation", scenarioFile, replace("pass", "violation"), false},
			{"scenario of another run", scenarioFile, swapped, false},
			{"record of another run", runFile, swapped, false},
			{"record and scenario of another run", runFile, func(t *testing.T, path, swap string) {
				swapped(t, path, swap)
				swapped(t, filepath.Join(filepath.Dir(path), scenarioFile), filepath.Join(filepath.Dir(swap), scenarioFile))
			}, false},
			{"finished", runFile, replace(`"complete": false`, `"complete": true`), false},
			{"part of another run", "history/w1.1-0001.parquet", swapped, false},
			{"resource of another run", "resource.parquet", swapped, false},
			{"events of another run", faultsFile, swapped, false},
			{"no events", faultsFile, removed, false},
			{"first line", faultsFile, cutLine(0), false},
			{"second line", faultsFile, cutLine(1), false},
			{"last line", faultsFile, cutLine(-1), true},
			{"no resource", "resource.parquet", removed, true},
		} {
			t.Run(name+c.name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "copy")
				if err := os.CopyFS(dir, os.DirFS(ours)); err != nil {
					t.Fatal(err)
				}
				killed(t, dir, guarded)
				if c.change != nil {
					c.change(t, filepath.Join(dir, c.file), filepath.Join(theirs, c.file))
				}
				m, err := Check(t.Context(), dir, models.Limit{})
				switch {
				case c.change != nil && (guarded || !c.guarded):
					refused(t, "", err)
				case err != nil:
					t.Errorf("can't be checked: %v", err)
				case !m.Result.CutShort || m.Result.Verdict == models.Pass:
					t.Errorf("cut short: %v, verdict %s", m.Result.CutShort, m.Result.Verdict)
				}
			})
		}
	}
}

// TestReportOfAnotherVerdict holds verdict.json against the run beside it.
func TestReportOfAnotherVerdict(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	ours, theirs := results(t, "Ours."), results(t, "Theirs.")
	original, err := os.ReadFile(filepath.Join(ours, reports.VerdictFile))
	if err != nil {
		t.Fatal(err)
	}
	unvouched := func(t *testing.T, path, _ string) {
		r, err := readRunRecord(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		r.Verdict = nil
		if err := r.store(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		replace(`"verdict": "pass"`, `"verdict": "violation"`)(t, path, "")
	}
	for _, c := range []struct {
		name   string
		change change
		anew   bool // it is decided anew
	}{
		{"its own", nil, false},
		{"of another run", swapped, false},
		{"verdict", replace(`"verdict": "pass"`, `"verdict": "violation"`), false},
		{"expectation", replace(`"as_expected": true`, `"as_expected": false`), false},
		{"space", longer, false},
		{"truncated", truncated, false},
		{"removed", removed, true},
		{"nobody's word", unvouched, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(ours)); err != nil {
				t.Fatal(err)
			}
			verdict := filepath.Join(dir, reports.VerdictFile)
			if c.change != nil {
				c.change(t, verdict, filepath.Join(theirs, reports.VerdictFile))
			}
			_, err := Render(t.Context(), dir)
			switch {
			case c.change != nil && !c.anew:
				refused(t, reports.VerdictFile, err)
			case err != nil:
				t.Errorf("no report: %v", err)
			case c.anew:
				if r, err := reports.ReadResult(dir); err != nil || r.Verdict != models.Pass {
					t.Errorf("decided anew: %q, %v", r.Verdict, err)
				}
			default:
				if now, err := os.ReadFile(verdict); err != nil || !bytes.Equal(now, original) {
					t.Errorf("a report changed what was concluded: %v", err)
				}
			}
			if _, err := Check(t.Context(), dir, models.Limit{}); err != nil {
				t.Errorf("what is decided again does not rest on verdict.json: %v", err)
			}
		})
	}
}
