package scenarios_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"fencepost.dev/harness"
	"fencepost.dev/scenarios"
)

// What the catalogue promises of each of its scenarios.
func TestCatalogue(t *testing.T) {
	words := harness.Vocabulary()
	names := scenarios.Names()
	if len(names) == 0 || !slices.IsSorted(names) {
		t.Fatalf("names: %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			s, err := scenarios.Open(name, words)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != name {
				t.Errorf("the file %s.yaml names %s", name, s.Name)
			}
			i := slices.IndexFunc(words.Subjects, func(k scenarios.KnownSubject) bool { return k.Name == s.Subject })
			if i >= 0 && !slices.Contains(s.Tags, words.Subjects[i].Primitive) {
				t.Errorf("its primitive, %s, is not among its tags %v", words.Subjects[i].Primitive, s.Tags)
			}
			if s.Summary == "" || strings.Contains(s.Summary, "\n") || !strings.HasSuffix(s.Summary, ".") {
				t.Errorf("its summary is not one sentence: %q", s.Summary)
			}
			if n := len(strings.Fields(s.Explains)); n < 100 || n > 300 {
				t.Errorf("it explains itself in %d words", n)
			}
			if len(s.Coverage) == 0 {
				t.Error("it passes without anything having happened: no coverage")
			}
			if s.Pair != "" && !slices.Contains(names, s.Pair) {
				t.Errorf("its pair %q is not in the catalogue", s.Pair)
			}
			for _, f := range s.Faults {
				if f.Do == "pause" && f.For == 0 {
					t.Error("a pause has no end")
				}
			}
			text, err := s.YAML()
			if err != nil {
				t.Fatal(err)
			}
			if back, err := scenarios.Parse("resolved", text, words); err != nil || !reflect.DeepEqual(back, s) {
				t.Errorf("is not what it writes: %v\n%s", err, text)
			}
			if s.Expect.Pass {
				return
			}
			control, err := scenarios.Control(s, words)
			if err != nil {
				t.Fatalf("a violation needs a control: %v", err)
			}
			if len(control.Coverage) == 0 {
				t.Error("its control passes without anything having happened: no coverage")
			}
			if !mayIsExplained(t, name) {
				t.Error("expect.may doesn't say why, in a comment")
			}
		})
	}
}

// mayIsExplained reports whether a scenario's may, if it has one, has a comment above it.
func mayIsExplained(t *testing.T, name string) bool {
	text, err := os.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Expect yaml.Node `yaml:"expect"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, n := range file.Expect.Content {
		if n.Value == "may" {
			return n.HeadComment != ""
		}
	}
	return true
}

func TestOpen(t *testing.T) {
	words := harness.Vocabulary()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte("name: mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"lock-puase":       `no scenario is called "lock-puase"; did you mean "lock-pause"? (bench list`,
		"nothing-of-this":  `no scenario is called "nothing-of-this" (bench list`,
		"":                 `no scenario is called "" (bench list`,
		"./nowhere":        `cannot read the scenario ./nowhere: no such file or directory`,
		"nowhere.yaml":     `cannot read the scenario nowhere.yaml: no such file or directory`,
		"/":                `cannot read the scenario /: is a directory`,
		path:               path + ": checks: is missing",
		"../scenarios/x/y": "cannot read the scenario ../scenarios/x/y",
	} {
		if s, err := scenarios.Open(name, words); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %+v %v\nwant %s", name, s, err, want)
		}
	}
}
