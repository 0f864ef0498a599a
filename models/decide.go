package models

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Expectation is the verdict that a scenario is there to show.
type Expectation struct {
	// Pass: no check but those of May finds a violation. Otherwise each of Must does, and none outside Must and May.
	Pass bool
	// Must and May name checks, "linearizable:safety" for one at that severity.
	//
	// A check that is named at a severity may show a lesser one too: a lock that two hold at once also tells one of them that
	// it is not the holder. A graver one is a violation that nobody expected.
	Must, May []string
	// Loose: as said on the command line. Any violation will do, or none at all may be found. Must and May don't count.
	Loose bool
}

// Evidence is what a run has to show.
type Evidence struct {
	Reports []Report
	// Need is the least that must have happened, by counter, and Got what did.
	Need, Got map[string]int64
	// Troubles say what else keeps the run from proving anything: a program that died, files that are missing. Like thin
	// coverage they withhold a pass and never hide a violation.
	Troubles []string
}

// Standing is how a run stands to what was expected of it.
type Standing uint8

const (
	AsExpected    Standing = iota
	Contrary               // it shows something else
	ProvesNothing          // it shows neither
)

// Decision is what a run concludes.
type Decision struct {
	Verdict  Verdict
	Standing Standing
	// Reasons say why it does not stand as expected, one sentence each.
	Reasons []string
}

// AsExpected reports whether the run shows what it was expected to.
func (d Decision) AsExpected() bool { return d.Standing == AsExpected }

// Validate says what is wrong with an expectation of a run with these checks, before it is run. Decide repeats it.
func (e Expectation) Validate(checks []string) error {
	if e.Loose {
		return nil
	}
	var errs []error
	if e.Pass && len(e.Must) > 0 {
		errs = append(errs, fmt.Errorf("expect: a scenario that passes has no check that must fail (%s)", strings.Join(e.Must, ", ")))
	}
	if !e.Pass && len(e.Must) == 0 {
		errs = append(errs, errors.New("expect: a violation must name the checks that fail"))
	}
	for _, entry := range append(slices.Clone(e.Must), e.May...) {
		name, severity, graded := strings.Cut(entry, ":")
		switch check, known := Find(name); {
		case !slices.Contains(checks, name) && !known:
			errs = append(errs, fmt.Errorf("expect: there is no check called %q: this run has %s", name, strings.Join(checks, ", ")))
		case !slices.Contains(checks, name) && slices.Contains(e.Must, entry):
			errs = append(errs, fmt.Errorf("expect: %s must fail, and is not among the checks of this run (%s): add it to checks", name, strings.Join(checks, ", ")))
		case graded && known && check.Name != Linearizable:
			errs = append(errs, fmt.Errorf("expect: %q: only %s has severities", entry, Linearizable))
		case graded && severity != string(Safety) && severity != string(Availability):
			errs = append(errs, fmt.Errorf("expect: %q: a severity is %s or %s", entry, Safety, Availability))
		}
	}
	return errors.Join(errs...)
}

// Decide combines the reports into one verdict (violation > inconclusive > pass) and holds it against the expectation. An
// error is a configuration error: an expectation of a check that did not run.
func Decide(e Expectation, v Evidence) (Decision, error) {
	names := make([]string, len(v.Reports))
	for i, r := range v.Reports {
		names[i] = r.Check
	}
	if err := e.Validate(names); err != nil {
		return Decision{}, err
	}
	var d Decision
	var thin []string // what keeps the run from proving anything
	if len(v.Reports) == 0 {
		thin = append(thin, "no check was run")
	}
	for _, counter := range sortedNames(v.Need) {
		if got := v.Got[counter]; got < v.Need[counter] {
			thin = append(thin, fmt.Sprintf("coverage: %s is %d and must be at least %d.", counter, got, v.Need[counter]))
		}
	}
	thin = append(thin, v.Troubles...)
	if len(thin) > 0 {
		d.Verdict = Inconclusive
	}
	var contrary, open []string
	for _, r := range v.Reports {
		d.Verdict = max(d.Verdict, r.Verdict)
		if r.Disagreements > 0 {
			thin = append(thin, fmt.Sprintf("%s: %s.", r.Check, r.Reason))
			d.Verdict = max(d.Verdict, Inconclusive)
		} else if r.Verdict == Inconclusive {
			open = append(open, fmt.Sprintf("%s could not be decided: %s.", r.Check, strings.TrimSuffix(r.Reason, ".")))
		}
		if e.severityMatters(r) {
			open = append(open, fmt.Sprintf("%s finds a violation of availability; whether it is one of safety too could not be decided: %s.", r.Check, strings.TrimSuffix(r.SeverityOpen, ".")))
		}
		if unexpected := e.unexpected(r); unexpected != "" {
			contrary = append(contrary, unexpected)
		}
	}
	missing, undecidedMust := e.missing(v.Reports)
	switch {
	case len(contrary) > 0:
		d.Standing, d.Reasons = Contrary, contrary
	case slices.ContainsFunc(v.Reports, func(r Report) bool { return r.Disagreements > 0 }): // an error of ours
		d.Standing, d.Reasons = ProvesNothing, slices.Concat(thin, missing, open)
	case len(missing) > 0 && len(thin) == 0 && !undecidedMust:
		d.Standing, d.Reasons = Contrary, missing
	case len(missing) > 0:
		d.Standing, d.Reasons = ProvesNothing, slices.Concat(missing, open, thin)
	case e.Pass && len(open)+len(thin) > 0:
		d.Standing, d.Reasons = ProvesNothing, slices.Concat(open, thin)
	case !e.Loose && e.undecidedOthers(v.Reports):
		d.Standing, d.Reasons = ProvesNothing, open
	case slices.ContainsFunc(v.Reports, e.severityMatters):
		d.Standing, d.Reasons = ProvesNothing, open
	}
	return d, nil
}

// worst is the gravest severity among a report's findings.
func (r Report) worst() Severity {
	var worst Severity
	for _, f := range r.Findings {
		if f.Severity == Safety || worst == "" {
			worst = f.Severity
		}
	}
	return worst
}

// allows reports whether one of the entries covers a violation of the check at that severity.
func allows(entries []string, r Report) bool {
	for _, entry := range entries {
		name, severity, graded := strings.Cut(entry, ":")
		if name == r.Check && (!graded || Severity(severity) == r.worst() || Severity(severity) == Safety) {
			return true
		}
	}
	return false
}

// unexpected says what a report has that the expectation rules out, or "".
func (e Expectation) unexpected(r Report) string {
	if r.Verdict != Violation {
		return ""
	}
	switch {
	case e.Loose && e.Pass:
	case e.Loose:
		return ""
	case allows(e.May, r) || allows(e.Must, r):
		return ""
	}
	grade := ""
	if worst := r.worst(); worst != "" {
		grade = fmt.Sprintf(" (%s)", worst)
	}
	if !e.Pass {
		return fmt.Sprintf("%s finds a violation%s that the scenario does not expect.", r.Check, grade)
	}
	return fmt.Sprintf("%s finds a violation%s and is expected to pass.", r.Check, grade)
}

// severityMatters reports whether a violation is one that the expectation allows, and would not if it were of safety, which
// could not be decided.
func (e Expectation) severityMatters(r Report) bool {
	if r.SeverityOpen == "" || r.worst() == Safety || e.unexpected(r) != "" {
		return false
	}
	r.Findings = []Finding{{Severity: Safety}}
	return e.unexpected(r) != ""
}

// missing says which violations are expected and not there, and whether a check that should show one is undecided.
func (e Expectation) missing(reports []Report) (missing []string, undecided bool) {
	if e.Pass {
		return nil, false
	}
	if e.Loose {
		for _, r := range reports {
			if r.Verdict == Violation {
				return nil, false
			}
			undecided = undecided || r.Verdict == Inconclusive
		}
		return []string{"a violation is expected, and no check finds one."}, undecided
	}
	for _, entry := range e.Must {
		name, severity, _ := strings.Cut(entry, ":")
		for _, r := range reports {
			if r.Check != name {
				continue
			}
			if r.Verdict != Violation {
				missing = append(missing, fmt.Sprintf("%s is expected to find a violation and does not.", entry))
				undecided = undecided || r.Verdict == Inconclusive
			} else if severity != "" && Severity(severity) != r.worst() {
				missing = append(missing, fmt.Sprintf("%s is expected, and what it finds is a matter of %s.", entry, r.worst()))
				undecided = undecided || r.SeverityOpen != ""
			}
		}
	}
	return missing, undecided
}

// undecidedOthers reports whether a check that must not find a violation, in a scenario that expects some, was not decided.
func (e Expectation) undecidedOthers(reports []Report) bool {
	for _, r := range reports {
		if r.Verdict == Inconclusive && !e.names(r.Check) {
			return true
		}
	}
	return false
}

func sortedNames(m map[string]int64) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
