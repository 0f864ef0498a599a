package models

import (
	"context"
	"slices"
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	pass := func(check string) Report { return Report{Check: check, Decided: 1} }
	open := func(check string) Report { return Report{Check: check, Verdict: Inconclusive, Reason: "no time"} }
	fails := func(check string, severities ...Severity) Report {
		r := Report{Check: check, Verdict: Violation}
		for _, s := range severities {
			r.Findings = append(r.Findings, Finding{Severity: s})
		}
		return r
	}
	expectPass := Expectation{Pass: true}
	pause := Expectation{Must: []string{"fencing", "lost-update"}}
	failover := Expectation{Must: []string{"linearizable:safety", "mutual-exclusion"}, May: []string{"lost-update"}}
	immortal := Expectation{Must: []string{"linearizable:availability"}}
	met, unmet := map[string]int64{"granted": 100}, map[string]int64{"granted": 99}

	for _, c := range []struct {
		name     string
		expect   Expectation
		reports  []Report
		got      map[string]int64
		troubles []string
		verdict  Verdict
		standing Standing
	}{
		{"passes", expectPass, []Report{pass("linearizable"), pass("fencing")}, met, nil, Pass, AsExpected},
		{"passes, on thin coverage", expectPass, []Report{pass("linearizable")}, unmet, nil, Inconclusive, ProvesNothing},
		{"passes, but a program died", expectPass, []Report{pass("linearizable")}, met, []string{"it died"}, Inconclusive, ProvesNothing},
		{"passes, and one check is open", expectPass, []Report{pass("linearizable"), open("fencing")}, met, nil, Inconclusive, ProvesNothing},
		{"no check was run", expectPass, nil, met, nil, Inconclusive, ProvesNothing},
		{"must pass and fails", expectPass, []Report{pass("linearizable"), fails("fencing")}, met, nil, Violation, Contrary},
		{"must pass and fails, on thin coverage", expectPass, []Report{fails("fencing")}, unmet, nil, Violation, Contrary},
		{"must pass and fails, and another is open", expectPass, []Report{fails("fencing"), open("linearizable")}, met, nil, Violation, Contrary},
		{"passes but for what may fail", Expectation{Pass: true, May: []string{"fencing"}}, []Report{pass("linearizable"), fails("fencing")}, met, nil, Violation, AsExpected},

		{"fails as it must", pause, []Report{pass("linearizable"), fails("fencing"), fails("lost-update")}, met, nil, Violation, AsExpected},
		{"fails as it must, on thin coverage", pause, []Report{pass("linearizable"), fails("fencing"), fails("lost-update")}, unmet, nil, Violation, AsExpected},
		{"fails in only one of two", pause, []Report{pass("linearizable"), fails("fencing"), pass("lost-update")}, met, nil, Violation, Contrary},
		{"fails in only one of two, on thin coverage", pause, []Report{fails("fencing"), pass("lost-update")}, unmet, nil, Violation, ProvesNothing},
		{"fails in only one of two, and the other is open", pause, []Report{fails("fencing"), open("lost-update")}, met, nil, Violation, ProvesNothing},
		{"does not fail", pause, []Report{pass("fencing"), pass("lost-update")}, met, nil, Pass, Contrary},
		{"does not fail since nothing was done", pause, []Report{pass("fencing"), pass("lost-update")}, unmet, nil, Inconclusive, ProvesNothing},
		{"fails in another way too", pause, []Report{fails("linearizable", Safety), fails("fencing"), fails("lost-update")}, met, nil, Violation, Contrary},
		{"fails in another way only", pause, []Report{fails("linearizable", Safety), pass("fencing"), pass("lost-update")}, unmet, nil, Violation, Contrary},
		{"another check is open", pause, []Report{open("linearizable"), fails("fencing"), fails("lost-update")}, met, nil, Violation, ProvesNothing},

		{"at its severity", failover, []Report{fails("linearizable", Safety), fails("mutual-exclusion"), pass("lost-update")}, met, nil, Violation, AsExpected},
		{"at its severity, with lesser ones", failover, []Report{fails("linearizable", Safety, Availability), fails("mutual-exclusion"), pass("lost-update")}, met, nil, Violation, AsExpected},
		{"at a lesser one", failover, []Report{fails("linearizable", Availability), fails("mutual-exclusion"), pass("lost-update")}, met, nil, Violation, Contrary},
		{"with what may fail", failover, []Report{fails("linearizable", Safety), fails("mutual-exclusion"), fails("lost-update")}, met, nil, Violation, AsExpected},
		{"with what may fail left open", failover, []Report{fails("linearizable", Safety), fails("mutual-exclusion"), open("lost-update")}, met, nil, Violation, AsExpected},
		{"an immortal lock", immortal, []Report{fails("linearizable", Availability)}, met, nil, Violation, AsExpected},
		{"an immortal lock, and two at once", immortal, []Report{fails("linearizable", Availability, Safety)}, met, nil, Violation, Contrary},

		{"any violation will do", Expectation{Loose: true}, []Report{pass("linearizable"), fails("fencing")}, met, nil, Violation, AsExpected},
		{"any violation would do", Expectation{Loose: true}, []Report{pass("linearizable")}, met, nil, Pass, Contrary},
		{"any violation would do, and one check is open", Expectation{Loose: true}, []Report{pass("linearizable"), open("fencing")}, met, nil, Inconclusive, ProvesNothing},
		{"none at all may be found", Expectation{Pass: true, Loose: true, May: []string{"fencing"}}, []Report{fails("fencing")}, met, nil, Violation, Contrary},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Decide(c.expect, Evidence{Reports: c.reports, Need: met, Got: c.got, Troubles: c.troubles})
			if err != nil {
				t.Fatal(err)
			}
			if d.Verdict != c.verdict || d.Standing != c.standing {
				t.Errorf("%s, standing %d, want %s, %d: %q", d.Verdict, d.Standing, c.verdict, c.standing, d.Reasons)
			}
			if (len(d.Reasons) > 0) == d.AsExpected() {
				t.Errorf("reasons %q for standing %d", d.Reasons, d.Standing)
			}
		})
	}
}

func TestExpectationsMustMakeSense(t *testing.T) {
	ran := []string{"linearizable", "fencing"}
	for _, c := range []struct {
		expect Expectation
		want   string // "": nothing is wrong
	}{
		{Expectation{Pass: true}, ""},
		{Expectation{Must: []string{"linearizable:safety"}, May: []string{"fencing"}}, ""},
		{Expectation{Must: []string{"fencing"}, May: []string{"lost-update"}}, ""},
		{Expectation{Loose: true}, ""},
		{Expectation{Must: []string{"lost-update"}}, "not among the checks"},
		{Expectation{Must: []string{"fence"}}, "no check called"},
		{Expectation{Must: []string{"fencing"}, May: []string{"fence"}}, "no check called"},
		{Expectation{Must: []string{"fencing:safety"}}, "only linearizable has severities"},
		{Expectation{Must: []string{"linearizable:badly"}}, "a severity is"},
		{Expectation{Pass: true, Must: []string{"fencing"}}, "no check that must fail"},
		{Expectation{}, "must name the checks"},
	} {
		err := c.expect.Validate(ran)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.expect, err, c.want)
		}
		if _, decided := Decide(c.expect, Evidence{Reports: []Report{{Check: ran[0]}, {Check: ran[1]}}}); (decided == nil) != (err == nil) {
			t.Errorf("%+v: Decide says %v and Validate %v", c.expect, decided, err)
		}
	}
}

func TestJudge(t *testing.T) {
	reports := Judge(context.Background(), []Check{
		{Name: "crashes", Run: func(context.Context, *Input) Report { panic("oh") }},
		{Name: "idle", Run: func(context.Context, *Input) Report { return Report{} }},
		{Name: "works", Run: func(context.Context, *Input) Report { return Report{Decided: 3} }},
		{Name: "finds", Run: func(context.Context, *Input) Report { return Report{Verdict: Violation} }},
	}, &Input{})
	want := []Verdict{Inconclusive, Inconclusive, Pass, Violation}
	for i, r := range reports {
		if r.Verdict != want[i] || (r.Verdict == Inconclusive) != (r.Reason != "") {
			t.Errorf("%s: %s, %q, want %s", r.Check, r.Verdict, r.Reason, want[i])
		}
	}
	if !strings.Contains(reports[0].Reason, "oh") || reports[0].Check != "crashes" {
		t.Errorf("%+v", reports[0])
	}
}

func TestTheTableOfChecks(t *testing.T) {
	for _, c := range All() {
		found, ok := Find(c.Name)
		if !ok || found.Name != c.Name || c.About == "" || c.Run == nil || !slices.Contains(c.Primitives, "lock") {
			t.Errorf("%+v", c)
		}
		if err := (Expectation{Must: []string{c.Name}}).Validate([]string{c.Name}); err != nil {
			t.Error(err)
		}
	}
	if _, ok := Find("no such check"); ok {
		t.Error("found a check that is not there")
	}
}
