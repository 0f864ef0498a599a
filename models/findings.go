package models

import "fencepost.dev/history"

// add records a finding, up to maxFindings of them.
func (r *Report) add(f Finding) {
	r.Verdict = Violation
	if len(r.Findings) == maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, f)
}

// proof collects a witness with its notes.
type proof struct {
	operations []history.Operation
	notes      []string
}

// show adds an operation that is there.
func (p *proof) show(op *history.Operation, note string) {
	if op != nil {
		p.operations = append(p.operations, *op)
		p.notes = append(p.notes, note)
	}
}

func (p *proof) finding(key string, at int64, summary string) Finding {
	return Finding{Summary: summary, Key: key, At: at, Operations: p.operations, Notes: p.notes}
}

// patience is how often the sorted passes look at their context.
const patience = 4096

// cutShort makes a report of a check whose context ended: what was found counts, and what was not proves nothing.
func (r *Report) cutShort(reason string) Report {
	r.Verdict = max(r.Verdict, Inconclusive)
	r.Reason = reason
	return *r
}
