package models

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"fencepost.dev/history"
)

// porcupineMost is how many operations an object may have for Porcupine to decide it where the Limit names no engine. It
// remembers a bit for each operation in each state that it has tried, so its memory and time grow with the square: 4,000
// operations take it some 3 MiB at the least, a million a hundred gigabytes. Up to there it is the one that others know and
// trust.
const porcupineMost = 4000

// decision is what an engine says of one partition.
type decision struct {
	verdict Verdict // Pass: it linearizes; Violation: it does not
	reason  string  // why it is inconclusive
	// failedAt, if not 0, is an instant by which the operations answered until then already can't be linearized: where the
	// search for a small witness begins.
	failedAt int64
	// missed: the stream engine accepted what Porcupine rejects, as its relaxation of a timed spec may.
	missed bool
	// disagree: the engines differ where they must not.
	disagree bool
	// starved: it is inconclusive for want of memory.
	starved bool
}

func undecided(format string, args ...any) decision {
	return decision{verdict: Inconclusive, reason: fmt.Sprintf(format, args...)}
}

// starved is undecided for want of memory.
func starved(format string, args ...any) decision {
	d := undecided(format, args...)
	d.starved = true
	return d
}

// budget is what deciding one partition may cost. Time is the context's.
type budget struct {
	memory int64 // bytes
}

// decide asks the engine whether the operations of one object, sorted by Call, linearize. Those with the Optional flag may be
// left out. Refusals that are to be excused are not among them.
func decide[S comparable](ctx context.Context, engine Engine, spec Spec[S], ops []history.Operation, b budget) decision {
	if ctx.Err() != nil {
		return undecided("%s", outOfTime(ctx))
	}
	switch engine {
	case EngineStream:
		return decideStream(ctx, spec, ops, b)
	case EnginePorcupine:
		return decidePorcupine(ctx, spec, ops, b)
	case EngineBoth:
		likeness := same
		if spec.Timed && spec.Dominates != nil {
			likeness = eitherMayMiss
		} else if spec.Timed {
			likeness = streamMayMiss
		}
		return reconcile(likeness, decideStream(ctx, spec, ops, b), decidePorcupine(ctx, spec, ops, b))
	case "":
		if len(ops) <= porcupineMost {
			first, cancel := halfOf(ctx)
			d := decidePorcupine(first, spec, ops, b)
			cancel()
			if d.verdict != Inconclusive || ctx.Err() != nil {
				return d
			}
		}
		return decideStream(ctx, spec, ops, b)
	}
	return undecided("there is no engine called %q: use %s, %s or %s", engine, EngineStream, EnginePorcupine, EngineBoth)
}

// halfOf gives half of the time that is left: what the first engine of two may use up.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// likeness says how alike the two engines' answers must be.
type likeness uint8

const (
	same likeness = iota
	// streamMayMiss: of a timed spec the stream engine decides a relaxation.
	streamMayMiss
	// eitherMayMiss: besides, the state over-approximates what can be the case, so that tighter intervals tell more. Porcupine
	// takes each operation's as it is recorded; the stream engine also knows that others of its class returned earlier.
	eitherMayMiss
)

// reconcile compares the two engines' answers (docs/semantics.md). A violation that one may miss is one. Every other
// difference is an error in one of the engines.
func reconcile(l likeness, stream, porcupine decision) decision {
	switch {
	case porcupine.verdict == Inconclusive && stream.verdict == Inconclusive:
		d := undecided("stream: %s; porcupine: %s", stream.reason, porcupine.reason)
		d.starved = stream.starved || porcupine.starved
		return d
	case porcupine.verdict == Inconclusive:
		return stream
	case stream.verdict == Inconclusive:
		return porcupine
	case stream.verdict == porcupine.verdict:
		return stream
	case l != same && porcupine.verdict == Violation:
		porcupine.missed = true
		return porcupine
	case l == eitherMayMiss && stream.verdict == Violation:
		return stream
	}
	d := undecided("the engines disagree, which is an error in Fencepost: stream says %s, porcupine says %s", stream.verdict, porcupine.verdict)
	d.disagree = true
	return d
}

func (l Limit) time() time.Duration {
	if l.Time > 0 {
		return l.Time
	}
	return time.Minute
}

func (l Limit) memory() int64 {
	if l.Memory > 0 {
		return l.Memory
	}
	return 1 << 30
}

func (l Limit) parallel() int {
	if l.Parallel > 0 {
		return l.Parallel
	}
	return runtime.GOMAXPROCS(0)
}

// crashed says that a part of ours panicked.
func crashed(p any) string {
	return fmt.Sprintf("the check crashed, which is an error in Fencepost: %v", p)
}
