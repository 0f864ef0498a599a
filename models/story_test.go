package models

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"fencepost.dev/history"
)

// A told history is written a line an operation, times in milliseconds:
//
//	w1/c0 acquire k 0..1 ok A ttl=100 token=3    client, operation, key, interval, outcome, grant, fields
//	= w1/c0 write k 30 ok A token=3 base=1       the resource's own record of an attempt, in its order
//	! pause w1 10..20                            a confirmed fault; "10.." was never undone
//	! died w1 15                                 also: answering valkey/0 15, healed w1>valkey/0 15 delay=5
//	! stall w1 10..20                            also: clock - 10..20 delay=5
//	clock w1 0.5                                 the clock error of a process
//
// A second incarnation of w1 is w1.2. An interval "10..?" has no answer. A time-to-live is 100 ms if it isn't said.
type toldHistory struct {
	*history.History
	grants   map[string]history.GrantID
	sequence map[uint32]int64
	extended map[history.GrantID]int64
}

func tell(t testing.TB, text string) *history.History {
	t.Helper()
	h := &toldHistory{
		History: &history.History{Names: history.Names{Keys: []string{""}, Errors: []string{""}}},
		grants:  map[string]history.GrantID{}, sequence: map[uint32]int64{}, extended: map[history.GrantID]int64{},
	}
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if err := h.line(fields); err != nil {
			t.Fatalf("the story's line %q: %v", line, err)
		}
	}
	return h.History
}

func (h *toldHistory) line(f []string) error {
	switch f[0] {
	case "clock":
		e, err := ms(f[2])
		h.Names.Workers[h.process(f[1])].ClockError = e
		return err
	case "!":
		return h.event(f[1:])
	case "=":
		op, err := h.operation(f[1:])
		h.sequence[op.Key]++
		op.SetSequence(h.sequence[op.Key])
		h.Resource = append(h.Resource, op)
		return err
	}
	op, err := h.operation(f)
	h.Operations = append(h.Operations, op)
	return err
}

func (h *toldHistory) process(name string) uint16 {
	for i, p := range h.Names.Workers {
		if p.String() == name {
			return uint16(i)
		}
	}
	worker, incarnation, _ := strings.Cut(name, ".")
	n, _ := strconv.Atoi(incarnation)
	h.Names.Workers = append(h.Names.Workers, history.Process{Worker: worker, Incarnation: max(n, 1)})
	return uint16(len(h.Names.Workers) - 1)
}

func (h *toldHistory) key(name string) uint32 {
	for i, k := range h.Names.Keys {
		if k == name {
			return uint32(i)
		}
	}
	h.Names.Keys = append(h.Names.Keys, name)
	return uint32(len(h.Names.Keys) - 1)
}

func (h *toldHistory) operation(f []string) (history.Operation, error) {
	op := history.Operation{Commit: history.Completed}
	if len(f) < 5 {
		return op, fmt.Errorf("too short")
	}
	worker, client, _ := strings.Cut(f[0], "/c")
	n, err := strconv.Atoi(client)
	if err != nil {
		return op, err
	}
	op.Worker, op.Client = h.process(worker), uint16(n)
	for _, primitive := range []string{"lock", "resource"} {
		if kind, err := history.ParseKind(primitive, f[1]); err == nil {
			op.Kind = kind
		}
	}
	if op.Kind == 0 {
		return op, fmt.Errorf("no operation is called %q", f[1])
	}
	op.Key = h.key(f[2])
	if op.Call, op.Return, err = interval(f[3]); err != nil {
		return op, err
	}
	if strings.HasSuffix(f[3], "?") {
		op.Commit, op.Return = history.Invoked, 0
	}
	if op.Outcome, err = history.ParseOutcome(f[4]); err != nil {
		return op, err
	}
	if op.Kind == history.Acquire || op.Kind == history.Extend {
		op.SetTTL(100 * time.Millisecond)
	}
	for _, field := range f[5:] {
		name, value, valued := strings.Cut(field, "=")
		if !valued {
			op.SetGrant(h.grant(field, op.Worker, op.Client))
			continue
		}
		v, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return op, err
		}
		switch name {
		case "token":
			op.SetToken(v)
		case "ttl":
			op.SetTTL(time.Duration(v) * time.Millisecond)
		case "validity":
			op.SetValidity(time.Duration(v) * time.Millisecond)
		case "base", "version":
			op.SetVersion(v)
		case "node":
			op.Node = uint16(v)
		case "value":
			op.A = v
		default:
			return op, fmt.Errorf("no field is called %q", name)
		}
	}
	if op.Kind == history.Extend {
		h.extended[op.Grant()]++
		op.SetGeneration(h.extended[op.Grant()])
	}
	return op, nil
}

func (h *toldHistory) grant(name string, process, client uint16) history.GrantID {
	if h.grants[name] == 0 {
		h.grants[name] = history.NewGrantID(process, client, uint32(len(h.grants)+1))
	}
	return h.grants[name]
}

func (h *toldHistory) event(f []string) error {
	e := history.Event{ID: len(h.Events) + 1, Kind: history.EventFault, Fault: f[0], Target: f[1], Process: -1, Node: -1, Confirmed: true}
	var err error
	if e.At, e.End, err = interval(f[2]); err != nil {
		return err
	}
	if !strings.Contains(f[2], "..") || strings.HasSuffix(f[2], "..") {
		e.End = 0
	}
	_, node, onNode := strings.Cut(f[1], "/")
	switch {
	case onNode:
		if e.Node, err = strconv.Atoi(node); err != nil {
			return err
		}
	case f[1] != "-":
		e.Process = int(h.process(f[1]))
	}
	for _, field := range f[3:] {
		if value, ok := strings.CutPrefix(field, "delay="); ok {
			d, err := ms(value)
			if err != nil {
				return err
			}
			e.Delay = time.Duration(d)
		}
	}
	kinds := map[string]history.EventKind{
		"died": history.EventWorkerDied, "answering": history.EventNodeAnswering, "healed": history.EventPathHealed,
		"stall": history.EventStall, "clock": history.EventStall, "missed": history.EventTrapMissed,
	}
	if kind, other := kinds[f[0]]; other {
		e.Kind, e.Confirmed = kind, false
		if f[0] != "clock" {
			e.Fault = ""
		}
	}
	h.Events = append(h.Events, e)
	return nil
}

func interval(text string) (from, to int64, err error) {
	a, b, two := strings.Cut(text, "..")
	if from, err = ms(a); err != nil {
		return 0, 0, err
	}
	if !two || b == "" || b == "?" {
		return from, from, nil
	}
	to, err = ms(b)
	return from, to, err
}

func ms(text string) (int64, error) {
	v, err := strconv.ParseFloat(text, 64)
	return int64(v * 1e6), err
}

// prepared is a told history as checks see it: with a time-to-live of 100 ms, an expiry comes from 98 ms after the call to
// 102 ms after the answer.
func prepared(t testing.TB, text string, o PrepareOptions) *Input {
	t.Helper()
	if o.Primitive == "" {
		o.Primitive = "lock"
	}
	o.Drift, o.Granularity = 0.01, time.Millisecond
	if o.Limit.Parallel == 0 {
		o.Limit.Parallel = 1
	}
	in, err := Prepare(tell(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return in
}
