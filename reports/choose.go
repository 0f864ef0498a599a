package reports

import (
	"slices"

	"fencepost.dev/models"
)

// mostConsidered is how many findings of a check are looked at for the clearest.
const mostConsidered = 10

// chooseTales picks at most so many findings that are told in full, and at most so many of each check; most telling first:
// what was not expected before what was, one of each check before a second, and of a check's those that are clear before
// others. A finding whose offence another tale shows already is left to the list of findings.
func chooseTales(m *Material, most, each int) []*tale {
	type candidate struct {
		check   *Check
		finding *Finding
		rank    int
	}
	r := &m.Result
	var candidates []candidate
	var findings []*Finding
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
		for j := range min(len(c.Findings), mostConsidered) {
			if len(c.Findings[j].Operations) > 0 {
				candidates = append(candidates, candidate{c, &c.Findings[j], rank})
				findings = append(findings, &c.Findings[j])
			}
		}
	}
	around := surround(findings, m.Input)
	slices.SortStableFunc(candidates, func(a, b candidate) int { return unclear(around, a.finding) - unclear(around, b.finding) })
	place := map[*Check]int{}
	for i := range candidates {
		c := &candidates[i]
		c.rank += 3 * place[c.check]
		place[c.check]++
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return a.rank - b.rank })
	var tales []*tale
	seen := map[offenderID]bool{}
	told := map[*Check]int{}
	for _, c := range candidates {
		if len(tales) == most {
			break
		}
		if told[c.check] == each {
			continue
		}
		t := newTale(c.check.Name, c.finding, r, around)
		told[c.check]++
		if id := t.offender(); !seen[id] {
			seen[id] = true
			tales = append(tales, t)
		}
	}
	return tales
}

func unclear(s *surroundings, f *Finding) int {
	if s.clear(f) {
		return 0
	}
	return 1
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
