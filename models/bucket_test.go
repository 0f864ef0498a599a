package models

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost.dev/history"
)

// toyTake takes A tokens.
const toyTake history.Kind = 245

func toyBucket(capacity, rate, drift float64) Spec[bucketState] {
	return bucketSpec(bucket{capacity, rate, drift}, func(op *history.Operation) float64 { return float64(op.A) })
}

// simulation makes histories of an object that is right: its clients' operations take effect one after another, a step apart
// on average; each is called before that and answered after it.
type simulation struct {
	clients int
	// step is the average time between two effects, and late the part of operations in a thousand that take fifty times as
	// long to be answered.
	step    int64
	late    int
	unknown int // in a thousand: the client gives up
	bound   int64
	seed    uint64
}

// run makes n operations, by Call. apply gives the operation that takes effect at an instant, of a client.
func (s simulation) run(n int, apply func(at int64, client int, r *rand.Rand) history.Operation) []history.Operation {
	r := rand.New(rand.NewPCG(s.seed, 1))
	free := make([]int64, s.clients) // when a client's last operation returned
	ops := make([]history.Operation, 0, n)
	now := int64(0)
	for len(ops) < n {
		now += 1 + r.Int64N(2*s.step)
		client := r.IntN(s.clients)
		for tries := 0; free[client] >= now; tries++ {
			client = (client + 1) % s.clients
			if tries == s.clients {
				now = slices.Min(free) + 1
			}
		}
		op := apply(now, client, r)
		op.Client, op.Commit = uint16(client), history.Completed
		op.Call = max(free[client]+1, now-r.Int64N(s.step*int64(s.clients)))
		took := r.Int64N(s.step * int64(s.clients))
		if r.IntN(1000) < s.late {
			took *= 50
		}
		op.Return = now + took
		free[client] = op.Return
		if r.IntN(1000) < s.unknown {
			op.Outcome, op.Flags = history.Unknown, history.Optional
			op.Return = plus(op.Return, s.bound)
		}
		ops = append(ops, op)
	}
	slices.SortFunc(ops, byCall)
	return ops
}

// bucketHistory is what a right bucket answers.
func bucketHistory(s simulation, n int, capacity, rate float64) []history.Operation {
	full := float64(0)
	return s.run(n, func(at int64, _ int, r *rand.Rand) history.Operation {
		op := history.Operation{Kind: toyTake, A: 1, Outcome: history.Refused}
		if cost := float64(op.A); max(0, full-float64(at)) <= (capacity-cost)/rate*1e9 {
			op.Outcome = history.OK
			full = max(full, float64(at)) + cost/rate*1e9
		}
		return op
	})
}

func TestBucketAcceptsARightOne(t *testing.T) {
	for _, clients := range []int{1, 8, 60} {
		for seed := range uint64(5) {
			s := simulation{clients: clients, step: 20_000, late: 5, seed: seed}
			ops := bucketHistory(s, 5000, 20, 20_000)
			if d := decideStream(context.Background(), toyBucket(20, 20_000, 0), ops, testBudget); d.verdict != Pass {
				t.Errorf("%d clients: %v", clients, d)
			}
		}
	}
}

func TestBucketNoticesAWrongRate(t *testing.T) {
	for _, off := range []float64{0.9, 1.1} {
		s := simulation{clients: 8, step: 20_000, seed: 1}
		ops := bucketHistory(s, 20_000, 20, 20_000*off)
		if d := decideStream(context.Background(), toyBucket(20, 20_000, 0.001), ops, testBudget); d.verdict != Violation {
			t.Errorf("rate off by %v: %v", off, d)
		}
	}
}

// A bucket that takes longer to fill than there are nanoseconds to count is never accused falsely, and nothing is proven of it.
// One that takes thirty years is as exact as any other.
func TestBucketThatHardlyRefills(t *testing.T) {
	const from = int64(1e9)
	for _, rate := range []float64{1e-3, 1e-7, 1e-12, 1e-30} {
		spec := toyBucket(100, rate, 0.001)
		for _, c := range []struct {
			name  string
			takes []int64 // what is asked for, one after another; negative: refused
			want  Verdict
		}{
			{"all of it, and no more", []int64{100, -1, -100}, Pass},
			{"all of it in parts", []int64{60, 40, -1}, Pass},
			{"less than all, and a refusal of the rest", []int64{60, -41, 40}, Pass},
			{"more than it holds", []int64{-101, 100}, Pass},
			{"nothing is always there", []int64{100, 0, 0}, Pass},
			{"more than all", []int64{100, 1}, Violation},
			{"more than all, in parts", []int64{60, 41}, Violation},
			{"a refusal of what is there", []int64{60, -39}, Violation},
			{"more than all, after a refusal", []int64{-101, 100, 1}, Violation},
		} {
			var ops []history.Operation
			for i, cost := range c.takes {
				op := history.Operation{Kind: toyTake, Call: from + int64(i)*10, Return: from + int64(i)*10 + 5, Outcome: history.OK, Commit: history.Completed, A: cost}
				if cost < 0 {
					op.A, op.Outcome = -cost, history.Refused
				}
				ops = append(ops, op)
			}
			for _, engine := range []Engine{EngineStream, EnginePorcupine} {
				d := decide(t.Context(), engine, spec, ops, testBudget)
				if counted := rate >= 1e-7; d.verdict != c.want && (counted || d.verdict != Pass) {
					t.Errorf("%g a second, %s, %s: %s %s, want %s", rate, c.name, engine, d.verdict, d.reason, c.want)
				}
			}
		}
	}
	class := toyBucket(100, 1, 0).Class
	if none := (history.Operation{Outcome: history.OK}); class(&none) == 0 {
		t.Error("takes of nothing are unlike each other")
	}
}
