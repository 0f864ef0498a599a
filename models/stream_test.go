package models

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"fencepost.dev/history"
)

// inOrder is the operations as engines get them.
func inOrder(ops []history.Operation) []history.Operation {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, byCall)
	return ops
}

func TestStreamOnTheCounter(t *testing.T) {
	for _, c := range engineCases {
		t.Run(c.name, func(t *testing.T) {
			if got := decideStream(context.Background(), counterSpec(), inOrder(c.ops), testBudget); (got.verdict == Pass) != c.want || got.reason != "" {
				t.Errorf("stream: %v, want %v", got, c.want)
			}
		})
	}
}

// A toy object: a register with compare-and-set. A: value read, written or expected; B: value to set.
const (
	toyWrite history.Kind = 242 + iota
	toyRead
	toySwap
)

func registerSpec() Spec[int64] {
	return Spec[int64]{
		Name: "register",
		Init: func() int64 { return 0 },
		Step: func(s int64, op *history.Operation) (int64, bool) {
			switch op.Kind {
			case toyWrite:
				return op.A, true
			case toyRead:
				return s, s == op.A
			}
			switch {
			case op.Outcome == history.Refused:
				return s, s != op.A
			case s == op.A:
				return op.B, true
			}
			return s, op.Outcome == history.Unknown // one that may have been refused
		},
		ReadOnly: func(op *history.Operation) bool { return op.Kind == toyRead || op.Outcome == history.Refused },
		Class: func(op *history.Operation) uint64 {
			return uint64(op.Kind)<<40 | uint64(op.Outcome)<<32 | uint64(op.A)<<16 | uint64(op.B)
		},
		DescribeState:     func(s int64) string { return strconv.FormatInt(s, 10) },
		DescribeOperation: func(op *history.Operation) string { return strconv.FormatInt(op.A, 10) },
	}
}

func drawRegister(t *rapid.T, most int) []history.Operation {
	span := rapid.SampledFrom([]int64{3, 8, 20}).Draw(t, "span")
	return inOrder(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) history.Operation {
		call := rapid.Int64Range(0, span).Draw(t, "call")
		op := history.Operation{
			Call: call, Return: call + rapid.Int64Range(0, 8).Draw(t, "took"),
			Kind: rapid.SampledFrom([]history.Kind{toyWrite, toyRead, toySwap}).Draw(t, "kind"), Outcome: history.OK,
			A: rapid.Int64Range(0, 2).Draw(t, "a"), B: rapid.Int64Range(0, 2).Draw(t, "b"),
		}
		switch rapid.IntRange(0, 5).Draw(t, "fate") {
		case 0:
			op = maybe(op)
		case 1:
			op = maybe(op)
			op.Return = never
		case 2:
			if op.Kind == toySwap {
				op.Outcome = history.Refused
			}
		}
		if op.Kind != toySwap {
			op.B = 0
		}
		return op
	}), 0, most).Draw(t, "ops"))
}

// alike requires that the stream engine, Porcupine and brute force agree, and gives the answer.
func alike[S comparable](t *rapid.T, spec Spec[S], ops []history.Operation) bool {
	want := bruteForce(spec, ops)
	if got := decidePorcupine(context.Background(), spec, ops, testBudget); (got.verdict == Pass) != want || got.reason != "" {
		t.Fatalf("porcupine %v, brute force %v", got, want)
	}
	if got := decideStream(context.Background(), spec, ops, testBudget); (got.verdict == Pass) != want || got.reason != "" {
		t.Fatalf("stream %v, brute force %v", got, want)
	}
	return want
}

func TestStreamAgreesOnTheRegister(t *testing.T) {
	histories(t, 10_000)
	accepted, rejected := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		if alike(t, registerSpec(), drawRegister(t, 7)) {
			accepted++
		} else {
			rejected++
		}
	})
	t.Logf("accepted %d, rejected %d", accepted, rejected)
	if n := accepted + rejected; accepted < n/20 || rejected < n/20 {
		t.Error("the histories are lopsided")
	}
}

func TestStreamAgreesOnTheCounter(t *testing.T) {
	histories(t, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		ops := inOrder(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) history.Operation {
			call := rapid.Int64Range(0, 12).Draw(t, "call")
			op := get(call, call+rapid.Int64Range(0, 8).Draw(t, "took"), rapid.Int64Range(0, 3).Draw(t, "value"))
			if rapid.Bool().Draw(t, "add") {
				op.Kind, op.A = toyAdd, min(op.A, 2)
				if rapid.Bool().Draw(t, "unknown") {
					op = maybe(op)
				}
			}
			return op
		}), 0, 7).Draw(t, "ops"))
		alike(t, counterSpec(), ops)
	})
}

func TestStreamAgreesOnLocks(t *testing.T) {
	histories(t, 10_000)
	var accepted, rejected int
	rapid.Check(t, func(t *rapid.T) {
		h, contract := simulateLock(t, 4)
		if rapid.Bool().Draw(t, "mutated") {
			mutate(t, h.Operations)
		}
		in := simInput(t, h, contract)
		o := lockObject(in)
		for _, p := range partitions(in, o) {
			for _, ops := range [][]history.Operation{p.ops, relaxed(o.spec, p.ops)} {
				porcupine := decidePorcupine(context.Background(), o.spec, ops, testBudget)
				stream := decideStream(context.Background(), o.spec, ops, testBudget)
				if porcupine.verdict != stream.verdict || stream.reason != "" {
					t.Fatalf("porcupine %v, stream %v\n%+v\n%s", porcupine, stream, contract, dump(in))
				}
				if stream.verdict == Pass {
					accepted++
				} else {
					rejected++
				}
			}
		}
	})
	t.Logf("accepted %d, rejected %d", accepted, rejected)
}
