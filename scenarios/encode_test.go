package scenarios

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var span = rapid.Custom(func(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "ns"))
})

// plainValue is what an option can hold.
func plainValue(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just(any(nil)),
		rapid.Bool().AsAny(),
		rapid.Int().AsAny(),
		rapid.Float64().AsAny(),
		rapid.String().AsAny(),
		rapid.SampledFrom([]string{"", "true", "12", "1.5", "null", "~", " x", "x ", "a: b", "- a", "#", "2026-01-01", "0x1F", "1_000", "=", "<<", "\n", "a\n\nb\n", "  a\n b"}).AsAny(),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(plainValue(depth-1), 0, 3), func(list []any) []any {
				if list == nil {
					list = []any{}
				}
				return list
			}).AsAny(),
			rapid.Map(rapid.MapOfN(rapid.String(), plainValue(depth-1), 0, 3), func(m map[string]any) map[string]any {
				if m == nil {
					m = map[string]any{}
				}
				return m
			}).AsAny())
	}
	return rapid.OneOf(kinds...)
}

var (
	options        = optionsNamed(rapid.String())
	subjectOptions = optionsNamed(rapid.SampledFrom([]string{"pool", "deep", "new"}))
)

func optionsNamed(names *rapid.Generator[string]) *rapid.Generator[map[string]any] {
	return rapid.Map(rapid.MapOfN(names, plainValue(2), 0, 3), func(m map[string]any) map[string]any {
		if len(m) == 0 {
			return nil
		}
		return m
	})
}

func maybe[T any](t *rapid.T, g *rapid.Generator[T], label string) (value T) {
	if rapid.Bool().Draw(t, label+"?") {
		value = g.Draw(t, label)
	}
	return value
}

func arrival(t *rapid.T) Arrival {
	return Arrival{
		Rate:    rapid.Float64Range(0.001, mostRate).Draw(t, "rate"),
		For:     span.Draw(t, "for"),
		Spacing: rapid.SampledFrom([]Spacing{Even, Poisson}).Draw(t, "spacing"),
	}
}

func drawLoad(t *rapid.T) Load {
	l := Load{Workers: rapid.IntRange(1, mostWorkers).Draw(t, "workers"), Clients: rapid.IntRange(1, mostClients).Draw(t, "clients"),
		Settle: maybe(t, span, "settle")}
	switch rapid.IntRange(0, 2).Draw(t, "sort") {
	case 0:
		l.Arrival = arrival(t)
	case 1:
		for range rapid.IntRange(1, 3).Draw(t, "stages") {
			stage := arrival(t)
			stage.To = maybe(t, rapid.Float64Range(0.001, mostRate), "to")
			l.Stages = append(l.Stages, stage)
		}
		l.Stages = append(l.Stages, Arrival{For: span.Draw(t, "idle"), Spacing: Even})
	default:
		l.Closed, l.Arrival.For = true, span.Draw(t, "closed")
	}
	return l
}

func drawFault(t *rapid.T, length time.Duration) Fault {
	f := Fault{Do: "pause", On: rapid.SampledFrom([]string{"worker", "worker/w1", "valkey", "valkey/primary"}).Draw(t, "on"),
		At: time.Duration(rapid.Int64Range(0, int64(min(length, longest))-1).Draw(t, "at")), For: maybe(t, span, "for"),
		When: rapid.SampledFrom([]string{"", "holding"}).Draw(t, "when")}
	if rapid.Bool().Draw(t, "again") {
		f.Every, f.Times = span.Draw(t, "every"), rapid.IntRange(0, 5).Draw(t, "times")
	}
	if rapid.Bool().Draw(t, "restart") {
		f.Do = "restart"
		f.Options = &restart{Persistence: maybe(t, rapid.Ptr(rapid.Bool(), true), "persistence"), By: time.Duration(rapid.Int64().Draw(t, "by"))}
	}
	return f
}

func drawScenario(t *rapid.T) *Scenario {
	s := &Scenario{
		Name: rapid.StringMatching(`[a-z0-9][a-z0-9.-]{0,20}`).Draw(t, "name"), Summary: rapid.String().Draw(t, "summary"),
		Explains: rapid.String().Draw(t, "explains"), Subject: rapid.SampledFrom([]string{"lock/valkey", "exec:./lock --fast"}).Draw(t, "subject"),
		Options: subjectOptions.Draw(t, "options"), Pair: rapid.String().Draw(t, "pair"), Seed: rapid.Uint64().Draw(t, "seed"),
		Workload: Workload{Kind: "idle"}, Load: drawLoad(t),
		Topology: map[string]Store{"valkey": {Kind: "standalone", Provider: rapid.SampledFrom([]string{"process", "external"}).Draw(t, "provider"),
			Options: options.Draw(t, "store options")}},
		Checks: []string{"linearizable", "fencing", "lost-update"},
		Tags:   maybe(t, rapid.SliceOfN(rapid.StringMatching(`[a-z]+`), 1, 3), "tags"),
	}
	if rapid.Bool().Draw(t, "section") {
		s.Workload = Workload{Kind: "critical-section", Parameters: &section{
			Client: rapid.SampledFrom([]trust{"trusting", "checking"}).Draw(t, "client"), Keys: rapid.IntRange(1, 1e6).Draw(t, "keys"),
			TTL: span.Draw(t, "ttl"), Spread: rapid.Float64().Draw(t, "spread"),
			Names:  maybe(t, rapid.SliceOfN(rapid.String(), 1, 3), "names"),
			Strict: maybe(t, rapid.Ptr(rapid.Bool(), true), "strict"), tuning: tuning{Batch: rapid.Uint16().Draw(t, "batch")}}}
	}
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		s.Faults = append(s.Faults, drawFault(t, s.Load.Length()))
	}
	if rapid.Bool().Draw(t, "coverage") {
		s.Coverage = map[string]int64{"granted": rapid.Int64Range(0, 1<<62).Draw(t, "granted")}
	}
	if rapid.Bool().Draw(t, "thresholds") {
		seconds := span.Draw(t, "p99").Seconds()
		share := rapid.Float64Range(0, 1).Draw(t, "errors")
		rate := rapid.Float64Range(0, 1e9).Draw(t, "rate bound")
		s.Thresholds = map[string]Threshold{"acquire p99": {Below: &seconds, Unit: Seconds, Outside: "faults"},
			"errors": {Below: &share, Unit: Share}, "rate": {Above: &rate, Below: &rate, Unit: PerSecond}}
		for name, threshold := range s.Thresholds {
			threshold.Text = threshold.text()
			s.Thresholds[name] = threshold
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "expect") {
	case 0:
		s.Expect.Pass = true
	case 1:
		s.Expect.Loose = true
	case 2:
		s.Expect.Not = []string{"fencing"}
	default:
		s.Expect = Expect{Violation: []string{"linearizable:safety", "fencing"}, May: []string{"lost-update"}}
		s.Control = map[string]any{"faults": []any{}, "summary": rapid.String().Draw(t, "control")}
	}
	return s
}

// What is written and loaded again is the same.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		text, err := s.YAML()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("scenario.yaml", text, vocabulary())
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(back, s) {
			t.Fatalf("was    %#v\nis     %#v\n%s", s, back, text)
		}
	})
}

// Values that YAML would read as something else if they were written carelessly.
func TestAwkwardValuesRoundTrip(t *testing.T) {
	s := parse(t, whole)
	s.Options = map[string]any{"deep": map[string]any{
		"a whole float": 2.0, "a large one": 1e21, "an int": 2, "zero": 0.0,
		"texts": []any{"2", "2.0", "true", "null", "~", "", " ", "1%", "300ms", "2026-01-01", "<<", "a: b", "- a", "#", "@", "%"},
		"lines": []any{" a\nb", "\n", "\na", "a\n", "a\n\n", "\t\n", "a\n\tb", "a \nb", "a\r\nb", "a\u0085b\n", "\u2028\n", "\ufeff\n", "---\n...\n"},
		"empty": map[string]any{"list": []any{}, "map": map[string]any{}, "nothing": nil},
		"true":  1, "12": 1, "": 1, "a\nb": 1,
	}}
	text, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "!!") {
		t.Errorf("tags are not for people:\n%s", text)
	}
	if back := parse(t, string(text)); !reflect.DeepEqual(back, s) {
		t.Errorf("was %#v\nis  %#v\n%s", s.Options, back.Options, text)
	}
}

// Loading resolves what a file leaves open, and what is resolved stays so.
func TestWholeRoundTrip(t *testing.T) {
	s := parse(t, whole)
	text, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/whole.golden", string(text))
	if back := parse(t, string(text)); !reflect.DeepEqual(back, s) {
		t.Errorf("was %+v\nis  %+v", s, back)
	}
}

func parse(t interface {
	Helper()
	Fatal(...any)
}, text string, overrides ...Override) *Scenario {
	t.Helper()
	s, err := Parse("test.yaml", []byte(text), vocabulary(), overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
