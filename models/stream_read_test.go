package models

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fencepost.dev/history"
)

// record writes operations of one process, by Call, as a run does, and opens what was written.
func record(t testing.TB, dir string, ops []history.Operation, clockError int64) *history.Reader {
	t.Helper()
	rec, err := history.NewRecorder(dir, "w1.1", history.RecorderOptions{Process: history.Process{Worker: "w1", Incarnation: 1, ClockError: clockError}})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[uint32]uint32{}
	for i := range ops {
		op := ops[i]
		if _, known := keys[op.Key]; !known {
			keys[op.Key] = rec.Key(fmt.Sprintf("k%d", op.Key))
		}
		op.Key = keys[op.Key]
		rec.End(rec.Begin(&op), &op)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A record that is read as a stream is judged as one that is held in memory, and told alike.
func TestCheckRecordJudgesAsInMemory(t *testing.T) {
	for seed := range 12 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			ops := lockHistory(4000, 20)
			broken := 0
			for i := range ops {
				if seed > 0 && i%(400*seed) == 399 && ops[i].Kind == history.Acquire {
					if ops[i].Outcome = history.Refused; seed%2 == 0 {
						ops[i].Outcome = history.OK
					}
					broken++
				}
			}
			r := record(t, t.TempDir(), ops, 1000)
			o := PrepareOptions{Primitive: "lock", Limit: Limit{Parallel: 2, Engine: EngineStream}}
			got, err := CheckRecord(context.Background(), r, o)
			if err != nil {
				t.Fatal(err)
			}
			h := &history.History{}
			for op, err := range r.All() {
				if err != nil {
					t.Fatal(err)
				}
				h.Operations = append(h.Operations, op)
			}
			h.Names = *r.Names()
			in, err := Prepare(h, o)
			if err != nil {
				t.Fatal(err)
			}
			want := linearizable.Run(context.Background(), in)
			if got.Verdict != want.Verdict || got.Decided != want.Decided || len(got.Findings) != len(want.Findings) || got.More != want.More {
				t.Fatalf("as a stream %v, in memory %v", got, want)
			}
			if seed == 0 && got.Verdict != Pass {
				t.Errorf("%v", got)
			}
			said := func(r Report) (list []string) {
				for _, f := range r.Findings {
					list = append(list, fmt.Sprint(f.Key, f.Severity, f.Summary))
				}
				slices.Sort(list)
				return list
			}
			if r.Names(); want.More == 0 && !slices.Equal(said(got), said(want)) {
				t.Errorf("as a stream: %q\nin memory: %q", said(got), said(want))
			}
			t.Log(broken, got.Verdict, len(got.Findings))
		})
	}
}

func TestCheckRecordWithoutTime(t *testing.T) {
	r := record(t, t.TempDir(), lockHistory(20_000, 2), 0)
	got, err := CheckRecord(context.Background(), r, PrepareOptions{Primitive: "lock", Limit: Limit{Parallel: 1, Time: time.Microsecond}})
	if err != nil || got.Verdict != Inconclusive {
		t.Errorf("%v %v", got, err)
	}
}

// Whatever the width of its sets, a stream says the same.
func TestEveryWidthSaysTheSame(t *testing.T) {
	histories(t, 2_000)
	rapid.Check(t, func(t *rapid.T) {
		ops := drawRegister(t, 10)
		want := decideStream(context.Background(), registerSpec(), ops, testBudget)
		s := newStream(context.Background(), registerSpec(), testBudget)
		at := rapid.IntRange(0, 10).Draw(t, "widened at")
		for i := range ops {
			if i >= at && i < at+3 && !s.decided {
				s.sweep = s.sweep.wider()
			}
			s.feed(&ops[i])
		}
		if got := s.finish(); got != want {
			t.Fatalf("wide %v, narrow %v", got, want)
		}
	})
}

// More operations pending than a word has bits: unknown writes without a bound, of few values, and reads of some.
func TestManyPending(t *testing.T) {
	for _, n := range []int64{63, 65, 300, 1100, maxPending + 1} {
		var ops []history.Operation
		for i := range n {
			ops = append(ops, maybe(history.Operation{Kind: toyWrite, A: i%3 + 1, Call: 10 * i, Return: never}))
		}
		read := func(at, value int64) history.Operation {
			return history.Operation{Kind: toyRead, A: value, Call: at, Return: at + 1, Outcome: history.OK}
		}
		end := 10 * n
		legal := append(slices.Clone(ops), read(end, 3), read(end+2, 1), read(end+4, 3), read(end+6, 0+2))
		d := decideStream(context.Background(), registerSpec(), legal, testBudget)
		if want := map[bool]Verdict{true: Pass, false: Inconclusive}[n <= maxPending]; d.verdict != want {
			t.Errorf("%d pending: %v", n, d)
		}
		illegal := append(slices.Clone(ops), read(end, 3), read(end+2, 7))
		if d := decideStream(context.Background(), registerSpec(), illegal, testBudget); d.verdict != Violation && n <= maxPending {
			t.Errorf("%d pending: %v", n, d)
		}
	}
}

func TestStreamKeepsItsLimits(t *testing.T) {
	ops := hardOverwrites(40)
	if d := decideStream(context.Background(), registerSpec(), ops, budget{1 << 20}); d.verdict != Inconclusive {
		t.Errorf("memory: %v", d)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	started := time.Now()
	if d := decideStream(ctx, registerSpec(), ops, budget{8 << 30}); d.verdict != Inconclusive {
		t.Errorf("time: %v", d)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

// hardOverwrites are n concurrent writes of different values and a read of none of them.
func hardOverwrites(n int64) []history.Operation {
	var ops []history.Operation
	for i := range n {
		ops = append(ops, history.Operation{Kind: toyWrite, A: i + 1, Call: 0, Return: 100, Outcome: history.OK})
	}
	return append(ops, history.Operation{Kind: toyRead, A: -1, Call: 101, Return: 102, Outcome: history.OK})
}

// A record of several batches to a worker is decided whole, and in order: an operation of a key that came after a later one
// would end in a panic, and so in an inconclusive report.
func TestCheckRecordOfManyBatches(t *testing.T) {
	const n = 5 * batchLength
	ops := lockHistory(n, 30)
	o := PrepareOptions{Primitive: "lock", Limit: Limit{Parallel: 2, Time: 5 * time.Minute}}
	got, err := CheckRecord(context.Background(), record(t, t.TempDir(), ops, 0), o)
	if err != nil || got.Verdict != Pass || got.Decided != len(ops) {
		t.Errorf("%v %v: %d of %d decided", got, err, got.Decided, len(ops))
	}
}
