package reports

import (
	"fencepost.dev/history"
	"fencepost.dev/models"
)

// Checks gives the answers of checks their names: what verdict.json holds of them. names are those of the history that was
// judged.
func Checks(reports []models.Report, names *history.Names) []Check {
	checks := make([]Check, 0, len(reports))
	for i := range reports {
		r := &reports[i]
		check := Check{
			Name:     r.Check,
			Verdict:  r.Verdict,
			Reason:   r.Reason,
			Decided:  r.Decided,
			Findings: make([]Finding, 0, len(r.Findings)),
			More:     r.More,
			Missed:   r.Missed,
		}
		if known, ok := models.Find(r.Check); ok {
			check.About = known.About
		}
		for j := range r.Findings {
			finding := nameFinding(&r.Findings[j], names)
			check.Severity = graver(check.Severity, finding.Severity)
			check.Findings = append(check.Findings, finding)
		}
		checks = append(checks, check)
	}
	return checks
}

// graver is the severity of a check that has findings of both: safety outranks availability.
func graver(a, b models.Severity) models.Severity {
	if a == models.Safety || b == "" {
		return a
	}
	return b
}

func nameFinding(f *models.Finding, names *history.Names) Finding {
	finding := Finding{
		Summary:    f.Summary,
		Severity:   f.Severity,
		Key:        f.Key,
		At:         f.At,
		Operations: make([]Operation, 0, len(f.Operations)),
	}
	for i := range f.Operations {
		op := NameOperation(&f.Operations[i], names)
		if i < len(f.Notes) {
			op.Note = f.Notes[i]
		}
		finding.Operations = append(finding.Operations, op)
	}
	return finding
}

// NameOperation gives an operation its names instead of numbers.
func NameOperation(op *history.Operation, names *history.Names) Operation {
	return Operation{
		Kind:      op.Kind.String(),
		Primitive: op.Kind.Primitive(),
		Client:    names.ClientName(op),
		Call:      op.Call,
		Return:    op.Return,
		Outcome:   op.Outcome.String(),
		Key:       names.Key(op.Key),
		Error:     names.Err(op.Error),
		Synthetic: op.Flags&history.Synthetic != 0,
		Fields:    fieldsOf(op),
	}
}
