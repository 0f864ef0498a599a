package models

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"fencepost.dev/history"
)

// decidePorcupine hands the spec to Porcupine, which searches depth first and caches what it has tried (Wing & Gong 1993 with
// Lowe's improvements). Each cache entry holds a bit for every operation, so memory grows with the square of a partition: one
// that can't fit is refused at once, and one that outgrows its budget is given up.
func decidePorcupine[S comparable](ctx context.Context, spec Spec[S], ops []history.Operation, b budget) decision {
	ops = withoutEchoes(spec, ops)
	s := newSearch(ctx, spec, ops, b)
	if least := int64(len(ops)) * s.entry; least > b.memory {
		return starved("porcupine would need at least %d MiB for %d operations on one object, and has %d: raise the limit on memory or use the stream engine",
			least>>20, len(ops), b.memory>>20)
	}
	if len(ops) == 0 {
		return decision{}
	}
	model := s.model()
	ok := porcupine.CheckOperations(model, s.operations())
	if s.gaveUp != "" {
		d := undecided("%s", s.gaveUp)
		d.starved = s.starved
		return d
	}
	if !ok {
		return decision{verdict: Violation}
	}
	return decision{}
}

// withoutEchoes leaves out read-only operations that others imply. If two of one class are mandatory and one's interval lies
// within the other's, then wherever the inner one is placed the outer one can be placed right behind it: the state is the same,
// and so is the answer. Where Step reads times, that does not follow.
//
// Without it, a dozen clients that are refused at the same time can be placed in 2¹² ways, all of which Porcupine would
// remember.
func withoutEchoes[S comparable](spec Spec[S], ops []history.Operation) []history.Operation {
	if spec.Timed || spec.Class == nil || spec.ReadOnly == nil {
		return ops
	}
	byReturn := make([]int, len(ops))
	for i := range byReturn {
		byReturn[i] = i
	}
	slices.SortStableFunc(byReturn, func(a, b int) int {
		return cmp.Or(cmp.Compare(ops[a].Return, ops[b].Return), cmp.Compare(ops[b].Call, ops[a].Call))
	})
	latest := map[uint64]int64{} // by class, the latest call among those that returned so far
	echo := make([]bool, len(ops))
	for _, i := range byReturn {
		op := &ops[i]
		class := spec.Class(op)
		if class == 0 || op.Flags&history.Optional != 0 || !spec.ReadOnly(op) {
			continue
		}
		call, known := latest[class]
		if echo[i] = known && call >= op.Call; !echo[i] {
			latest[class] = op.Call
		}
	}
	kept := make([]history.Operation, 0, len(ops))
	for i := range ops {
		if !echo[i] {
			kept = append(kept, ops[i])
		}
	}
	return kept
}

// search is one run of Porcupine. It is used by the one goroutine that Porcupine starts for the one partition.
type search[S comparable] struct {
	ctx    context.Context
	spec   Spec[S]
	ops    []history.Operation
	seed   maphash.Seed
	entry  int64 // bytes that one cache entry takes
	memory int64
	steps  int64
	gaveUp string
	// starved: it gave up for want of memory.
	starved bool
}

func newSearch[S comparable](ctx context.Context, spec Spec[S], ops []history.Operation, b budget) *search[S] {
	// The bit set, the entry with its slice and interface headers, a boxed state, and its share of the map.
	const overhead = 160
	return &search[S]{
		ctx: ctx, spec: spec, ops: ops, seed: maphash.MakeSeed(),
		entry: int64(len(ops)/8) + overhead, memory: b.memory,
	}
}

func (s *search[S]) operations() []porcupine.Operation {
	list := make([]porcupine.Operation, len(s.ops))
	for i := range s.ops {
		op := &s.ops[i]
		list[i] = porcupine.Operation{ClientId: i, Input: op, Call: op.Call, Return: op.Return}
	}
	return list
}

// model is deterministic unless some operation is optional; then its states are sets, since a step may or may not be taken.
func (s *search[S]) model() porcupine.Model {
	for i := range s.ops {
		if s.ops[i].Flags&history.Optional != 0 {
			return s.optional()
		}
	}
	return porcupine.Model{
		Init: func() any { return s.spec.Init() },
		StepContext: func(_ context.Context, state, input, _ any) (bool, any) {
			next, ok := s.step(state.(S), input.(*history.Operation))
			return ok, next
		},
		Hash:              func(state any) uint64 { return maphash.Comparable(s.seed, state.(S)) },
		DescribeState:     func(state any) string { return s.spec.DescribeState(state.(S)) },
		DescribeOperation: s.describe,
	}
}

func (s *search[S]) optional() porcupine.Model {
	sets := porcupine.NondeterministicModel{
		Init: func() []any { return []any{s.spec.Init()} },
		Step: func(state, input, _ any) []any {
			op := input.(*history.Operation)
			next, ok := s.step(state.(S), op)
			switch optional := op.Flags&history.Optional != 0; {
			case s.gaveUp != "":
				return nil
			case ok && optional:
				return []any{state, next}
			case optional:
				return []any{state}
			case ok:
				return []any{next}
			}
			return nil
		},
		Hash:              func(state any) uint64 { return maphash.Comparable(s.seed, state.(S)) },
		DescribeState:     func(state any) string { return s.spec.DescribeState(state.(S)) },
		DescribeOperation: s.describe,
	}
	return sets.ToModel()
}

// step asks the spec. A panic in it ends the search: Porcupine's goroutine is not ours to recover.
func (s *search[S]) step(state S, op *history.Operation) (next S, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.gaveUp, ok = crashed(p), false
		}
	}()
	if s.overdrawn() {
		return state, false
	}
	return s.spec.Step(state, op)
}

func (s *search[S]) describe(input, _ any) string {
	return s.spec.DescribeOperation(input.(*history.Operation))
}

// overdrawn makes every further step fail once the budget is spent. Porcupine then unwinds what it has and ends: its own
// timeout would leave it running behind us. What it says is not believed then.
//
// A step that succeeds adds at most one cache entry, so counting steps never underestimates memory.
func (s *search[S]) overdrawn() bool {
	if s.gaveUp != "" {
		return true
	}
	s.steps++
	if s.steps*s.entry > s.memory {
		s.gaveUp, s.starved = "porcupine ran out of its memory limit: raise it or use the stream engine", true
	} else if s.steps%64 == 0 && s.ctx.Err() != nil {
		s.gaveUp = outOfTime(s.ctx)
	}
	return s.gaveUp != ""
}

// outOfTime says why a context ended, for people.
func outOfTime(ctx context.Context) string {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return "it ran out of time: raise the limit on time"
	}
	return "it was interrupted"
}
