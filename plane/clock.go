package plane

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Clock tells a run's time: nanoseconds since the run's epoch on the coordinator's monotonic clock. It is never skewed, and
// safe for concurrent use.
//
// A process that provably shares the coordinator's clock (see Identity) only adds a constant, found by reading the raw clock
// beside Go's. Any other measures its offset over the plane, as Cristian's algorithm does (Distributed Computing 3, 1989): a
// probe sent at a and answered at b, both by this process's clock, with the coordinator's time t taken in between, proves
// that the offset was in [t-b, t-a]. While it ages, that interval widens by the drift that two clocks can have. Successive
// intervals are intersected, Keep goes on probing, and Now follows the middle by bending its rate, so that it never runs
// backwards.
//
// Error holds for every time that the process has told so far, not only for the next: it never shrinks, and before an offset
// is revised it takes in how wrong the old one can have been at its oldest. So the one number that a recorded process has
// covers all its operations.
type Clock struct {
	base time.Time // this process's own zero
	same bool

	// line is how Now turns time since base into the run's. It is replaced whole.
	line atomic.Pointer[line]

	mu    sync.Mutex // guards what follows
	known interval   // where the offset was as of known.at
	worst int64      // the greatest error of any time told so far
	share ClockShare
}

const (
	// sameError bounds the error of a shared clock: two readings of the raw clock, each bracketed by a few hundred ns.
	sameError = int64(2 * time.Microsecond)
	// drift is how much faster one machine's monotonic clock may run than another's: each may be slewed by 500 ppm, which is
	// as far as the kernel's own discipline goes.
	drift = 0.001
	// maxBend is how much Now may run faster or slower than the process's clock while it follows a revised offset.
	maxBend = 0.01

	probeSubject = "clock.probe"
	firstProbes  = 32
	keepProbes   = 4
	probeEvery   = 250 * time.Millisecond
	probeTimeout = 5 * time.Second

	bracketTries  = 64
	bracketEnough = 800 // ns either way: about a system call
)

// ClockShare is what another process needs to join a run's clock.
type ClockShare struct {
	Identity
	// Epoch is the raw CLOCK_MONOTONIC at the run's epoch, in ns. It means something only to those of equal Identity.
	Epoch int64 `json:"epoch"`
	// Width is how uncertain Epoch is, either way, in ns.
	Width int64 `json:"width"`
}

// Identity names a monotonic clock. Two processes with the same one, not empty, read the same clock: the boot id tells the
// running kernel, and the inode of the time namespace tells whose view of its clock. Containers share both unless they were
// given a time namespace of their own; virtual machines don't, except clones of one snapshot, which is why JoinClock does not
// believe it without a look.
type Identity struct {
	Boot      string `json:"boot"`      // /proc/sys/kernel/random/boot_id; empty where it can't be known
	Namespace uint64 `json:"namespace"` // inode of /proc/self/ns/time; 0 on kernels without time namespaces
}

// Shares says whether both provably name the same clock.
func (i Identity) Shares(other Identity) bool { return i.Boot != "" && i == other }

// line is Now = t + offset + bend·(t-from), with the bend ending at until; t is ns since base.
type line struct {
	from, until int64
	offset      int64
	bend        float64
}

func (l *line) offsetAt(t int64) int64 {
	if l.bend == 0 {
		return l.offset
	}
	return l.offset + int64(l.bend*float64(min(t, l.until)-l.from))
}

// NewClock is the coordinator's clock: its epoch is now, its error 0.
func NewClock() *Clock {
	base, raw, width := bracket()
	c := &Clock{base: base, same: true}
	c.line.Store(&line{})
	c.share = ClockShare{Identity: identity(), Epoch: raw, Width: width}
	return c
}

// Share is what other processes join by.
func (c *Clock) Share() ClockShare { return c.share }

// Now is the time since the run's epoch, in ns.
func (c *Clock) Now() int64 {
	for {
		l := c.line.Load()
		t := c.own()
		// Read again if the line was replaced meanwhile: t belongs to the line that was in force when it was read.
		if c.line.Load() == l {
			return t + l.offsetAt(t)
		}
	}
}

// own is this process's own monotonic clock, in ns since base.
func (c *Clock) own() int64 { return int64(time.Since(c.base)) }

// Same says whether the process provably reads the coordinator's own clock.
func (c *Clock) Same() bool { return c.same }

// Error bounds, in ns, how far any time that Now has told so far is from the coordinator's clock, either way. Take it when
// the last operation is recorded.
func (c *Clock) Error() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.same {
		c.foldIn(c.own())
	}
	return c.worst
}

// JoinClock joins the clock that share tells of: by its identity if that is provably this process's own, else by probing
// over conn, which the coordinator answers (Serve). With a conn an equal identity is looked at too, since clones of one
// virtual machine carry the same. conn may be nil where the identity is known to be equal.
func JoinClock(ctx context.Context, share ClockShare, conn *Conn) (*Clock, error) {
	return joinClock(ctx, share, conn, identity())
}

func joinClock(ctx context.Context, share ClockShare, conn *Conn, self Identity) (*Clock, error) {
	base, raw, width := bracket()
	c := &Clock{base: base, share: share}
	if self.Shares(share.Identity) {
		c.same = true
		c.worst = max(sameError, width+share.Width)
		c.line.Store(&line{offset: raw - share.Epoch})
		if conn == nil {
			return c, nil
		}
	} else if conn == nil {
		return nil, fmt.Errorf("plane: joining the run's clock: it is another machine's (or another time namespace's), and there is no connection to measure it over")
	}
	if c.same {
		offset := c.line.Load().offset
		seen, err := c.probe(ctx, conn, keepProbes)
		if err != nil {
			return nil, fmt.Errorf("plane: looking at the run's clock: %w", err)
		}
		if offset >= seen.lo-c.worst && offset <= seen.hi+c.worst {
			return c, nil
		}
		c.same, c.worst = false, 0 // the same name, and another clock
	}
	seen, err := c.probe(ctx, conn, firstProbes)
	if err != nil {
		return nil, fmt.Errorf("plane: measuring the run's clock: %w", err)
	}
	c.known = seen
	c.line.Store(&line{offset: seen.middle()})
	return c, nil
}

// bracket reads Go's clock between two readings of the raw monotonic one: at base the raw clock showed raw, give or take
// width. It keeps the narrowest of several tries, as any of them can be interrupted.
func bracket() (base time.Time, raw, width int64) {
	for i := range bracketTries {
		before := rawMonotonic()
		at := time.Now()
		after := rawMonotonic()
		if w := (after - before + 1) / 2; i == 0 || w < width {
			base, raw, width = at, before+(after-before)/2, w
		}
		if i >= 8 && width < bracketEnough {
			break
		}
	}
	return base, raw, width
}
