package models

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fencepost.dev/history"
)

// reportEvery is how often the workers of a run report.
const reportEvery = 100 * msec

// follows gives a watch a history as a run would, report after report, and says in which one it was certain of a violation.
func follows(t rapid.TB, h *history.History, contract Contract, least Severity) (at int64, broken bool) {
	t.Helper()
	w, err := NewWatch(context.Background(), &history.History{Names: h.Names}, PrepareOptions{
		Primitive: "lock", Contract: contract, Drift: simDrift, Granularity: time.Duration(simGranularity),
	}, least)
	if err != nil {
		t.Fatal(err)
	}
	var first, last int64
	for i := range h.Operations {
		first = min(first, h.Operations[i].Call)
		last = max(last, h.Operations[i].Call, h.Operations[i].Return)
	}
	for now := first; now <= last+10e9; now += reportEvery {
		open := now
		for i := range h.Operations {
			op := &h.Operations[i]
			switch answered := max(op.Call, op.Return); {
			case op.Call < now && answered >= now:
				open = min(open, op.Call)
			case answered < now && answered >= now-reportEvery:
				w.Add(*op)
			}
		}
		if _, _, broken := w.Advance(open, now); broken {
			return now, true
		}
		if err := w.GaveUp(); err != nil {
			t.Fatal(err)
		}
	}
	return 0, false
}

// lockAt is an operation of client c of the first process on key 1.
func lockAt(kind history.Kind, c uint16, outcome history.Outcome, call, ret int64) history.Operation {
	op := history.Operation{Key: 1, Client: c, Kind: kind, Outcome: outcome, Call: call * msec, Return: ret * msec, Commit: history.Completed}
	op.SetGrant(history.GrantID(c) + 1)
	if kind == history.Acquire {
		op.SetTTL(10 * time.Second)
	}
	return op
}

// A violation is told of within a second after every operation that is concurrent with it was answered or became unknown, and
// not before that.
func TestWatchTellsWithinASecond(t *testing.T) {
	first := lockAt(history.Acquire, 1, history.OK, 100, 110)
	second := lockAt(history.Acquire, 2, history.OK, 1000, 1010) // while the first holds
	for _, c := range []struct {
		name          string
		ops           []history.Operation
		least         Severity
		after, before int64 // ms; 0: never
	}{
		{"nothing else is open", nil, Availability, 1010, 2010},
		{"and it is a matter of safety", nil, Safety, 1010, 2010},
		{"a release that began before is open", []history.Operation{lockAt(history.Release, 1, history.Refused, 900, 5000)}, Availability, 5000, 6000},
		{"which explains it", []history.Operation{lockAt(history.Release, 1, history.OK, 900, 5000)}, Availability, 0, 0},
		{"one began before and became unknown", []history.Operation{lockAt(history.Acquire, 3, history.Unknown, 900, 5000)}, Availability, 5000, 6000},
		{"one that may explain it became unknown", []history.Operation{lockAt(history.Release, 1, history.Unknown, 900, 5000)}, Availability, 0, 0},
		{"one began later", []history.Operation{lockAt(history.Acquire, 3, history.Refused, 1300, 9000)}, Availability, 1010, 2010},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &history.History{Operations: append([]history.Operation{first, second}, c.ops...)}
			h.Names = history.Names{Keys: []string{"", "k"}, Workers: []history.Process{{Worker: "w1", Incarnation: 1}}}
			at, broken := follows(t, h, Contract{}, c.least)
			if broken != (c.before != 0) || broken && (at < c.after*msec || at > c.before*msec) {
				t.Errorf("broken: %v, at %d ms; want it after %d and before %d", broken, at/msec, c.after, c.before)
			}
		})
	}
}

// An unknown operation excuses what it can, until it can do nothing any more.
func TestWatchWaitsForBounds(t *testing.T) {
	// It may have been granted, and its grant would have ended by 1.7 s: nobody holds the lock at 5 s.
	lost := lockAt(history.Acquire, 1, history.Unknown, 100, 500)
	lost.SetTTL(200 * time.Millisecond)
	busy := lockAt(history.Acquire, 2, history.Refused, 5000, 5010)
	h := &history.History{Operations: []history.Operation{lost, busy, lockAt(history.Acquire, 2, history.Refused, 5100, 5110)}}
	h.Names = history.Names{Keys: []string{"", "k"}, Workers: []history.Process{{Worker: "w1", Incarnation: 1}}}
	if at, broken := follows(t, h, Contract{}, Availability); !broken || at > 6010*msec {
		t.Errorf("broken: %v, at %d ms", broken, at/msec)
	}
	if _, broken := follows(t, h, Contract{}, Safety); broken {
		t.Error("a refusal is told of as a matter of safety")
	}
	if _, broken := follows(t, h, Contract{RequestBound: Unbounded}, Availability); broken {
		t.Error("it is accused although nobody knows what the lost request may still do")
	}
}

// The same for simulated runs in which all is answered: as soon as what is open can't change it, and never otherwise.
func TestWatchIsPrompt(t *testing.T) {
	histories(t, 2_000)
	seen := 0
	rapid.Check(t, func(t *rapid.T) {
		h, contract := simulateLock(t, 4)
		contract.Renews, contract.Refusals = RenewsClient, Exact
		mutate(t, h.Operations)
		for i := range h.Operations {
			if op := &h.Operations[i]; op.Outcome == history.Unknown || op.Return < op.Call {
				return
			}
		}
		in := simInput(t, h, contract)
		o := lockObject(in)
		for _, p := range partitions(in, o) {
			d := decideStream(context.Background(), o.spec, p.ops, testBudget)
			at, broken := follows(t, h, contract, Availability)
			if broken != (d.verdict == Violation) {
				t.Fatalf("broken: %v; the record is %s\n%s", broken, d.verdict, dump(in))
			}
			if !broken {
				continue
			}
			seen++
			due := d.failedAt
			for i := range p.ops {
				if op := &p.ops[i]; op.Flags&history.Synthetic == 0 && op.Call <= due {
					due = max(due, op.Return)
				}
			}
			if at > due+1e9 {
				t.Fatalf("told at %d ms, due at %d ms\n%s", at/msec, due/msec, dump(in))
			}
		}
	})
	if !testing.Short() && seen < 20 {
		t.Errorf("only %d violations", seen)
	}
}
