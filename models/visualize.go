package models

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/anishathalye/porcupine"

	"fencepost.dev/history"
)

// maxVisualized bounds how many operations Porcupine's page shows: its script lays out every one of them, and finding the
// partial linearizations that it shows takes memory with their square.
const maxVisualized = 300

// Visualize writes Porcupine's own page about the linearizability of one key, as HTML. Of a long history it shows the
// operations around the violation, or the first ones if there is none.
func Visualize(ctx context.Context, in *Input, key string, w io.Writer) error {
	switch in.Primitive {
	case "lock", "lease":
		return visualize(ctx, in, lockObject(in), key, w)
	}
	return fmt.Errorf("models: there is no specification of a %s to visualize", in.Primitive)
}

func visualize[S comparable](ctx context.Context, in *Input, o object[S], key string, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, in.Limit.time())
	defer cancel()
	list := partitions(in, o)
	i := slices.IndexFunc(list, func(p partition) bool { return in.Names.Key(p.key) == key })
	if i < 0 {
		return fmt.Errorf("models: nothing happened to a key called %q", key)
	}
	b := budget{memory: in.Limit.memory()}
	judge := func(ctx context.Context, ops []history.Operation) decision {
		return decide(ctx, in.Limit.Engine, o.spec, ops, b)
	}
	r := ruled(ctx, list[i], o, judge)
	ops := r.ops
	if r.verdict == Violation {
		ops = around(ctx, o.witness, r, judge)
	} else if len(ops) > maxVisualized {
		ops = ops[:maxVisualized]
	}
	s := newSearch(ctx, o.spec, ops, b)
	model := s.model()
	_, info := porcupine.CheckOperationsVerbose(model, s.page(in.Names), 0)
	if s.gaveUp != "" {
		return fmt.Errorf("models: visualizing %s: %s", key, s.gaveUp)
	}
	s.ctx, s.memory = context.Background(), never // the page replays what was found
	if err := porcupine.Visualize(model, info, w); err != nil {
		return fmt.Errorf("models: visualizing %s: %w", key, err)
	}
	return nil
}

// around is the shortest failing prefix, or of a long one as many of its last units as still fail and fit.
func around(ctx context.Context, t teller, r ruling, judge judge) []history.Operation {
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	q := &questions{ctx: ctx, judge: judge, left: explainSteps}
	prefix, _ := shortestPrefix(r.failing, r.failedAt, q)
	units := t.units(prefix)
	kept, from := 0, len(units)
	for from > 0 && kept+len(units[from-1]) <= maxVisualized {
		from--
		kept += len(units[from])
	}
	shown := slices.Concat(units[from:]...)
	slices.SortStableFunc(shown, byCall)
	if from > 0 && !q.fails(shown) {
		return t.shrink(r.severity, prefix, q)
	}
	return shown
}

// page gives the operations a lane each client; expiries have one of their own.
func (s *search[S]) page(names *history.Names) []porcupine.Operation {
	list := s.operations()
	lanes := map[string]int{}
	for i := range s.ops {
		lane := "expiries"
		if op := &s.ops[i]; op.Flags&history.Synthetic == 0 {
			lane = names.ClientName(op)
			list[i].Metadata = lane
		}
		if _, known := lanes[lane]; !known {
			lanes[lane] = len(lanes)
		}
		list[i].ClientId = lanes[lane]
	}
	return list
}
