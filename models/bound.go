package models

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"fencepost.dev/history"
)

// Grace is how long after the last hindrance on its path an abandoned request can still take effect, apart from injected
// delays and from what TCP waits before it sends again.
const Grace = int64(1e9)

// bounds knows when the requests that clients gave up can no longer take effect (docs/semantics.md, on unknown outcomes).
//
// A request outlives its client in the buffers along its path, from one client process to one store node. Whatever hinders
// that path keeps it there: a cut or slow link, a node that is stopped, a silence that nothing explains. So its time runs from
// the latest of
//
//   - the closing of its connection: when the client gave up, or its process died;
//   - that node answering again;
//   - the end of the last fault that touched the path;
//
// and is Grace plus the largest delay that was injected plus the length of the longest cut (after a cut of length d, TCP may
// wait for another d before it sends again). A hindrance counts if it began before the time was over, so a row of them moves
// the bound on and on. One that never ended leaves no bound.
type bounds struct {
	names  *history.Names
	stated int64 // Contract.RequestBound
	end    int64
	died   map[uint16]int64 // when a process was seen to have ended
	// hindrances by from.
	hindrances []hindrance
}

// hindrance is a stretch of time in which requests on some paths may be kept back.
type hindrance struct {
	event history.Event
	from  int64
	to    int64 // never: it was not undone
	delay int64 // the most that it adds
	cut   int64 // for how long nothing came through
}

// momentary faults are over at once, or end what was under way. What they take away (a killed node) comes back with an event
// of its own.
var momentary = []string{"kill", "restart", "failover", "reset", "evict", "flush", "script-flush", "connection-kill"}

// harmless faults keep no request back.
var harmless = []string{"skew", "drift", "clock", "evict", "flush", "script-flush"}

func newBounds(in *Input) *bounds {
	b := &bounds{names: in.Names, stated: in.Contract.RequestBound, end: in.End, died: map[uint16]int64{}}
	for _, e := range in.Events {
		switch e.Kind {
		case history.EventWorkerDied:
			if e.Process >= 0 {
				b.died[uint16(e.Process)] = e.At
			}
		case history.EventNodeAnswering:
			b.hindrances = append(b.hindrances, silence(e, in.Events))
		case history.EventPathHealed:
			b.hindrances = append(b.hindrances, hindrance{e, plus(e.At, -int64(e.Delay)), e.At, 0, int64(e.Delay)})
		case history.EventFault:
			if h, ok := hinders(e); ok {
				b.hindrances = append(b.hindrances, h)
			}
		}
	}
	slices.SortStableFunc(b.hindrances, func(x, y hindrance) int { return cmp.Compare(x.from, y.from) })
	return b
}

// silence is the time in which a node may not have answered. One that no fault on the node explains may have been a link's.
func silence(e history.Event, events []history.Event) hindrance {
	h := hindrance{event: e, from: plus(e.At, -int64(e.Delay)), to: e.At}
	if e.Delay == 0 { // for how long is not known
		h.from = math.MinInt64
	}
	explained := slices.ContainsFunc(events, func(f history.Event) bool {
		return f.Kind == history.EventFault && f.Target == e.Target && f.At <= h.to && (f.End == 0 || f.End >= h.from)
	})
	if !explained {
		h.cut = int64(e.Delay)
	}
	return h
}

func hinders(e history.Event) (hindrance, bool) {
	onWorker := e.Process >= 0 && e.Node < 0
	if slices.Contains(harmless, e.Fault) || onWorker && (e.Fault == "kill" || e.Fault == "restart") {
		return hindrance{}, false // a dead process hinders nothing: its connections are closed
	}
	h := hindrance{event: e, from: e.At, to: e.End, delay: int64(e.Delay)}
	if h.to == 0 {
		h.to = never
		if slices.Contains(momentary, e.Fault) {
			h.to = e.At
		}
	}
	// A stopped process's kernel still takes what comes; only a link makes TCP send again.
	if e.Fault != "pause" && e.Delay == 0 && h.to != never {
		h.cut = h.to - h.from
	}
	return h, true
}

// of is the latest instant at which an unknown operation can take effect.
func (b *bounds) of(op *history.Operation) int64 { return b.after(op, op.Node, b.closed(op)) }

// after is the latest instant at which a request of op's process to the node can take effect, if it was sent at op.Call or
// later and its connection was closed at closed.
func (b *bounds) after(op *history.Operation, node uint16, closed int64) int64 {
	if b.stated != 0 {
		return plus(closed, b.stated)
	}
	last, bound := closed, plus(closed, Grace)
	var delay, cut int64
	// By from: once one begins too late, all do.
	for _, h := range b.hindrances {
		if h.from > bound {
			break
		}
		// What a cut held back before the call may still be queued before this request.
		if plus(plus(h.to, h.delay), h.cut) < op.Call || !b.touches(h.event, op.Worker, node) {
			continue
		}
		last, delay, cut = max(last, h.to), max(delay, h.delay), max(cut, h.cut)
		bound = plus(plus(plus(last, Grace), delay), cut)
	}
	return bound
}

// closed is when the operation's connection was given up: by the client when it stopped waiting, else by the kernel when the
// process died. An operation of a process that lived is still open when the record ends.
func (b *bounds) closed(op *history.Operation) int64 {
	if op.Commit != history.Invoked {
		return max(op.Return, op.Call)
	}
	if died, dead := b.died[op.Worker]; dead {
		return max(died, op.Call)
	}
	return max(op.Return, op.Call, b.end)
}

// touches reports whether an event concerns the path from a process to a node. What can't be told does.
func (b *bounds) touches(e history.Event, process, node uint16) bool {
	asked := node == history.NoNode || e.Node < 0 || int(node) == e.Node
	worker := b.names.Workers[process].Worker
	if from, to, path := strings.Cut(e.Target, ">"); path {
		named := b.workerOf(from) + b.workerOf(to)
		return asked && (named == "" || named == worker)
	}
	if e.Process >= 0 && e.Process < len(b.names.Workers) {
		return b.names.Workers[e.Process].Worker == worker
	}
	return asked
}

// workerOf is the worker that one end of a path names, or "" if it is a store.
func (b *bounds) workerOf(end string) string {
	for _, p := range b.names.Workers {
		if end == p.Worker || end == p.String() {
			return p.Worker
		}
	}
	return ""
}
