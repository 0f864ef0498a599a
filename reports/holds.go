package reports

import (
	"math"
	"sort"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

// hold is one grant, as it was and as its client believed it to be.
type hold struct {
	Grant  int64
	Client string
	TTL    int64 // of the grant or its last extension, ns; 0: it has none
	Token  int64
	Asked  int64 // for the grant
	From   int64 // granted
	Until  int64 // released, or its time was over: it can't be in force later
	// Believed is when its client gave it up, knew that it had lost it, or did the last thing under it that is recorded.
	Believed int64
	Expired  bool  // its time was over; else it was released
	Soonest  int64 // when its time can have been over at the earliest
	// Open: it is not known to have ended within the tale.
	Open bool
}

// holds reads the grants off the tale's operations.
func (t *tale) holds() {
	byGrant := map[int64]*hold{}
	var order []int64
	for i := range t.Steps {
		op := t.Steps[i].Op
		g := op.Fields["grant"]
		if op.Kind == history.Acquire.String() && op.Outcome == history.OK.String() && g != 0 && byGrant[g] == nil {
			byGrant[g] = &hold{
				Grant: g, Client: cleanName(op.Client), TTL: op.Fields["ttl_ns"], Token: op.Fields["token"],
				Asked: op.Call, From: op.Return, Until: math.MaxInt64, Believed: op.Return,
			}
			order = append(order, g)
		}
	}
	for i := range t.Steps {
		if h := byGrant[t.Steps[i].Op.Fields["grant"]]; h != nil && t.Steps[i].Op.Kind == history.Extend.String() {
			h.TTL = max(h.TTL, t.Steps[i].Op.Fields["ttl_ns"])
		}
	}
	for _, g := range order {
		t.settle(byGrant[g])
		t.Holds = append(t.Holds, *byGrant[g])
	}
	sort.SliceStable(t.Holds, func(i, j int) bool { return t.Holds[i].From < t.Holds[j].From })
	t.makeWay()
}

// early is how much of its time a grant may lack at its end, as its store's clock has it: a part in so many. It is twice the
// drift that the checks assume, since nothing is decided here.
const early = 500

// makeWay has what expired be over when the next was granted, if it can have been. Until is the latest that it can be; that
// another was granted the object before shows that it was over by then. A grant that came too early for that clashes.
func (t *tale) makeWay() {
	for i := range t.Holds {
		h := &t.Holds[i]
		for j := range t.Holds {
			next := &t.Holds[j]
			if h.Expired && next.From > h.From && next.From < h.Until && next.From >= h.Soonest {
				h.Until = next.From
			}
		}
	}
	for i := range t.Steps { // those of the witness are told as late as they can be, too
		s := &t.Steps[i]
		if s.Op == nil || !s.Op.Synthetic {
			continue
		}
		for j := range t.Holds {
			if next := &t.Holds[j]; next.Grant != s.Op.Fields["grant"] && next.From >= s.Op.Call && next.From < s.At {
				s.At = next.From
			}
		}
	}
}

// settle finds when a hold ended, and when its client thought so.
func (t *tale) settle(h *hold) {
	renewed, asked, ended := h.From, h.Asked, int64(math.MaxInt64)
	gaveUp := int64(math.MaxInt64)
	for i := range t.Steps {
		s := &t.Steps[i]
		op := s.Op
		if op.Fields["grant"] != h.Grant || op.Synthetic {
			continue
		}
		ok := op.Outcome == history.OK.String()
		switch op.Kind {
		case history.Extend.String():
			if ok && op.Call-renewed <= h.TTL { // one that came later can't have revived what was over
				renewed, asked = max(renewed, op.Return), max(asked, op.Call)
			} else if ok {
				h.Believed = max(h.Believed, op.Return)
			} else if op.Outcome == history.Refused.String() {
				gaveUp = min(gaveUp, op.Return)
			}
		case history.Release.String():
			gaveUp = min(gaveUp, op.Call)
			if ok {
				ended = min(ended, op.Return)
			}
		case history.Lost.String():
			gaveUp = min(gaveUp, op.Call)
		default:
			h.Believed = max(h.Believed, s.At)
			if s.Asked != nil && answered(s.Asked) {
				h.Believed = max(h.Believed, s.Asked.Return)
			}
		}
	}
	if h.TTL > 0 && h.TTL < models.Unbounded-renewed {
		h.Until, h.Expired = renewed+h.TTL, true
		h.Soonest = asked + h.TTL - h.TTL/early
	}
	if ended < h.Until {
		h.Until, h.Expired = ended, false
	}
	if gaveUp != math.MaxInt64 {
		h.Believed = gaveUp
	} else {
		h.Believed = max(h.Believed, min(h.Until, t.To))
	}
	h.Open = h.Until == math.MaxInt64
}

func (t *tale) holdOf(grant int64) *hold {
	for i := range t.Holds {
		if t.Holds[i].Grant == grant {
			return &t.Holds[i]
		}
	}
	return nil
}
