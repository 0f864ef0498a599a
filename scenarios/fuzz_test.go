package scenarios

import (
	"errors"
	"reflect"
	"testing"
)

// FuzzParse: whatever a file and an override hold, loading ends in a scenario or in mistakes, and never in a panic. What it
// accepts it writes and reads again as the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole), "faults[0].for", "1s")
	f.Add([]byte("name: x\nload: {stages: [{rate: 0, to: 5, for: 1s}]}"), "load.stages[0].rate", "3")
	f.Add([]byte("a: &a [*a, *a]\n<<: *a"), "a.b[0][1].c", "{a: *b}")
	f.Add([]byte("? [x]\n: {y: !!binary aaaa}\n? \n"), "x", "!!int 0x_")
	f.Add([]byte("topology: {kind: {kind: x}}\ncontrol: {topology: {kind: x}, control: {}}"), "topology.kind", "!!null")
	f.Add([]byte("control: []\nexpect: {not: [fencing], violation: }\nthresholds: {p99: {below: -1s}}"), "expect.not", "")
	for _, name := range Names() {
		text, err := catalogue.ReadFile(name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "load.arrival.rate", "1e3")
	}
	words := vocabulary()
	f.Fuzz(func(t *testing.T, text []byte, path, value string) {
		var overrides []Override
		if o, err := Set(path + "=" + value); err == nil {
			overrides = append(overrides, o)
		}
		s, err := Parse("fuzz.yaml", text, words, overrides...)
		if err != nil {
			var mistakes Mistakes
			if !errors.As(err, &mistakes) || len(mistakes) == 0 || s != nil {
				t.Fatalf("%T %v and %+v", err, err, s)
			}
			return
		}
		written, err := s.YAML()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("fuzz.yaml", written, words)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if !reflect.DeepEqual(back, s) {
			t.Fatalf("was %+v\nis  %+v\n%s", s, back, written)
		}
		if s.Control != nil && !s.Expect.Pass {
			if _, err := Control(s, words); err != nil {
				t.Fatalf("control: %v\n%s", err, written)
			}
		}
	})
}
