package models

import (
	"testing"

	"fencepost.dev/history"
)

// What the engines rely on: a read-only operation changes no state, and operations of one class do the same to every state.
func TestLockReductionsAreSound(t *testing.T) {
	grants := []history.GrantID{0, history.NewGrantID(0, 0, 1), history.NewGrantID(1, 0, 1)}
	var states []lockState
	for _, g := range grants {
		for generation := range int64(2) {
			states = append(states, lockState{g, generation, false}, lockState{g, generation, true})
		}
	}
	var ops []history.Operation
	for _, kind := range []history.Kind{history.Acquire, history.Extend, history.Release, history.Expire} {
		for _, outcome := range []history.Outcome{history.OK, history.Refused, history.Unknown} {
			for _, g := range grants[1:] {
				op := history.Operation{Kind: kind, Outcome: outcome}
				op.SetGrant(g)
				if kind == history.Extend || kind == history.Expire {
					op.SetGeneration(1)
				}
				ops = append(ops, op)
			}
		}
	}
	for _, after := range []AfterExpiry{Gone, Takeable} {
		spec := lockSpec(&Input{Contract: Contract{AfterExpiry: after}, Names: &history.Names{}})
		for _, s := range states {
			for i := range ops {
				next, ok := spec.Step(s, &ops[i])
				if spec.ReadOnly(&ops[i]) && ok && next != s {
					t.Errorf("%s is read-only and turns %v into %v", spec.DescribeOperation(&ops[i]), s, next)
				}
				for j := range ops {
					if spec.Class(&ops[i]) == 0 || spec.Class(&ops[i]) != spec.Class(&ops[j]) {
						continue
					}
					if other, same := spec.Step(s, &ops[j]); other != next || same != ok {
						t.Errorf("%s and %s are of one class and differ in %v", spec.DescribeOperation(&ops[i]), spec.DescribeOperation(&ops[j]), s)
					}
				}
			}
		}
	}
}

func TestLockStepAllocatesNothing(t *testing.T) {
	in := lockCases[0].input(t)
	spec := lockSpec(in)
	op := &in.Operations[0]
	if n := testing.AllocsPerRun(100, func() {
		s, _ := spec.Step(lockState{}, op)
		spec.Step(s, op)
		spec.Class(op)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLockStep(b *testing.B) {
	in := lockCases[0].input(b)
	spec := lockSpec(in)
	for b.Loop() {
		s := lockState{}
		for i := range in.Operations {
			s, _ = spec.Step(s, &in.Operations[i])
		}
	}
}
