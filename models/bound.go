package models

import (
	"cmp"
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
// that path keeps it there: a cut or slow link, a node that is stopped. So its time runs from the latest of
//
//   - the closing of its connection: when the client gave up, or its process died;
//   - that node answering again;
//   - the end of the last fault that touched the path;
//
// and is Grace plus the largest delay that was injected plus the length of the longest cut (after a cut of length d, TCP may
// wait for another d before it sends again). A fault counts if it began before the time was over, so a row of faults moves the
// bound on and on. One that never ended leaves no bound.
type bounds struct {
	names  *history.Names
	stated int64 // Contract.RequestBound
	end    int64
	died   map[uint16]int64 // when a process was seen to have ended
	// hindrances by At, and the answering of nodes by At.
	hindrances []hindrance
	answers    []history.Event
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
			b.answers = append(b.answers, e)
		case history.EventPathHealed:
			b.hindrances = append(b.hindrances, hindrance{e, plus(e.At, -int64(e.Delay)), e.At, 0, int64(e.Delay)})
		case history.EventFault:
			if h, ok := hinders(e); ok {
				b.hindrances = append(b.hindrances, h)
			}
		}
	}
	slices.SortStableFunc(b.hindrances, func(x, y hindrance) int { return cmp.Compare(x.from, y.from) })
	slices.SortStableFunc(b.answers, func(x, y history.Event) int { return cmp.Compare(x.At, y.At) })
	return b
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
func (b *bounds) of(op *history.Operation) int64 {
	closed := b.closed(op)
	if b.stated != 0 {
		return plus(closed, b.stated)
	}
	var (
		last       = closed
		delay, cut int64
		bound      = plus(last, Grace)
		widen      = func(to int64) {
			last = max(last, to)
			bound = plus(plus(plus(last, Grace), delay), cut)
		}
	)
	for _, h := range b.hindrances {
		if h.from > bound {
			break
		}
		// What a cut held back before the call may still be queued before this request.
		if plus(plus(h.to, h.delay), h.cut) < op.Call || !b.touches(h.event, op) {
			continue
		}
		if h.to == never {
			return never
		}
		delay, cut = max(delay, h.delay), max(cut, h.cut)
		widen(h.to)
		if at, ok := b.answering(op, h); ok {
			widen(at)
		}
	}
	// A node may also have gone silent by itself: what it left unanswered it may take up when it answers again.
	if at, ok := b.recovery(op, bound); ok {
		widen(at)
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

// answering is when the node that a hindrance kept from answering was seen to answer again.
func (b *bounds) answering(op *history.Operation, h hindrance) (int64, bool) {
	for _, e := range b.answers {
		if e.At >= h.to && b.asked(op, e.Node) {
			for _, later := range b.hindrances { // unless it is the end of a later one
				if later.from > h.to && later.from <= e.At && later.event.Node == e.Node {
					return 0, false
				}
			}
			return e.At, true
		}
	}
	return 0, false
}

// recovery is when the asked node answered again after a silence that no fault explains.
func (b *bounds) recovery(op *history.Operation, bound int64) (int64, bool) {
	for _, e := range b.answers {
		if e.At < op.Call || !b.asked(op, e.Node) {
			continue
		}
		for _, h := range b.hindrances {
			if h.event.Node == e.Node && h.from <= e.At && h.from > bound {
				return 0, false // of a fault that came when all was over
			}
		}
		return e.At, true
	}
	return 0, false
}

func (b *bounds) asked(op *history.Operation, node int) bool {
	return op.Node == history.NoNode || node < 0 || int(op.Node) == node
}

// touches reports whether an event concerns the path from the operation's process to its node. What can't be told does.
func (b *bounds) touches(e history.Event, op *history.Operation) bool {
	worker := b.names.Workers[op.Worker].Worker
	if from, to, path := strings.Cut(e.Target, ">"); path {
		if named := b.workerOf(from) + b.workerOf(to); named != "" && named != worker {
			return false
		}
		return b.asked(op, e.Node)
	}
	if e.Process >= 0 && e.Process < len(b.names.Workers) {
		return b.names.Workers[e.Process].Worker == worker
	}
	return b.asked(op, e.Node)
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

// longest bounds, for every path, how long a request without a client can still take effect.
func (b *bounds) longest() int64 {
	if b.stated != 0 {
		return b.stated
	}
	var delay, cut int64
	for _, h := range b.hindrances {
		if h.to == never {
			return never
		}
		delay, cut = max(delay, h.delay), max(cut, h.cut, h.to-h.from)
	}
	return plus(Grace, plus(delay, cut))
}
