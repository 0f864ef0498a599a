package models

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fencepost.dev/history"
)

// Expiries that are derived as operations come are those derived from all of them, and come in order.
func TestDerivedOnTheWay(t *testing.T) {
	histories(t, 5_000)
	rapid.Check(t, func(t *rapid.T) {
		h, contract := simulateLock(t, 6)
		contract.Renews = RenewsClient
		in := simInput(t, h, contract)
		want := partitions(in, lockObject(in))
		if len(want) == 0 {
			return
		}
		var got []history.Operation
		to := func(op *history.Operation) { got = append(got, *op) }
		d := newLockDerivation(newLockExpiry(in))
		for i := range in.Operations {
			d.add(&in.Operations[i], to)
		}
		d.advance(never, to)
		if !slices.IsSortedFunc(got, byCall) {
			t.Fatalf("out of order: %+v", got)
		}
		count := map[history.Operation]int{}
		for _, op := range got {
			count[op]++
		}
		for _, op := range want[0].ops {
			count[op]--
		}
		for op, n := range count {
			if n != 0 {
				t.Fatalf("%+d of %+v", n, op)
			}
		}
	})
}

// A watch says of a simulated run, mutated or not, only what the whole record says, whenever it is asked.
func TestWatchSaysOnlyWhatTheRecordSays(t *testing.T) {
	histories(t, 3_000)
	seen, missed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		h, contract := simulateLock(t, 4)
		contract.Renews = RenewsClient
		mutate(t, h.Operations)
		for i := range h.Operations {
			if op := &h.Operations[i]; op.Return < op.Call && op.Outcome != history.Unknown {
				return
			}
		}
		in := simInput(t, h, contract)
		in.Limit.Engine = EngineStream
		want := linearizable.Run(context.Background(), in)
		w, err := NewWatch(context.Background(), &history.History{Names: h.Names}, PrepareOptions{
			Primitive: "lock", Contract: contract, Drift: simDrift, Granularity: in.Granularity,
		}, Availability)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range h.Events {
			w.Happened(e)
		}
		// What has been answered by an instant is added by then; nothing of what is open may be passed.
		ops := slices.Clone(h.Operations)
		answered := func(op *history.Operation) int64 { return max(op.Call, op.Return) }
		slices.SortStableFunc(ops, func(a, b history.Operation) int { return int(answered(&a) - answered(&b)) })
		broken := false
		for i := range ops {
			open := answered(&ops[i])
			for _, later := range ops[i+1:] {
				open = min(open, later.Call)
			}
			w.Add(ops[i])
			if _, _, b := w.Advance(open, open); b {
				broken = true
				break
			}
		}
		if !broken {
			_, _, broken = w.Advance(never, never)
		}
		switch {
		case broken && want.Verdict != Violation:
			t.Fatalf("the watch accuses what the record does not: %+v\n%s", contract, dump(in))
		case broken:
			seen++
		case want.Verdict == Violation:
			missed++
		}
	})
	t.Logf("seen %d, missed %d", seen, missed)
	if seen < missed {
		t.Errorf("the watch saw %d violations and missed %d", seen, missed)
	}
}
