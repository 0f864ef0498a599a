package models

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fencepost.dev/history"
)

// busy is a long legal story: n holds of 10 ms, one after another by four clients, each with a refusal in the middle.
func busy(n int) string {
	var b strings.Builder
	for i := range n {
		at := 20 * i
		fmt.Fprintf(&b, "w%d/c0 acquire k %d..%d ok G%d\n", i%4+1, at, at+1, i)
		fmt.Fprintf(&b, "w%d/c0 acquire k %d..%d refused R%d\n", (i+1)%4+1, at+3, at+4, i)
		fmt.Fprintf(&b, "w%d/c0 release k %d..%d ok G%d\n", i%4+1, at+10, at+11, i)
	}
	return b.String()
}

// A witness is what a person must see, and nothing else, out of a long history that goes on after it.
func TestWitness(t *testing.T) {
	const n = 60
	end := 20 * n
	for _, c := range []struct {
		name     string
		contract Contract
		story    string
		severity Severity
		at       int64 // ms after the busy part
		summary  string
		shows    []string
		notes    []string
	}{
		{
			"two at once", Contract{}, `
			w5/c0 acquire k +0..+1 ok X
			w6/c0 acquire k +20..+21 ok Y
			w6/c0 release k +30..+31 ok Y
			w5/c0 release k +40..+41 ok X`,
			Safety, 21, "w6/c0 was granted k at 1.221 s while w5/c0 held it: granted at 1.201 s, it could not have expired before 1.298 s.",
			[]string{"w5/c0 acquire", "w6/c0 acquire"},
			[]string{"granted at 1.201 s; could not have expired before 1.298 s", "granted at 1.221 s all the same"},
		},
		{
			"refused after an expiry", Contract{}, `
			w5/c0 acquire k +0..+1 ok X
			w6/c0 acquire k +300..+301 refused Y`,
			Availability, 301, "w6/c0 was refused k at 1.501 s although nobody can have held it since 1.303 s.",
			[]string{"w5/c0 acquire", "w5/c0 expire", "w6/c0 acquire"},
			[]string{"granted at 1.201 s; could not have expired before 1.298 s", "its time-to-live ends between 1.298 s and 1.303 s",
				"refused at 1.501 s although nobody can have held it since 1.303 s"},
		},
		{
			"refused by a call that was open for long", Contract{}, `
			w5/c0 acquire k +0..+1 ok X
			w6/c0 acquire k +300..+1500 refused Y`,
			Availability, 1500, "w6/c0 was refused k at 2.700 s although nobody can have held it since 1.303 s.",
			[]string{"w5/c0 acquire", "w5/c0 expire", "w6/c0 acquire"},
			[]string{"granted at 1.201 s; could not have expired before 1.298 s", "its time-to-live ends between 1.298 s and 1.303 s",
				"refused at 2.700 s although nobody can have held it since 1.303 s; the call was open for 1.20 s, and if a client library " +
					"repeats a request that is answered late, the first try of this call, or of one that was open beside it, took the lock"},
		},
		{
			"refused after an acquire that had no answer", Contract{}, `
			w5/c0 acquire k +0..+50 unknown X
			w6/c0 acquire k +3000..+3001 refused Y`,
			Availability, 3001, "w6/c0 was refused k at 4.201 s although nobody can have held it since 2.352 s: what w5/c0 asked for at 1.200 s, " +
				"and was never answered, had ended by then.",
			[]string{"w5/c0 acquire", "w5/c0 expire", "w6/c0 acquire"}, nil,
		},
		{
			"extended too late", Contract{}, `
			w5/c0 acquire k +0..+1 ok X
			w5/c0 extend k +50..+51 ok X
			w5/c0 extend k +100..+101 ok X
			w5/c0 extend k +300..+301 ok X`,
			Safety, 301, "w5/c0 could extend k at 1.501 s although its time-to-live had ended by 1.403 s.",
			[]string{"w5/c0 acquire", "w5/c0 extend", "w5/c0 expire", "w5/c0 extend"}, nil,
		},
		{
			"granted to two after an extension", Contract{}, `
			w5/c0 acquire k +0..+1 ok X
			w5/c0 extend k +50..+51 ok X
			w6/c0 acquire k +120..+121 ok Y`,
			Safety, 121, "w6/c0 was granted k at 1.321 s while w5/c0 held it: granted at 1.201 s, extended at 1.251 s, it could not have expired before 1.348 s.",
			[]string{"w5/c0 acquire", "w5/c0 extend", "w6/c0 acquire"}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			story := c.story
			for _, field := range strings.Fields(story) {
				if from, to, ok := strings.Cut(field, "..+"); ok {
					var a, b int
					fmt.Sscanf(from, "+%d", &a)
					fmt.Sscanf(to, "%d", &b)
					story = strings.Replace(story, field, fmt.Sprintf("%d..%d", end+a, end+b), 1)
				}
			}
			story += "\n w7/c0 acquire k 90000..90001 ok Z\n w8/c0 acquire k 90002..90003 ok Z2" // and it goes on
			if c.severity == Availability {                                                      // which would be the graver
				story = strings.TrimSuffix(story, "w8/c0 acquire k 90002..90003 ok Z2") + "w8/c0 acquire k 91000..91001 refused Z2"
			}
			in := prepared(t, busy(n)+story, PrepareOptions{Contract: c.contract})
			r := linearizable.Run(context.Background(), in)
			if len(r.Findings) != 1 {
				t.Fatalf("%d findings: %s %s", len(r.Findings), r.Verdict, r.Reason)
			}
			f := r.Findings[0]
			if f.Severity != c.severity || f.At != (int64(end)+c.at)*msec || f.Key != "k" || f.Summary != c.summary {
				t.Errorf("%s at %s on %q: %s", f.Severity, instant(f.At), f.Key, f.Summary)
			}
			var shows []string
			for i := range f.Operations {
				shows = append(shows, in.Names.ClientName(&f.Operations[i])+" "+f.Operations[i].Kind.String())
			}
			if !slices.Equal(shows, c.shows) || c.notes != nil && !slices.Equal(f.Notes, c.notes) {
				t.Errorf("shows %q with notes %q", shows, f.Notes)
			}
		})
	}
}

// What makes witnesses small keeps legal histories legal, so a small story fails for a reason that the whole one has: cutting
// it at any instant, and dropping any grants that may be dropped.
func TestShrinkingInventsNothing(t *testing.T) {
	histories(t, 3_000)
	dropped := 0
	rapid.Check(t, func(t *rapid.T) {
		h, contract := simulateLock(t, 4)
		contract.Refusals = Exact
		in := simInput(t, h, contract)
		o := lockObject(in)
		linearizes := func(ops []history.Operation) bool {
			return decidePorcupine(context.Background(), o.spec, ops, testBudget).verdict == Pass
		}
		for _, p := range partitions(in, o) {
			severity, ops := Safety, relaxed(o.spec, p.ops)
			if linearizes(p.ops) { // not where the simulated lock refused spuriously
				if rapid.Bool().Draw(t, "strict") {
					severity, ops = Availability, p.ops
				}
			}
			ops = until(ops, rapid.Int64Range(0, 2000*msec).Draw(t, "cut"))
			if !linearizes(ops) {
				t.Fatalf("cut, it no longer linearizes\n%s", dump(in))
			}
			var gone, kept []history.Operation
			for _, unit := range o.witness.units(ops) {
				if rapid.Bool().Draw(t, "drop") {
					gone = append(gone, unit...)
				} else {
					kept = append(kept, unit...)
				}
			}
			if !o.witness.mayDrop(severity, gone, kept) {
				continue
			}
			dropped += len(gone)
			slices.SortStableFunc(kept, byCall)
			if !linearizes(kept) {
				t.Fatalf("%s: without some grants it no longer linearizes\n%s", severity, dump(in))
			}
		}
	})
	if dropped == 0 {
		t.Error("nothing was ever dropped")
	}
}

// Whatever is found in a history that is wrong, its witness is a story that fails by itself, told in full.
func TestWitnessesFail(t *testing.T) {
	histories(t, 2_000)
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		h, contract := simulateLock(t, 5)
		mutate(t, h.Operations)
		in := simInput(t, h, contract)
		o := lockObject(in)
		was := o.witness.tell
		o.witness.tell = func(names *history.Names, s story) Finding {
			told++
			if decidePorcupine(context.Background(), o.spec, s.witness, testBudget).verdict != Violation {
				t.Fatalf("the witness linearizes\n%s", dump(in))
			}
			if s.severity == Safety && len(relaxed(o.spec, s.witness)) != len(s.witness) {
				t.Fatal("a safety violation's witness has refusals")
			}
			return was(names, s)
		}
		for _, f := range linearize(context.Background(), in, o).Findings {
			if f.Summary == "" || strings.Contains(f.Summary, "%!") || len(f.Operations) == 0 || len(f.Notes) != len(f.Operations) || f.At == 0 {
				t.Fatalf("%+v", f)
			}
			if slices.Contains(f.Notes, "") {
				t.Fatalf("notes %q", f.Notes)
			}
		}
	})
	if told == 0 {
		t.Error("no mutation was ever found")
	}
}

func TestManyBrokenKeys(t *testing.T) {
	var b strings.Builder
	for i := range maxFindings + 3 {
		fmt.Fprintf(&b, "w1/c0 acquire k%d 0..1 refused A%d\n", i, i)
	}
	b.WriteString("w1/c0 acquire z 0..1 ok B\n w2/c0 acquire z 10..11 ok C\n")
	r := linearizable.Run(context.Background(), prepared(t, b.String(), PrepareOptions{Limit: Limit{Parallel: 4}}))
	if len(r.Findings) != maxFindings || r.More != 4 || r.Findings[0].Key != "z" || r.Findings[0].Severity != Safety || r.Decided != maxFindings+5 {
		t.Errorf("%d findings and %d more, first %+v, decided %d", len(r.Findings), r.More, r.Findings[0], r.Decided)
	}
}

func TestProgressIsTold(t *testing.T) {
	var told []int
	in := prepared(t, "w1/c0 acquire k 0..1 ok A\n w1/c0 acquire j 5..6 ok B", PrepareOptions{})
	in.Limit.Progress = func(n int) { told = append(told, n) }
	linearizable.Run(context.Background(), in)
	if !slices.Equal(told, []int{1, 2}) {
		t.Errorf("%v", told)
	}
}

func TestVisualize(t *testing.T) {
	for name, story := range map[string]string{
		"a violation":        busy(5) + "w5/c0 acquire k 200..201 ok X\n w6/c0 acquire k 210..211 ok Y",
		"a long violation":   busy(400) + "w5/c0 acquire k 8200..8201 ok X\n w6/c0 acquire k 8210..8211 ok Y",
		"an unknown acquire": "w5/c0 acquire k 0..1 unknown X\n w6/c0 acquire k 9000..9001 refused Y",
		"a pass":             busy(400),
	} {
		t.Run(name, func(t *testing.T) {
			var page bytes.Buffer
			if err := Visualize(context.Background(), prepared(t, story, PrepareOptions{}), "k", &page); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page.String(), "<html") || page.Len() > 4<<20 {
				t.Errorf("%d bytes", page.Len())
			}
			if strings.Contains(name, "violation") && !strings.Contains(page.String(), "w6/c0") {
				t.Error("the page doesn't name the client")
			}
		})
	}
	if err := Visualize(context.Background(), prepared(t, "w1/c0 acquire k 0..1 ok A", PrepareOptions{}), "nokey", &bytes.Buffer{}); err == nil {
		t.Error("a key that is not there was visualized")
	}
}
