package models

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"fencepost.dev/history"
)

// CheckRecord is the check "linearizable" by the stream engine over a recorded run that need not fit in memory: it reads the
// operations once, by Call, and keeps only what is in flight (of a subject that renews itself, all). Where an object fails it
// reads them once more, to explain: then the operations of at most maxFindings objects up to their failures must fit. Give
// o.End if it is known, since it bounds what a process that died left open.
func CheckRecord(ctx context.Context, r *history.Reader, o PrepareOptions) (Report, error) {
	started := time.Now()
	events, err := r.Events()
	if err != nil {
		return Report{}, err
	}
	in, err := Prepare(&history.History{Names: *r.Names(), Events: events}, o)
	if err != nil {
		return Report{}, err
	}
	in.End = cmp.Or(o.End, never)
	var report Report
	switch in.Primitive {
	case "lock", "lease":
		report, err = checkRecord(ctx, r, in, lockObject(in), func() derivation {
			if in.Contract.Renews == RenewsItself {
				return &whole[lockState]{object: lockObject(in)}
			}
			return newLockDerivation(newLockExpiry(in))
		})
	default:
		report = Report{Verdict: Inconclusive, Reason: fmt.Sprintf("there is no specification of a %s", in.Primitive)}
	}
	report.Check, report.Elapsed = Linearizable, time.Since(started)
	return report, err
}

// batchLength is how many operations go to a worker at once: 4 MB. It decides them object by object, so with a thousand objects
// each is turned to once for some hundred operations, and not for each: what the engine keeps of an object, up to some hundred
// kilobytes, then stays in the processor's cache meanwhile.
const batchLength = 1 << 16

func checkRecord[S comparable](ctx context.Context, r *history.Reader, in *Input, o object[S], derive func() derivation) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, in.Limit.time())
	defer cancel()
	shards, err := pass(ctx, r, in, o, derive, nil)
	if err != nil {
		return Report{}, err
	}
	if failed := brokenKeys(shards); len(failed) > 0 && !o.spurious && o.spec.Relax != nil {
		// Those that fail may fail with their refusals relaxed too, at another place: that is worse, and what is told.
		excused, err := pass(ctx, r, in, o, derive, failed)
		if err != nil {
			return Report{}, err
		}
		for _, s := range excused {
			for key, w := range s.objects {
				if w.decision.verdict == Violation {
					shards[int(key)%len(shards)].objects[key].decision = w.decision
				}
			}
		}
	}
	return conclude(ctx, r, in, o, shards)
}

func brokenKeys[S comparable](shards []*shard[S]) map[uint32]bool {
	keys := map[uint32]bool{}
	for _, s := range shards {
		for key, w := range s.objects {
			if w.decision.verdict == Violation {
				keys[key] = true
			}
		}
	}
	return keys
}

// pass decides all objects once, strict, or those of only with their refusals relaxed, in parallel.
func pass[S comparable](ctx context.Context, r *history.Reader, in *Input, o object[S], derive func() derivation, only map[uint32]bool) ([]*shard[S], error) {
	parallel := in.Limit.parallel()
	shards := make([]*shard[S], parallel)
	var working sync.WaitGroup
	spent := sync.Pool{New: func() any { return new([]history.Operation) }}
	for i := range shards {
		s := &shard[S]{
			ctx: ctx, object: o, derive: derive, memory: in.Limit.memory() / int64(2*parallel),
			relaxed: only != nil, in: make(chan *[]history.Operation, 1), spent: &spent, objects: map[uint32]*watched[S]{},
		}
		shards[i] = s
		working.Go(s.run)
	}
	batches := make([]*[]history.Operation, parallel)
	send := func(i int) {
		if batches[i] != nil {
			shards[i].in <- batches[i]
			batches[i] = nil
		}
	}
	read := 0
	err := prepareEach(r, in, func(op *history.Operation) bool {
		key := partitionOf(o.spec, op)
		if only != nil && !only[key] {
			return true
		}
		i := int(key) % parallel
		if batches[i] == nil {
			batches[i] = spent.Get().(*[]history.Operation)
			*batches[i] = (*batches[i])[:0]
		}
		*batches[i] = append(*batches[i], *op)
		if len(*batches[i]) == batchLength {
			send(i)
		}
		if read++; read%(1<<16) == 0 && in.Limit.Progress != nil {
			in.Limit.Progress(read)
		}
		return ctx.Err() == nil
	})
	for i := range shards {
		send(i)
		close(shards[i].in)
	}
	working.Wait()
	return shards, err
}

func partitionOf[S comparable](spec Spec[S], op *history.Operation) uint32 {
	if spec.Partition == nil {
		return op.Key
	}
	return spec.Partition(op)
}

// prepareEach yields the operations as Prepare makes them, by their widened Call.
func prepareEach(r *history.Reader, in *Input, yield func(*history.Operation) bool) error {
	bounds := newBounds(in)
	var most int64 // the largest clock error: by so much may a widened Call be out of order
	for _, w := range r.Names().Workers {
		most = max(most, w.ClockError)
	}
	var late queue[history.Operation]
	var turn history.Operation // whose turn it is
	for op, err := range r.All() {
		if err != nil {
			return err
		}
		read := op.Call
		if int(op.Worker) >= len(in.Names.Workers) {
			in.Names = r.Names()
			bounds.names = in.Names
		}
		if err := bounds.prepare(&op); err != nil {
			return err
		}
		late.push(op.Call, op)
		for late.before(plus(read, -most)) {
			if _, turn = late.pop(); !yield(&turn) {
				return nil
			}
		}
	}
	for late.before(never) {
		if _, turn = late.pop(); !yield(&turn) {
			return nil
		}
	}
	return nil
}

// shard decides some of the objects, in a goroutine of its own.
type shard[S comparable] struct {
	ctx     context.Context
	object  object[S]
	derive  func() derivation
	memory  int64
	relaxed bool
	in      chan *[]history.Operation
	spent   *sync.Pool
	objects map[uint32]*watched[S]
	crash   string

	turns     []turn[S]
	following []int32 // of each operation of a batch: the place of the next of its object
}

// turn is an object's part of a batch.
type turn[S comparable] struct {
	object      *watched[S]
	first, last int32
}

func (s *shard[S]) run() {
	defer func() {
		if p := recover(); p != nil {
			s.crash = crashed(p)
		}
		for range s.in { // let the reader go on
		}
	}()
	for batch := range s.in {
		s.decide(*batch)
		s.spent.Put(batch)
	}
	for _, w := range s.objects {
		w.finish(s.ctx)
	}
}

// decide adds a batch to the objects, one object after the other.
func (s *shard[S]) decide(batch []history.Operation) {
	s.turns = s.turns[:0]
	s.following = slices.Grow(s.following[:0], len(batch))[:len(batch)]
	for i := range batch {
		key := partitionOf(s.object.spec, &batch[i])
		w := s.objects[key]
		if w == nil {
			w = newWatched(s.ctx, s.object, s.derive(), budget{s.memory}, !s.relaxed, s.relaxed)
			s.objects[key] = w
		}
		at := int32(i)
		if w.turn < len(s.turns) && s.turns[w.turn].object == w {
			s.following[s.turns[w.turn].last] = at
			s.turns[w.turn].last = at
			continue
		}
		w.turn = len(s.turns)
		s.turns = append(s.turns, turn[S]{w, at, at})
	}
	for _, t := range s.turns {
		at := t.first
		for ; at != t.last; at = s.following[at] {
			t.object.add(&batch[at])
		}
		t.object.add(&batch[at])
	}
}

// watched is an object that is decided while its operations come: strict, or with its refusals relaxed, or both (see rule).
type watched[S comparable] struct {
	object          object[S]
	derivation      derivation
	strict, relaxed *stream[S] // nil: not asked
	to              func(*history.Operation)
	key             uint32
	recorded        int
	decision        decision
	turn            int // its index in shard.turns, if it has one there
}

func newWatched[S comparable](ctx context.Context, o object[S], d derivation, b budget, strict, relaxed bool) *watched[S] {
	w := &watched[S]{object: o, derivation: d}
	if strict && !o.spurious {
		w.strict = newStream(ctx, o.spec, b)
	}
	if o.spurious || relaxed && o.spec.Relax != nil {
		w.relaxed = newStream(ctx, o.spec, b)
	}
	w.to = func(op *history.Operation) {
		if w.strict != nil {
			w.strict.feed(op)
		}
		if w.relaxed != nil && (o.spec.Relax == nil || !o.spec.Relax(op)) {
			w.relaxed.feed(op)
		}
	}
	return w
}

// add takes the next operation, by Call.
func (w *watched[S]) add(op *history.Operation) {
	w.key = op.Key
	if w.object.takesPart(op) {
		w.recorded++
	}
	if !w.decided() {
		w.derivation.add(op, w.to)
	}
}

// decided: nothing that comes can change or worsen the decision.
func (w *watched[S]) decided() bool {
	return (w.strict == nil || w.strict.decided) && (w.relaxed == nil || w.relaxed.decided)
}

// advance promises that no operation will be added that was called before t.
func (w *watched[S]) advance(t int64) {
	if w.decided() {
		return
	}
	w.derivation.advance(t, w.to)
	if w.strict != nil {
		w.strict.advance(t)
	}
	if w.relaxed != nil {
		w.relaxed.advance(t)
	}
}

// broken is the violation that is certain by now: the worse one, if there are two.
func (w *watched[S]) broken() (decision, bool) {
	for _, s := range []*stream[S]{w.relaxed, w.strict} {
		if s != nil && s.decided && s.decision.verdict == Violation {
			return s.decision, true
		}
	}
	return decision{}, false
}

// finish decides when all operations have been added, or when there was no time to.
func (w *watched[S]) finish(ctx context.Context) {
	if ctx.Err() == nil {
		w.advance(never)
	}
	var whole decision
	switch {
	case ctx.Err() != nil:
		whole = undecided("%s", outOfTime(ctx))
	case w.strict != nil:
		whole = w.strict.finish()
	default:
		whole = w.relaxed.finish()
	}
	var found bool
	if w.decision, found = w.broken(); !found {
		w.decision = whole
	}
}

// conclude reports of all objects. Those that failed are read again and explained.
func conclude[S comparable](ctx context.Context, r *history.Reader, in *Input, o object[S], shards []*shard[S]) (Report, error) {
	var report Report
	var failed []*watched[S]
	objects, undecided := 0, 0
	for _, s := range shards {
		if s.crash != "" {
			report.Verdict, report.Reason = max(report.Verdict, Inconclusive), s.crash
		}
		for _, w := range s.objects {
			if s.crash != "" { // a violation that was certain before stays one; nothing else is decided
				d, broken := w.broken()
				if !broken {
					continue
				}
				w.decision = d
			}
			if w.recorded == 0 {
				continue
			}
			objects++
			switch w.decision.verdict {
			case Violation:
				failed = append(failed, w)
			case Inconclusive:
				undecided++
				report.Verdict, report.Reason = max(report.Verdict, Inconclusive), w.decision.reason
			}
			if w.decision.verdict != Inconclusive {
				report.Decided += w.recorded
			}
		}
	}
	if undecided > 0 {
		report.Reason = fmt.Sprintf("%d of %d objects could not be decided: %s", undecided, objects, report.Reason)
	}
	if len(failed) == 0 {
		return report, nil
	}
	slices.SortFunc(failed, func(a, b *watched[S]) int { return cmp.Compare(a.decision.failedAt, b.decision.failedAt) })
	until := map[uint32]int64{}
	for _, w := range failed[:min(len(failed), maxFindings)] {
		until[w.key] = w.decision.failedAt
	}
	again := *in
	again.Operations = nil
	again.Limit.Engine = EngineStream
	err := prepareEach(r, in, func(op *history.Operation) bool {
		if at, known := until[op.Key]; known && op.Call <= at {
			again.Operations = append(again.Operations, *op)
		}
		return true
	})
	if err != nil {
		return report, err
	}
	again.Names = r.Names() // with all keys, now that all have been read
	found := linearize(context.WithoutCancel(ctx), &again, o)
	report.Verdict, report.Findings, report.SeverityOpen = Violation, found.Findings, found.SeverityOpen
	report.More = len(failed) - len(found.Findings)
	return report, nil
}
