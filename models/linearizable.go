package models

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"fencepost.dev/history"
)

// maxFindings is how many findings a check lists; a broken lock breaks a thousand times.
const maxFindings = 10

// Linearizable is the name of the check that both engines decide; the only one whose violations have severities.
const Linearizable = "linearizable"

var linearizable = Check{
	Name:       Linearizable,
	About:      "Every answer is one that a single-threaded, instantaneous implementation could have given.",
	Primitives: []string{"lock", "lease"},
	Severities: []Severity{Safety, Availability},
	expires:    true,
	needsCalls: true, // without its release, the next grant is a second holder
	Run: func(ctx context.Context, in *Input) Report {
		switch in.Primitive {
		case "lock", "lease":
			return linearize(ctx, in, lockObject(in))
		}
		return Report{Verdict: Inconclusive, Reason: fmt.Sprintf("there is no specification of a %s", in.Primitive)}
	},
}

// object is what deciding linearizability needs of a primitive besides its spec.
type object[S comparable] struct {
	spec Spec[S]
	// takesPart says which recorded operations the spec is about.
	takesPart func(*history.Operation) bool
	// spurious: a refusal proves nothing; only the relaxed spec decides.
	spurious bool
	witness  teller
}

// partition is what happened to one object: its recorded operations and those derived from them, by Call.
type partition struct {
	key      uint32
	ops      []history.Operation
	recorded int
}

func partitions[S comparable](in *Input, o object[S]) []partition {
	of := o.spec.Partition
	if of == nil {
		of = func(op *history.Operation) uint32 { return op.Key }
	}
	index := map[uint32]int{}
	var list []partition
	// What a derivation reads need not take part itself: a reported loss ends renewing.
	var sources [][]history.Operation
	for i := range in.Operations {
		op := &in.Operations[i]
		at, known := index[of(op)]
		if !known {
			at = len(list)
			index[of(op)] = at
			list = append(list, partition{key: op.Key})
			sources = append(sources, nil)
		}
		sources[at] = append(sources[at], *op)
	}
	for i := range list {
		p := &list[i]
		for j := range sources[i] {
			if o.takesPart(&sources[i][j]) {
				p.ops = append(p.ops, sources[i][j])
			}
		}
		p.recorded = len(p.ops)
		if o.spec.Derive != nil {
			p.ops = append(p.ops, o.spec.Derive(sources[i])...)
			slices.SortStableFunc(p.ops, byCall)
		}
	}
	return slices.DeleteFunc(list, func(p partition) bool { return p.recorded == 0 })
}

// relaxed leaves out the refusals that the spec can relax: they are accepted anywhere and change nothing.
func relaxed[S comparable](spec Spec[S], ops []history.Operation) []history.Operation {
	if spec.Relax == nil {
		return ops
	}
	kept := make([]history.Operation, 0, len(ops))
	for i := range ops {
		if !spec.Relax(&ops[i]) {
			kept = append(kept, ops[i])
		}
	}
	return kept
}

// judge decides whether some operations of one object linearize.
type judge func(context.Context, []history.Operation) decision

// ruling is the decision on one partition.
type ruling struct {
	partition
	decision
	severity Severity
	failing  []history.Operation // what does not linearize: all, or without the relaxed refusals
	// open says why it could not be decided whether an availability violation is one of safety too; "" if it could.
	open string
}

// linearize decides every object of the run, in parallel, strict and relaxed, and explains the violations.
func linearize[S comparable](ctx context.Context, in *Input, o object[S]) Report {
	ctx, cancel := context.WithTimeout(ctx, in.Limit.time())
	defer cancel()
	list := partitions(in, o)
	rulings := make([]ruling, len(list))
	parallel := max(1, min(in.Limit.parallel(), len(list)))
	judgeWith := func(memory int64) judge {
		return func(ctx context.Context, ops []history.Operation) decision {
			return decide(ctx, in.Limit.Engine, o.spec, ops, budget{memory})
		}
	}
	judge := judgeWith(in.Limit.memory() / int64(parallel))

	var next, decided atomic.Int64
	var working sync.WaitGroup
	for range parallel {
		working.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				rulings[i] = ruled(ctx, list[i], o, judge)
				if n := decided.Add(int64(list[i].recorded)); in.Limit.Progress != nil {
					in.Limit.Progress(int(n))
				}
			}
		})
	}
	working.Wait()
	// The memory is there once: what its share was too small for gets all of it, now that the others are done.
	whole := judgeWith(in.Limit.memory())
	for i, r := range rulings {
		if parallel > 1 && r.starved {
			rulings[i] = ruled(ctx, list[i], o, whole)
		}
	}
	return o.report(ctx, in, rulings, whole)
}

// ruled is rule, with a panic turned into indecision.
func ruled[S comparable](ctx context.Context, p partition, o object[S], judge judge) (r ruling) {
	defer func() {
		if p := recover(); p != nil {
			r.decision = undecided("%s", crashed(p))
		}
	}()
	r.partition = p
	return rule(ctx, p, o, judge)
}

// rule decides one partition. The relaxed spec is asked even where the strict one could not be decided: with fewer operations
// it may be, and a safety violation is one whatever the refusals mean.
func rule[S comparable](ctx context.Context, p partition, o object[S], judge judge) ruling {
	r := ruling{partition: p}
	if !o.spurious {
		if r.decision = judge(ctx, p.ops); r.verdict == Pass {
			return r
		}
	}
	if r.verdict == Violation {
		r.severity, r.failing = Availability, p.ops
	}
	excused := relaxed(o.spec, p.ops)
	if len(excused) == len(p.ops) && !o.spurious {
		if r.verdict == Violation {
			r.severity = Safety
		}
		return r
	}
	d := judge(ctx, excused)
	missed, disagree, hungry := r.missed || d.missed, r.disagree || d.disagree, r.starved || d.starved
	switch {
	case d.verdict == Violation:
		r.decision, r.severity, r.failing = d, Safety, excused
	case o.spurious:
		r.decision = d
	case d.verdict == Inconclusive && r.verdict == Violation:
		r.open = d.reason
	}
	r.missed, r.disagree, r.starved = missed, disagree, hungry && r.severity != Safety
	return r
}

// report tells of the rulings, safety violations first and then in the order of keys.
func (o object[S]) report(ctx context.Context, in *Input, rulings []ruling, judge judge) Report {
	var report Report
	var broken []ruling
	undecided := 0
	for _, r := range rulings {
		report.Verdict = max(report.Verdict, r.verdict)
		if r.missed {
			report.Missed++
		}
		if r.disagree {
			report.Disagreements++
		}
		if r.open != "" {
			report.SeverityOpen = r.open
		}
		switch r.verdict {
		case Violation:
			broken = append(broken, r)
		case Inconclusive:
			undecided++
			report.Reason = r.reason
		}
		if r.verdict != Inconclusive {
			report.Decided += r.recorded
		}
	}
	if report.Disagreements > 0 {
		report.Reason = fmt.Sprintf("on %d of %d objects the engines disagree, which is an error in Fencepost: report it, with the results directory", report.Disagreements, len(rulings))
	} else if undecided > 0 {
		report.Reason = fmt.Sprintf("%d of %d objects could not be decided: %s", undecided, len(rulings), report.Reason)
	}
	slices.SortStableFunc(broken, func(a, b ruling) int { return cmp.Compare(b.severity, a.severity) }) // "safety" > "availability"
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	for i, r := range broken {
		if i == maxFindings {
			report.More = len(broken) - i
			break
		}
		f := explain(ctx, in.Names, o.witness, r, judge)
		if r.open != "" {
			f.Summary += " That is at least a matter of availability; whether it is one of safety too could not be decided."
		}
		report.Findings = append(report.Findings, f)
	}
	return report
}
