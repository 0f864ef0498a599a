package scenarios

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// whole is a scenario with something of everything. Cases replace parts of it.
const whole = `name: whole
summary: Something of everything.
explains: |
  Because.
tags: [lock, pause]
subject: flawed/lock/setnx-then-expire
options: {pool: 4, deep: {er: [1, two, 3.5, null]}}
workload: {kind: critical-section, client: checking, keys: 2, ttl: 300ms, names: [a, b], strict: false, batch: 7}
topology: {kind: standalone}
load:
  workers: 3
  clients: 4
  arrival: {rate: 200, for: 6s}
faults:
  - {at: 1s, every: 1500ms, do: pause, on: worker, for: 700ms, when: holding}
  - {at: 2s, do: restart, on: valkey/primary, persistence: false}
checks: [linearizable, mutual-exclusion, fencing, lost-update]
coverage: {granted: 100, faults: 3}
thresholds:
  errors: 1%
  acquire p99: {below: 50ms, outside: faults}
  rate: {above: 100}
expect: {violation: ["linearizable:safety", fencing], may: [lost-update]}
control: {faults: [], workload: {ttl: 10s}}
pair: other
seed: 7
`

// TestMistakes holds the sentence for each mistake against testdata/mistakes.golden, where they can be read as their users
// will.
func TestMistakes(t *testing.T) {
	cases := []struct {
		name string
		edit [2]string // what of whole is replaced, and by what
		all  string    // or all of it
	}{
		{name: "unknown field", edit: [2]string{"subject:", "subjekt:"}},
		{name: "unknown field of parameters", edit: [2]string{"ttl: 300ms", "tll: 300ms"}},
		{name: "unknown field of an embedded struct", edit: [2]string{"batch: 7", "badge: 7"}},
		{name: "unknown field of load", edit: [2]string{"clients: 4", "cleints: 4"}},
		{name: "unknown option of a fault", edit: [2]string{"persistence: false", "persistance: false"}},
		{name: "option of another fault", edit: [2]string{"when: holding", "persistence: true"}},
		{name: "text for a number", edit: [2]string{"workers: 3", "workers: three"}},
		{name: "fraction for a whole number", edit: [2]string{"workers: 3", "workers: 2.5"}},
		{name: "number for a text", edit: [2]string{"name: whole", "name: 12"}},
		{name: "fields for a list", edit: [2]string{"[lock, pause]", "{lock: pause}"}},
		{name: "text for fields", edit: [2]string{"{kind: standalone}", "standalone"}},
		{name: "word that judges itself", edit: [2]string{"client: checking", "client: cheking"}},
		{name: "too large a number", edit: [2]string{"batch: 7", "batch: 70000"}},
		{name: "duration without unit", edit: [2]string{"ttl: 300ms", "ttl: 300"}},
		{name: "no duration", edit: [2]string{"for: 6s", "for: a while"}},
		{name: "negative duration", edit: [2]string{"for: 6s", "for: -6s"}},
		{name: "rate of 0", edit: [2]string{"rate: 200", "rate: 0"}},
		{name: "negative rate", edit: [2]string{"rate: 200", "rate: -3"}},
		{name: "infinite rate", edit: [2]string{"rate: 200", "rate: .inf"}},
		{name: "no rate", edit: [2]string{"rate: 200, ", ""}},
		{name: "no workers", edit: [2]string{"workers: 3", "workers: 0"}},
		{name: "to outside of stages", edit: [2]string{"rate: 200,", "rate: 200, to: 300,"}},
		{name: "arrival and stages", edit: [2]string{"  arrival:", "  stages: [{rate: 1, for: 1s}]\n  arrival:"}},
		{name: "idle stages", edit: [2]string{"arrival: {rate: 200, for: 6s}", "stages: [{rate: 0, for: 6s}]"}},
		{name: "closed loop with an arrival", edit: [2]string{"  arrival:", "  closed: true\n  arrival:"}},
		{name: "closed loop without a length", edit: [2]string{"arrival: {rate: 200, for: 6s}", "closed: true"}},
		{name: "length of an open loop", edit: [2]string{"  arrival:", "  for: 3s\n  arrival:"}},
		{name: "unknown spacing", edit: [2]string{"rate: 200,", "rate: 200, spacing: poison,"}},
		{name: "parameters judged by their workload", edit: [2]string{"keys: 2", "keys: 0"}},
		{name: "parameters judged as a whole", edit: [2]string{"ttl: 300ms", "ttl: 1ms"}},
		{name: "duplicate field", edit: [2]string{"  clients: 4", "  clients: 4\n  workers: 4"}},
		{name: "anchor", edit: [2]string{"[lock, pause]", "&tags [lock, pause]"}},
		{name: "alias", edit: [2]string{"[lock, pause]", "*tags"}},
		{name: "name that is no name", edit: [2]string{"name: whole", "name: ../whole"}},
		{name: "tag of two words", edit: [2]string{"[lock, pause]", "[lock pause]"}},
		{name: "unknown subject", edit: [2]string{"flawed/lock/setnx-then-expire", "setnx-then-expire"}},
		{name: "subject of another primitive", edit: [2]string{"flawed/lock/setnx-then-expire", "limiter/token-bucket"}},
		{name: "unknown workload", edit: [2]string{"kind: critical-section", "kind: critical-sections"}},
		{name: "workload without kind", edit: [2]string{"kind: critical-section, ", ""}},
		{name: "unknown store", edit: [2]string{"{kind: standalone}", "{valky: {kind: standalone}}"}},
		{name: "unknown topology", edit: [2]string{"kind: standalone", "kind: standalon"}},
		{name: "unknown provider", edit: [2]string{"kind: standalone", "kind: sentinel, provider: external"}},
		{name: "unknown fault", edit: [2]string{"do: pause", "do: paus"}},
		{name: "fault without do", edit: [2]string{"do: pause, ", ""}},
		{name: "fault without target", edit: [2]string{"on: worker, ", ""}},
		{name: "unknown target", edit: [2]string{"on: worker,", "on: wroker,"}},
		{name: "worker that isn't there", edit: [2]string{"on: worker,", "on: worker/w4,"}},
		{name: "fault that doesn't fit its target", edit: [2]string{"do: pause", "do: flush"}},
		{name: "unknown point", edit: [2]string{"when: holding", "when: holdin"}},
		{name: "fault after the load", edit: [2]string{"at: 1s", "at: 7s"}},
		{name: "times without every", edit: [2]string{"every: 1500ms", "times: 2"}},
		{name: "unknown check", edit: [2]string{"checks: [linearizable,", "checks: [linearisable,"}},
		{name: "check twice", edit: [2]string{"checks: [linearizable,", "checks: [fencing,"}},
		{name: "check of another primitive", edit: [2]string{"checks: [", "checks: [over-admission, "}},
		{name: "no checks", edit: [2]string{"checks: [linearizable, mutual-exclusion, fencing, lost-update]", "checks: []"}},
		{name: "unknown counter", edit: [2]string{"granted: 100", "grants: 100"}},
		{name: "negative counter", edit: [2]string{"granted: 100", "granted: -1"}},
		{name: "unknown metric", edit: [2]string{"errors: 1%", "mistakes: 1%"}},
		{name: "share of one or of all", edit: [2]string{"errors: 1%", "errors: 1"}},
		{name: "share that is none", edit: [2]string{"errors: 1%", "errors: 101%"}},
		{name: "latency without unit", edit: [2]string{"below: 50ms", "below: 50"}},
		{name: "rate without a side", edit: [2]string{"{above: 100}", "100"}},
		{name: "threshold without bound", edit: [2]string{"{above: 100}", "{outside: faults}"}},
		{name: "outside of what", edit: [2]string{"outside: faults", "outside: lunch"}},
		{name: "expectation that is none", edit: [2]string{`{violation: ["linearizable:safety", fencing], may: [lost-update]}`, "fail"}},
		{name: "expectation of nothing", edit: [2]string{`{violation: ["linearizable:safety", fencing], may: [lost-update]}`, "{may: [lost-update]}"}},
		{name: "expectation of an absent check", edit: [2]string{`"linearizable:safety"`, "linear"}},
		{name: "unknown severity", edit: [2]string{"linearizable:safety", "linearizable:safely"}},
		{name: "severity of what has none", edit: [2]string{"may: [lost-update]", "may: ['lost-update:safety']"}},
		{name: "must and may", edit: [2]string{"may: [lost-update]", "may: [fencing]"}},
		{name: "mistake in the control", edit: [2]string{"faults: [], workload: {ttl: 10s}", "workload: {ttl: 10}"}},
		{name: "control of the expectation", edit: [2]string{"control: {faults: []", "control: {expect: pass, faults: []"}},
		{name: "not YAML", edit: [2]string{"tags: [lock, pause]", "tags: [lock, pause"}},
		{name: "two documents", edit: [2]string{"seed: 7\n", "seed: 7\n---\nname: more\n"}},
		{name: "several mistakes", edit: [2]string{"subject: flawed/lock/setnx-then-expire\n", "subjekt: x\nseeds: 3\nname: again\n"}},
		{name: "empty", all: "\n# nothing\n"},
		{name: "a list", all: "- name: x\n"},
		{name: "almost nothing", all: "summary: x\n"},
	}
	var got strings.Builder
	for _, c := range cases {
		text := c.all
		if c.all == "" {
			text = strings.Replace(whole, c.edit[0], c.edit[1], 1)
			if text == whole {
				t.Fatalf("%s: nothing was replaced", c.name)
			}
		}
		s, err := Parse("whole.yaml", []byte(text), vocabulary())
		if err == nil {
			t.Errorf("%s: read as %+v", c.name, s)
			continue
		}
		var one Mistake
		if !errors.As(err, &one) {
			t.Errorf("%s: the error is a %T", c.name, err)
		}
		got.WriteString("# " + c.name + "\n" + err.Error() + "\n\n")
	}
	golden(t, "testdata/mistakes.golden", got.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (go test -update writes it):\n%s", path, got)
	}
}

func TestNearest(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"holdin", "holding"}, {"hodling", "holding"}, {"HOLDING", "holding"}, {"zzz", ""}, {"write", "before-write"}, {"x", ""},
	} {
		if got, _ := nearest(c.name, []string{"before-write", "holding", "request-in-flight"}); got != c.want {
			t.Errorf("%q is nearest to %q, got %q", c.name, c.want, got)
		}
	}
	if got, _ := nearest("fro", []string{"at", "for", "from"}); got != "for" {
		t.Errorf("two letters swapped are one slip, got %q", got)
	}
}

// What is unknown is told with all that there is: a name that was left out may be the one that is wanted.
func TestEveryNameIsListed(t *testing.T) {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("counter-%02d", i))
	}
	sentence := unknown("counter", "nothing-like-it", names, "coverage")
	for _, name := range names {
		if !strings.Contains(sentence, name) {
			t.Errorf("%s is missing: %s", name, sentence)
		}
	}
}
