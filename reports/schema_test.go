package reports

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

// verdictSchema compiles docs/verdict.schema.json.
func verdictSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(filepath.Join("..", "docs", "verdict.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// holdTo encodes a result and holds it to the schema.
func holdTo(t testing.TB, s *jsonschema.Schema, r *Result) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Encode(&b, r); err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(document); err != nil {
		t.Fatalf("%v\n%s", err, b.Bytes())
	}
	return b.Bytes()
}

func TestVerdictHoldsToItsSchema(t *testing.T) {
	s := verdictSchema(t)
	broken, fenced := lockPause(false), lockPause(true)
	golden(t, "verdict.json", holdTo(t, s, &broken.Result))
	holdTo(t, s, &fenced.Result)
	holdTo(t, s, &Result{Expected: "pass"})
}

func TestSchemaRefuses(t *testing.T) {
	s := verdictSchema(t)
	for name, edit := range map[string]func(map[string]any){
		"an unknown verdict":     func(m map[string]any) { m["verdict"] = "fine" },
		"a missing field":        func(m map[string]any) { delete(m, "as_expected") },
		"a field that is not in": func(m map[string]any) { m["extra"] = 1 },
		"null for a list":        func(m map[string]any) { m["faults"] = nil },
		"a violation of nothing": func(m map[string]any) { m["checks"].([]any)[2].(map[string]any)["findings"] = []any{} },
	} {
		m := lockPause(false)
		var b bytes.Buffer
		if err := Encode(&b, &m.Result); err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		edit(document.(map[string]any))
		if s.Validate(document) == nil {
			t.Errorf("the schema accepts %s", name)
		}
	}
}

// anyResult draws results of every shape that a run can leave.
func anyResult(t *rapid.T) *Result {
	text := rapid.String()
	verdict := rapid.SampledFrom([]models.Verdict{models.Pass, models.Inconclusive, models.Violation})
	nanos := rapid.Int64Range(-1, math.MaxInt64)
	operation := rapid.Custom(func(t *rapid.T) Operation {
		return Operation{
			Kind: text.Draw(t, "kind"), Primitive: text.Draw(t, "primitive"), Client: text.Draw(t, "client"),
			Call: nanos.Draw(t, "call"), Return: nanos.Draw(t, "return"),
			Outcome: rapid.SampledFrom([]string{"unknown", "ok", "refused", "failed"}).Draw(t, "outcome"),
			Key:     text.Draw(t, "key"), Error: text.Draw(t, "error"), Synthetic: rapid.Bool().Draw(t, "synthetic"),
			Fields: rapid.MapOf(text, rapid.Int64()).Draw(t, "fields"), Note: text.Draw(t, "note"),
		}
	})
	finding := rapid.Custom(func(t *rapid.T) Finding {
		return Finding{
			Summary: text.Draw(t, "summary"), Key: text.Draw(t, "key"), At: nanos.Draw(t, "at"),
			Severity:   rapid.SampledFrom([]models.Severity{"", models.Safety, models.Availability}).Draw(t, "severity"),
			Operations: rapid.SliceOfN(operation, 0, 4).Draw(t, "operations"),
		}
	})
	check := rapid.Custom(func(t *rapid.T) Check {
		c := Check{Name: "c" + text.Draw(t, "name"), Verdict: verdict.Draw(t, "verdict"), Reason: text.Draw(t, "reason"), Decided: rapid.IntRange(0, 9).Draw(t, "decided")}
		if c.Verdict == models.Violation {
			c.Findings = rapid.SliceOfN(finding, 1, 3).Draw(t, "findings")
			c.More = rapid.IntRange(0, 3).Draw(t, "more")
			for _, f := range c.Findings {
				c.Severity = graver(c.Severity, f.Severity)
			}
		}
		return c
	})
	event := rapid.Custom(func(t *rapid.T) history.Event {
		return history.Event{
			ID: rapid.IntRange(1, 99).Draw(t, "id"), Kind: rapid.SampledFrom([]history.EventKind{history.EventFault, history.EventStall,
				history.EventWorkerDied, history.EventPathHealed}).Draw(t, "kind"),
			At: nanos.Draw(t, "at"), End: nanos.Draw(t, "end"), Fault: text.Draw(t, "fault"), Target: text.Draw(t, "target"),
			Process: rapid.IntRange(-1, 3).Draw(t, "process"), Node: rapid.IntRange(-1, 3).Draw(t, "node"), Detail: text.Draw(t, "detail"),
			Delay: time.Duration(nanos.Draw(t, "delay")),
		}
	})
	r := &Result{
		Scenario: text.Draw(t, "scenario"), Subject: text.Draw(t, "subject"), Summary: text.Draw(t, "summary"), Command: text.Draw(t, "command"),
		Verdict: verdict.Draw(t, "verdict"), Expected: rapid.SampledFrom([]string{"pass", "violation"}).Draw(t, "expected"),
		AsExpected: rapid.Bool().Draw(t, "as expected"), Reasons: rapid.SliceOfN(text, 0, 2).Draw(t, "reasons"),
		Checks: rapid.SliceOfN(check, 0, 4).Draw(t, "checks"),
		Faults: rapid.SliceOfN(event, 0, 3).Draw(t, "faults"), Stalls: rapid.SliceOfN(event, 0, 2).Draw(t, "stalls"),
		Explains: text.Draw(t, "explains"), Started: time.Unix(1e9, 0).UTC(),
		Unproven: rapid.Bool().Draw(t, "unproven"),
	}
	for i := range r.Checks {
		name := r.Checks[i].Name
		switch rapid.IntRange(0, 3).Draw(t, "role") {
		case 0:
			r.ExpectedChecks.Must = append(r.ExpectedChecks.Must, name)
		case 1:
			r.ExpectedChecks.Must = append(r.ExpectedChecks.Must, name+":safety")
		case 2:
			r.ExpectedChecks.May = append(r.ExpectedChecks.May, name)
		}
	}
	r.Coverage = map[string]Coverage{}
	for _, name := range rapid.SliceOfN(text, 0, 2).Draw(t, "coverage") {
		r.Coverage[name] = Coverage{rapid.Int64Range(0, 5).Draw(t, "need"), rapid.Int64Range(0, 5).Draw(t, "got")}
	}
	for range rapid.IntRange(0, 2).Draw(t, "thresholds") {
		r.Thresholds = append(r.Thresholds, Threshold{Metric: text.Draw(t, "metric"), Want: text.Draw(t, "want"), Unit: "s", Met: rapid.Bool().Draw(t, "met"), Undecided: rapid.Bool().Draw(t, "undecided")})
	}
	return r
}

func TestAnyVerdictHoldsToTheSchemaAndReadsBack(t *testing.T) {
	s := verdictSchema(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := anyResult(rt)
		encoded := holdTo(t, s, r)
		back, err := Decode(bytes.NewReader(encoded))
		if err != nil {
			rt.Fatal(err)
		}
		var again bytes.Buffer
		if err := Encode(&again, back); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(encoded, again.Bytes()) {
			rt.Fatalf("read back and encoded again:\n%s\nwas:\n%s", again.Bytes(), encoded)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                    "too early",
		`{"schema": "fence`:   "too early",
		`{"schema": "other"}`: "other",
		`[]`:                  "array",
	} {
		if _, err := Decode(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
	if _, err := ReadResult(filepath.Join(t.TempDir(), "nothing")); err == nil || !strings.Contains(err.Error(), "holds no results") {
		t.Errorf("a directory that isn't there: %v", err)
	}
}

// TestSchemaKnowsEveryField keeps the schema from falling behind the type: each field of Result has a description there.
func TestSchemaKnowsEveryField(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "verdict.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	typ := reflect.TypeFor[Result]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if schema.Properties[name] == nil {
			t.Errorf("the schema has no %q", name)
		}
	}
}
