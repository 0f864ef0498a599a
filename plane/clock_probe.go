package plane

import (
	"context"
	"math"
	"time"
)

// interval is where the offset between the run's clock and time since base provably was, as of at (ns since base).
type interval struct {
	lo, hi int64
	at     int64
}

func (i interval) middle() int64 { return i.lo + (i.hi-i.lo)/2 }

// as is where the offset can be at t, given how far the clocks can have drifted apart since.
func (i interval) as(t int64) interval {
	d := int64(math.Ceil(drift * math.Abs(float64(t-i.at))))
	return interval{i.lo - d, i.hi + d, t}
}

// meet is what both allow, as of the later one. None means that a clock drifted by more than we believe possible, or stood
// still while its machine slept.
func (i interval) meet(j interval) (interval, bool) {
	at := max(i.at, j.at)
	i, j = i.as(at), j.as(at)
	m := interval{max(i.lo, j.lo), min(i.hi, j.hi), at}
	return m, m.lo <= m.hi
}

// from is how far an offset o can be from the true one.
func (i interval) from(o int64) int64 { return max(i.hi-o, o-i.lo, 0) }

// Serve answers the probes of processes that don't share the coordinator's clock.
func (c *Clock) Serve(conn *Conn) (cancel func(), err error) {
	return conn.Serve(probeSubject, func(context.Context, Message) (any, error) { return c.Now(), nil })
}

// Keep probes on through the run and follows what it learns, until ctx ends. On a shared clock there is nothing to do, and it
// returns at once. Probes that fail are left out: the error then grows with the age of the last.
func (c *Clock) Keep(ctx context.Context, conn *Conn) {
	if c.same {
		return
	}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if seen, err := c.probe(ctx, conn, keepProbes); err == nil {
				c.mu.Lock()
				c.revise(seen, c.own())
				c.mu.Unlock()
			}
		}
	}
}

// probe asks the coordinator's time n times and gives what all of the answers allow. Some may fail; all failing is an error.
func (c *Clock) probe(ctx context.Context, conn *Conn, n int) (interval, error) {
	var seen interval
	var failed error
	got := false
	for range n {
		one, err := c.probeOnce(ctx, conn)
		if err != nil {
			failed = err
			if ctx.Err() != nil || !conn.Connected() {
				break
			}
			continue
		}
		if both, ok := seen.meet(one); got && ok {
			seen = both
		} else {
			seen = one
		}
		got = true
	}
	if !got {
		return interval{}, failed
	}
	return seen, nil
}

func (c *Clock) probeOnce(ctx context.Context, conn *Conn) (interval, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var t int64
	sent := c.own()
	if err := conn.Request(ctx, probeSubject, nil, &t); err != nil {
		return interval{}, err
	}
	return measured(sent, t, c.own()), nil
}

// measured is what a probe proves that was sent and answered at these times of this process's clock, with the run's time t
// taken at some moment in between: the offset of that moment, and so, a little wider, the one when the answer came.
func measured(sent, t, answered int64) interval {
	d := int64(math.Ceil(drift * float64(answered-sent)))
	return interval{lo: t - answered - d, hi: t - sent + d, at: answered}
}

// revise takes in a new measurement: first what it says of the times told until now, then the offset from now on. mu is held.
func (c *Clock) revise(seen interval, now int64) {
	c.foldIn(now)
	known, ok := c.known.meet(seen)
	if !ok {
		// A clock was set or slept, at some moment since the last probe. Believe the new measurement, and admit that all that
		// was told since can have been as wrong as it says. (A sleep shorter than a round trip goes unseen: it fits in.)
		c.fold(seen, now)
		known = seen
	}
	c.known = known.as(now)
	old := c.line.Load()
	offset := old.offsetAt(now)
	// Reach the middle by about the next probe, without running backwards.
	way := float64(c.known.middle() - offset)
	span := max(float64(probeEvery), math.Abs(way)/maxBend)
	c.line.Store(&line{from: now, until: now + int64(span), offset: offset, bend: way / span})
}

// foldIn takes into the worst error that of the times told by the present line up to now. mu is held.
func (c *Clock) foldIn(now int64) { c.fold(c.known, now) }

// fold does so against where i says that the offset was. Line and interval have straight edges between their bends, so the
// greatest distance is at a bend or at an end.
func (c *Clock) fold(i interval, now int64) {
	l := c.line.Load()
	for _, t := range []int64{l.from, min(l.until, now), now} {
		if t >= l.from && t >= c.known.at {
			c.worst = max(c.worst, i.as(t).from(l.offsetAt(t)))
		}
	}
}
