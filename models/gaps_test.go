package models

import (
	"testing"

	"fencepost.dev/history"
)

// TestGapsAccuseNobody: what was dropped, or not received, makes a violation that can rest on it inconclusive, and no other.
func TestGapsAccuseNobody(t *testing.T) {
	dropped := history.Source{Base: "w1.1", Closed: true, Dropped: 3}
	lost := history.Source{Base: "w1.1", Streamed: true}
	whole := history.Source{Base: "w1.1", Streamed: true, Closed: true}
	killed := history.Source{Base: "w1.1"} // on the coordinator's machine nothing is lost with it
	witness := history.Source{Base: history.ResourceBase, Closed: true, Dropped: 1}
	for _, c := range []struct {
		name    string
		source  history.Source
		check   string
		verdict Verdict
	}{
		{"a dropped release", dropped, "linearizable", Inconclusive},
		{"an unsent release", lost, "linearizable", Inconclusive},
		{"an unsent release", lost, "mutual-exclusion", Inconclusive},
		{"an unsent release", lost, "fencing", Violation},
		{"a whole record", whole, "linearizable", Violation},
		{"a killed local worker", killed, "linearizable", Violation},
		{"a dropped attempt", witness, "lost-update", Inconclusive},
		{"a dropped attempt", witness, "mutual-exclusion", Violation},
		{"a dropped attempt", witness, "linearizable", Violation},
		{"a dropped attempt", witness, "token-order", Violation},
		{"a dropped attempt", witness, "fencing", Violation},
		{"a dropped grant", dropped, "token-order", Violation},
		{"a dropped grant", dropped, "lost-update", Violation},
	} {
		t.Run(c.name+", "+c.check, func(t *testing.T) {
			in, err := Prepare(&history.History{Sources: []history.Source{c.source}}, PrepareOptions{Primitive: "lock"})
			if err != nil {
				t.Fatal(err)
			}
			must := Expectation{Must: []string{c.check}}
			got := Temper(in, must, []Report{{Check: c.check, Verdict: Violation, Decided: 1}})[0]
			if got.Verdict != c.verdict || (got.Verdict == Inconclusive) != (got.Reason != "") {
				t.Errorf("verdict %s (%q), want %s", got.Verdict, got.Reason, c.verdict)
			}
		})
	}
}
