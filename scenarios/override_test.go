package scenarios

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// flags makes overrides of "--rate 300" and "--set path=value".
func flags(t *testing.T, lines ...string) (overrides []Override) {
	t.Helper()
	for _, line := range lines {
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "--"), " ")
		o, err := Flag(name, value)
		if name == "set" {
			o, err = Set(value)
		}
		if err != nil {
			t.Fatal(err)
		}
		overrides = append(overrides, o)
	}
	return overrides
}

const (
	constant = "arrival: {rate: 200, for: 6s}"
	staged   = "stages: [{rate: 10, for: 4s}, {rate: 10, to: 20, for: 3s}]"
	closed   = "closed: true\n  for: 6s"
)

func TestOverrides(t *testing.T) {
	for _, c := range []struct {
		flags []string
		load  string
		check func(s *Scenario) bool
	}{
		{[]string{"--rate 300"}, constant, func(s *Scenario) bool { return s.Load.Arrival.Rate == 300 && s.Load.Arrival.For == 6*time.Second }},
		{[]string{"--for 3s"}, constant, func(s *Scenario) bool { return s.Load.Arrival.For == 3*time.Second }},
		{[]string{"--for 3s"}, closed, func(s *Scenario) bool { return s.Load.Closed && s.Load.Length() == 3*time.Second }},
		{[]string{"--workers 5", "--clients 6"}, staged, func(s *Scenario) bool { return s.Load.Workers == 5 && s.Load.Clients == 6 }},
		{[]string{"--subject lock/valkey"}, constant, func(s *Scenario) bool { return s.Subject == "lock/valkey" }},
		{[]string{"--subject exec:./lock {a: b}"}, constant, func(s *Scenario) bool { return s.Subject == "exec:./lock {a: b}" }},
		{[]string{"--topology sentinel"}, constant, func(s *Scenario) bool {
			return s.Topology["valkey"].Kind == "sentinel" && s.Topology["valkey"].Provider == "process"
		}},
		{[]string{"--provider external"}, constant, func(s *Scenario) bool { return s.Topology["valkey"].Provider == "external" }},
		{[]string{"--seed 18446744073709551615"}, constant, func(s *Scenario) bool { return s.Seed == 1<<64-1 }},
		{[]string{"--expect pass"}, constant, func(s *Scenario) bool { return reflect.DeepEqual(s.Expect, Expect{Pass: true}) }},
		{[]string{"--expect violation"}, constant, func(s *Scenario) bool { return reflect.DeepEqual(s.Expect, Expect{Loose: true}) }},
		{[]string{"--set faults=[]"}, constant, func(s *Scenario) bool { return s.Faults == nil }},
		{[]string{"--set faults[0].for=2s"}, constant, func(s *Scenario) bool { return s.Faults[0].For == 2*time.Second }},
		{[]string{"--set faults[1].persistence=true"}, constant, func(s *Scenario) bool { return *s.Faults[1].Options.(*restart).Persistence }},
		{[]string{"--set faults[2]={do: pause, on: worker}"}, constant, func(s *Scenario) bool { return len(s.Faults) == 3 && s.Faults[2].Do == "pause" }},
		{[]string{"--set workload.ttl=5s"}, constant, func(s *Scenario) bool { return s.Workload.Parameters.(*section).TTL == 5*time.Second }},
		{[]string{"--set load.arrival={rate: 7, for: 7s, spacing: poisson}"}, constant, func(s *Scenario) bool {
			return s.Load.Arrival == Arrival{Rate: 7, For: 7 * time.Second, Spacing: Poisson}
		}},
		{[]string{"--set load.stages[1].to=50"}, staged, func(s *Scenario) bool { return s.Load.Stages[1].To == 50 }},
		{[]string{"--set thresholds.acquire p99=10ms"}, constant, func(s *Scenario) bool { return *s.Thresholds["acquire p99"].Below == 0.01 }},
		{[]string{"--set options.new.deep=[1, {a: b}]"}, constant, func(s *Scenario) bool {
			return reflect.DeepEqual(s.Options["new"], map[string]any{"deep": []any{1, map[string]any{"a": "b"}}})
		}},
		{[]string{"--set pair="}, constant, nil},
		// The later one goes over the earlier.
		{[]string{"--set load.arrival.rate=5", "--rate 6"}, constant, func(s *Scenario) bool { return s.Load.Arrival.Rate == 6 }},
		// One that makes room for another.
		{[]string{"--set load={closed: true, for: 4s}", "--for 5s"}, constant, func(s *Scenario) bool { return s.Load.Length() == 5*time.Second }},
	} {
		text := strings.Replace(whole, constant, c.load, 1)
		s, err := Parse("whole.yaml", []byte(text), vocabulary(), flags(t, c.flags...)...)
		if c.check == nil {
			if err == nil {
				t.Errorf("%v was taken", c.flags)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.flags, err)
		} else if !c.check(s) {
			t.Errorf("%v gave %+v", c.flags, s)
		}
	}
}

// A mistake in a flag is told as the flag's, not as a line of the file.
func TestMistakesOfFlags(t *testing.T) {
	for _, c := range []struct{ flag, load, want string }{
		{"--rate 0", constant, "--rate: load.arrival.rate: must be above 0, is 0"},
		{"--rate fast", constant, `--rate: load.arrival.rate: expected a number, found the text "fast"`},
		{"--rate 10", staged, "--rate: this scenario's load has stages; change one with --set load.stages[0].rate=10"},
		{"--for 10s", staged, "--for: this scenario's load has stages; change one with --set load.stages[0].for=10s"},
		{"--rate 10", closed, "--rate: this scenario's load is a closed loop, which has no rate; more --clients make more load"},
		{"--for 10", constant, "--for: load.arrival.for: 10 has no unit; write 10ms or 10s"},
		{"--workers 0", constant, "--workers: load.workers: must be between 1 and 1000, is 0"},
		{"--subject lock/valky", constant, `--subject: subject: no subject "lock/valky"; did you mean "lock/valkey"?`},
		{"--subject lock/valkey", constant, ""},
		{"--topology cluster", constant, `--topology: topology.valkey.kind: no kind "cluster" (valkey has sentinel, standalone)`},
		{"--provider docker", constant, `--provider: topology.valkey.provider: no provider "docker" (valkey standalone has external, process)`},
		{"--seed -1", constant, "--seed: seed: expected a whole number that is not negative, found the number -1"},
		{"--expect inconclusive", constant, `--expect: expected pass or violation, found "inconclusive"`},
		{"--set faults[0].when=holdin", constant, `--set faults[0].when=holdin: faults[0].when: no point "holdin"; did you mean "holding"?`},
		{"--set faults[7].for=1s", constant, "--set faults[7].for=1s: [7] is past the end of a list of 2"},
		{"--set load[0]=1", constant, "--set load[0]=1: there is no list to take [0] of; found fields"},
		{"--set name.first=x", constant, `--set name.first=x: there is no field first in the text "whole"`},
		{"--set faults[0.for=1s", constant, `--set faults[0.for=1s: "faults[0.for" is not a path; write one such as faults[0].for`},
		{"--set .=1", constant, `--set .=1: "." is not a path`},
		{"--set workload.tll=1s", constant, `--set workload.tll=1s: workload.tll: unknown field; did you mean "ttl"?`},
		{"--set tags=[a", constant, "--set tags=[a: the value is not YAML"},
		{"--set tags=*x", constant, "--set tags=*x: the value is not YAML"},
		{"--set tags=&x [a]", constant, "--set tags=&x [a]: tags: anchors and aliases are not supported"},
		{"--set options.pol=4", constant, `--set options.pol=4: options.pol: no option "pol"; did you mean "pool"?`},
		{"--set options={a: 1, a: 2}", constant, "--set options={a: 1, a: 2}: options.a: is given twice"},
	} {
		text := strings.Replace(whole, constant, c.load, 1)
		_, err := Parse("whole.yaml", []byte(text), vocabulary(), flags(t, c.flag)...)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.flag, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %v\nwant %s", c.flag, err, c.want)
		}
	}
	for _, bad := range []string{"", "=1", "load.workers"} {
		if _, err := Set(bad); err == nil {
			t.Errorf("--set %q was taken", bad)
		}
	}
	if _, err := Flag("colour", "red"); err == nil {
		t.Error("--colour was taken")
	}
}

// --provider goes to every store, also those that the file leaves to the subject's needs.
func TestProviderOfEveryStore(t *testing.T) {
	for _, topology := range []string{"topology: {kind: standalone}\n", "topology: {valkey: {}, aws: {}}\n", ""} {
		text := strings.Replace(whole, "topology: {kind: standalone}\n", topology, 1)
		s := parse(t, text, flags(t, "--provider process")...)
		if !reflect.DeepEqual(s.Topology["valkey"], Store{Kind: "standalone", Provider: "process"}) {
			t.Errorf("%q: %+v", topology, s.Topology)
		}
	}
}

func TestDefaults(t *testing.T) {
	s := parse(t, `{name: least, subject: lock/valkey, workload: {kind: idle}, load: {arrival: {rate: 1, for: 1s}}, checks: [fencing], expect: pass}`)
	want := &Scenario{Name: "least", Subject: "lock/valkey", Workload: Workload{Kind: "idle"},
		Topology: map[string]Store{"valkey": {Kind: "standalone", Provider: "process"}},
		Load:     Load{Workers: 1, Clients: 1, Arrival: Arrival{Rate: 1, For: time.Second, Spacing: Even}, Settle: settled},
		Checks:   []string{"fencing"}, Expect: Expect{Pass: true}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

func TestControl(t *testing.T) {
	s := parse(t, whole)
	c, err := Control(s, vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, whole)
	want.Name, want.Faults, want.Coverage, want.Control, want.Pair = "whole-control", nil, nil, nil, ""
	want.Summary = "The control of whole: the same run with no faults, workload.ttl 10s, and nothing else changed."
	want.Workload.Parameters.(*section).TTL = 10 * time.Second
	want.Expect = Expect{Not: []string{"linearizable:safety", "fencing"}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	if !reflect.DeepEqual(s, parse(t, whole)) {
		t.Error("the scenario itself was changed")
	}
	if text, err := c.YAML(); err != nil || !reflect.DeepEqual(parse(t, string(text)), c) {
		t.Errorf("is not what it writes: %v\n%s", err, text)
	}

	// What the control says goes over what the flags said: it is what takes the cause away.
	over := parse(t, whole, flags(t, "--set workload.ttl=1s", "--rate 50")...)
	if c, err = Control(over, vocabulary()); err != nil || c.Workload.Parameters.(*section).TTL != 10*time.Second || c.Load.Arrival.Rate != 50 {
		t.Errorf("got %+v, %v", c, err)
	}
	for control, summary := range map[string]string{
		"faults: [{at: 1s, do: pause, on: worker, for: 1s}], coverage: {granted: 5}": "The control of whole: the same run with other faults, and nothing else changed.",
		"coverage: {granted: 5}":        "The control of whole: the same run.",
		"faults: [], summary: It holds": "It holds",
	} {
		own := parse(t, strings.Replace(whole, "control: {faults: [], workload: {ttl: 10s}}", "control: {"+control+"}", 1))
		if c, err := Control(own, vocabulary()); err != nil || c.Summary != summary {
			t.Errorf("{%s}: %v, %v", control, c, err)
		}
	}
	// Another kind doesn't inherit fields that mean nothing to it.
	other := parse(t, strings.Replace(whole, "workload: {ttl: 10s}", "workload: {kind: idle}, coverage: {granted: 5}", 1))
	if c, err = Control(other, vocabulary()); err != nil || c.Workload != (Workload{Kind: "idle"}) || c.Coverage["granted"] != 5 || len(c.Coverage) != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	loose := parse(t, whole, flags(t, "--expect violation")...)
	if c, err = Control(loose, vocabulary()); err != nil || !reflect.DeepEqual(c.Expect.Not, s.Checks) {
		t.Errorf("got %+v, %v", c, err)
	}
	for _, none := range []*Scenario{parse(t, whole, flags(t, "--expect pass")...), parse(t, whole, flags(t, "--set control=null")...)} {
		if c, err := Control(none, vocabulary()); err == nil {
			t.Errorf("a control out of nothing: %+v", c)
		}
	}
}
