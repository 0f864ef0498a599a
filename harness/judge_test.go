package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fencepost.dev/models"
	"fencepost.dev/scenarios"
)

// TestControlAsksOnlyForTheNamedFindings holds what a control tolerates against what its scenario names.
func TestControlAsksOnlyForTheNamedFindings(t *testing.T) {
	report := func(check string, severity models.Severity) models.Report {
		return models.Report{Check: check, Verdict: models.Violation, Decided: 1, Findings: []models.Finding{{Severity: severity}}}
	}
	checks := []string{"linearizable", "fencing"}
	for _, c := range []struct {
		name  string
		not   []string
		found models.Report
		want  models.Standing
	}{
		{"the named one", []string{"fencing"}, report("fencing", ""), models.Contrary},
		{"another", []string{"fencing"}, report("linearizable", models.Safety), models.AsExpected},
		{"the named one at its severity", []string{"linearizable:safety"}, report("linearizable", models.Safety), models.Contrary},
		{"the named one at a lesser severity", []string{"linearizable:safety"}, report("linearizable", models.Availability), models.AsExpected},
		{"the named one at a graver severity", []string{"linearizable:availability"}, report("linearizable", models.Safety), models.Contrary},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := expectationOf(&scenarios.Scenario{Checks: checks, Expect: scenarios.Expect{Not: c.not}})
			reports := []models.Report{c.found}
			for _, check := range checks {
				if check != c.found.Check {
					reports = append(reports, models.Report{Check: check, Decided: 1})
				}
			}
			d, err := models.Decide(e, models.Evidence{Reports: reports})
			if err != nil {
				t.Fatal(err)
			}
			if d.Standing != c.want {
				t.Errorf("standing %d, want %d: %v", d.Standing, c.want, d.Reasons)
			}
		})
	}
}

func TestMakeResults(t *testing.T) {
	dir := t.TempDir()
	if err := MakeResults(filepath.Join(dir, "a", "b")); err != nil {
		t.Errorf("an absent directory: %v", err)
	}
	if err := MakeResults(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a directory that is not empty: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MakeResults(file); err == nil || !strings.Contains(err.Error(), "--out") {
		t.Errorf("a file: %v", err)
	}
}

func TestCheckOfNoResults(t *testing.T) {
	_, err := Check(t.Context(), t.TempDir(), models.Limit{})
	if err == nil || errors.Is(err, ErrUnproven) {
		t.Errorf("a directory without results is a mistake of the caller's, not %v", err)
	}
}

// TestVocabularyKnowsTheCatalogue opens every scenario and its control.
func TestVocabularyKnowsTheCatalogue(t *testing.T) {
	for _, name := range scenarios.Names() {
		s, err := scenarios.Open(name, Vocabulary())
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Expect.Pass {
			continue
		}
		if _, err := scenarios.Control(s, Vocabulary()); err != nil {
			t.Errorf("the control of %s: %v", name, err)
		}
	}
}
