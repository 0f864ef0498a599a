package reports

import (
	"slices"

	"fencepost.dev/models"
)

// chooseTales picks at most so many findings that are told in full, and at most so many of each check; most telling first:
// what was not expected before what was, one of each check before a second. A finding whose offence another tale shows already is left to the list of findings.
func chooseTales(m *Material, most, each int) []*tale {
	type candidate struct {
		check   *Check
		finding *Finding
		rank    int
	}
	r := &m.Result
	var candidates []candidate
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Verdict != models.Violation {
			continue
		}
		rank := 0
		if _, amiss := remark(r, c); !amiss {
			rank = 1
		}
		if role, _ := role(r, c.Name); role == "may" {
			rank = 2
		}
		for j := range c.Findings {
			if len(c.Findings[j].Operations) > 0 && j < each {
				candidates = append(candidates, candidate{c, &c.Findings[j], rank + 3*j})
			}
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return a.rank - b.rank })
	if len(candidates) > 3*most {
		candidates = candidates[:3*most]
	}
	findings := make([]*Finding, len(candidates))
	for i, c := range candidates {
		findings[i] = c.finding
	}
	around := surroundings(findings, m.Input)
	var tales []*tale
	seen := map[offenderID]bool{}
	for _, c := range candidates {
		if len(tales) == most {
			break
		}
		t := newTale(c.check.Name, c.finding, r, around)
		id := t.offender()
		if seen[id] {
			continue
		}
		seen[id] = true
		tales = append(tales, t)
	}
	return tales
}

// offenderID names the operation that a tale is about.
type offenderID struct {
	client, kind, key string
	at                int64
}

func (t *tale) offender() offenderID {
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Mark == markOffence {
			return offenderID{s.Op.Client, s.Op.Kind, s.Op.Key, s.Op.Call}
		}
	}
	return offenderID{client: t.Check, at: t.Finding.At}
}
