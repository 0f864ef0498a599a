package models

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fencepost.dev/history"
)

// clockMoved is the Fault of an EventStall that tells of the real-time clock: it moved against the monotonic one, by Delay.
// Any other EventStall is a process that was not scheduled for so long.
const clockMoved = "clock"

// Temper makes those verdicts inconclusive that the machine or the record, and not the subject, may have caused. It gives new
// reports; those it was given stay as they are.
//
// A client that was not scheduled for a quarter of a time-to-live breaks what assumes that it acts promptly: a Prompt check
// on an unfenced resource. Only where the scenario expects it to pass; where it must or may fail, the stall is one more way
// to the same thing. A real-time clock that moved by more than drift and granularity allow for breaks whatever rests on an
// expiry: a pass of it too, since a store whose clock went back expired late, and what it then refused was rightly refused.
func Temper(in *Input, e Expectation, reports []Report) []Report {
	tempered := slices.Clone(reports)
	stall, ttl := longestStall(in), smallestTTL(in)
	moved := clockMovement(in, ttl)
	for i := range tempered {
		r := &tempered[i]
		check, _ := Find(r.Check)
		if r.Verdict == Pass && check.expires && moved > 0 {
			r.Verdict, r.Reason = Inconclusive, movedReason(moved)
		}
		if r.Verdict != Violation {
			continue
		}
		prompt := check.Prompt && !in.Fenced && !e.names(r.Check)
		switch {
		case in.Gap != "" && check.needsCalls:
			r.Verdict, r.Reason = Inconclusive, in.Gap+", so what looks wrong may rest on what is missing"
		case in.ResourceGap != "" && check.needsAttempts:
			r.Verdict, r.Reason = Inconclusive, in.ResourceGap+", so what looks wrong may rest on what is missing"
		case moved > 0 && (check.expires || prompt):
			r.Verdict, r.Reason = Inconclusive, movedReason(moved)
		case ttl > 0 && stall > ttl/4 && prompt:
			r.Verdict = Inconclusive
			r.Reason = fmt.Sprintf("a process was not scheduled for %s, more than a quarter of the shortest time-to-live (%s): what clients did late may be the machine's fault",
				stall.Round(time.Millisecond), ttl)
		}
	}
	return tempered
}

func movedReason(by time.Duration) string {
	return fmt.Sprintf("a real-time clock moved by %s during the run, and expiries went by it", by.Round(time.Microsecond))
}

// names reports whether a violation of the check is among what is expected or allowed.
func (e Expectation) names(check string) bool {
	if e.Loose {
		return !e.Pass
	}
	for _, list := range [][]string{e.Must, e.May} {
		for _, entry := range list {
			if name, _, _ := strings.Cut(entry, ":"); name == check {
				return true
			}
		}
	}
	return false
}

// longestStall is the longest that a process was not scheduled, what pauses on purpose took from it apart.
func longestStall(in *Input) time.Duration {
	var longest time.Duration
	for _, e := range in.Events {
		if e.Kind != history.EventStall || e.Fault == clockMoved {
			continue
		}
		end := max(e.End, plus(e.At, int64(e.Delay)))
		length := time.Duration(end - e.At)
		for _, fault := range underFaults(in.Events, e.Process) {
			if shared := min(end, fault.to) - max(e.At, fault.from); shared > 0 {
				length -= time.Duration(shared)
			}
		}
		longest = max(longest, length)
	}
	return longest
}

// underFaults gives the stretches of time in which faults were upon a process, apart from one another.
func underFaults(events []history.Event, process int) []stretch {
	var list []stretch
	for _, f := range events {
		if f.Kind != history.EventFault || f.Process != process || process < 0 {
			continue
		}
		until := f.End
		if until == 0 {
			until = never // not undone: nothing after it is the machine's doing
		}
		list = append(list, stretch{from: f.At, to: until})
	}
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	apart := list[:0]
	for _, s := range list {
		if last := len(apart) - 1; last >= 0 && s.from <= apart[last].to {
			apart[last].to = max(apart[last].to, s.to)
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

// clockMovement is the most that a real-time clock moved beyond what drift and granularity allow for, over the time that it
// took or one time-to-live; 0 if none did, or nothing expires.
func clockMovement(in *Input, ttl time.Duration) time.Duration {
	var most time.Duration
	for _, e := range in.Events {
		if e.Kind != history.EventStall || e.Fault != clockMoved || ttl == 0 {
			continue
		}
		moved := max(e.Delay, -e.Delay)
		took := max(ttl, time.Duration(e.End-e.At))
		if moved > time.Duration(float64(took)*in.Drift)+in.Granularity {
			most = max(most, moved)
		}
	}
	return most
}

// smallestTTL is the shortest time-to-live in play, or 0 if there is none.
func smallestTTL(in *Input) time.Duration {
	var least time.Duration
	for i := range in.Operations {
		op := &in.Operations[i]
		if op.Kind != history.Acquire && op.Kind != history.Extend {
			continue
		}
		if ttl := op.TTL(); ttl > 0 && (least == 0 || ttl < least) {
			least = ttl
		}
	}
	return least
}
