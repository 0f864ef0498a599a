package models

import (
	"context"
	"fmt"

	"fencepost.dev/history"
)

// Watch is the check "linearizable" while a run goes: it is given operations as they are answered and says when a violation is
// certain. It may miss one that the whole record shows, since the bounds of unknown operations are not settled yet: it takes
// them to have none. It never says anything that the whole record does not say too. It is used by one goroutine at a time.
type Watch struct {
	add     func(*history.Operation)
	advance func(t int64) (key uint32, at int64, broken bool)

	names *history.Names
	// waiting are operations whose turn has not come.
	waiting queue[history.Operation]
	widest  int64
	reached int64
}

// NewWatch begins to watch a run: h has its names and no operations yet.
func NewWatch(ctx context.Context, h *history.History, o PrepareOptions) (*Watch, error) {
	in, err := Prepare(&history.History{Names: h.Names}, o)
	if err != nil {
		return nil, err
	}
	w := &Watch{names: &h.Names, reached: -never}
	switch in.Primitive {
	case "lock", "lease":
		if in.Contract.Renews == RenewsItself {
			return nil, fmt.Errorf("models: a %s that renews itself can't be decided while it runs: when its holds end is known afterwards only", in.Primitive)
		}
		x := newLockExpiry(in)
		watch(ctx, w, lockObject(in), in.Limit.memory(), func() derivation { return newLockDerivation(x) })
		return w, nil
	}
	return nil, fmt.Errorf("models: there is no specification of a %s", in.Primitive)
}

func watch[S comparable](ctx context.Context, w *Watch, o object[S], memory int64, derive func() derivation) {
	objects := map[uint32]*watched[S]{}
	w.add = func(op *history.Operation) {
		key := partitionOf(o.spec, op)
		if objects[key] == nil {
			objects[key] = newWatched(ctx, o, derive(), budget{memory}, true, false)
		}
		objects[key].add(op)
	}
	w.advance = func(t int64) (uint32, int64, bool) {
		for _, object := range objects {
			object.advance(t)
			if d, broken := object.broken(); broken {
				return object.key, d.failedAt, true
			}
		}
		return 0, 0, false
	}
}

// Add takes an operation as it was recorded, once its answer is known or its client has given up, in any order. Its process
// must be among the names.
func (w *Watch) Add(op history.Operation) {
	err := w.names.Workers[op.Worker].ClockError
	w.widest = max(w.widest, err)
	if op.Outcome == history.Unknown {
		op.Return = never
		op.Flags |= history.Optional
	}
	op.Call, op.Return = plus(op.Call, -err), plus(op.Return, err)
	w.waiting.push(op.Call, op)
}

// Advance promises that every operation that was called before t, in recorded time, has been added: t is the least, over all
// clients, of the Call of the operation that is open, or of the time of the report. It reports the first violation that is
// certain: the index of its key, and the instant of the answer that made it so.
func (w *Watch) Advance(t int64) (key uint32, at int64, broken bool) {
	for _, p := range w.names.Workers {
		w.widest = max(w.widest, p.ClockError)
	}
	t = plus(t, -w.widest)
	if t < w.reached {
		return 0, 0, false
	}
	w.reached = t
	for w.waiting.before(t) {
		_, op := w.waiting.pop()
		w.add(&op)
	}
	return w.advance(t)
}
