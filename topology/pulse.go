package topology

import (
	"context"
	"sync"
	"time"
)

const (
	// probePatience is how long one PING may take. A question to a stopped process waits in its socket and is answered the
	// moment it runs again; one to an address where nobody listens fails at once and is asked again after probeSoon.
	probePatience = 250 * time.Millisecond
	probeSoon     = 15 * time.Millisecond
	// probeCalm is how often a node is asked that answers. An outage between two questions goes unnoticed. That is safe: what
	// rests on the reports (when a request that was given up can still be executed) allows a second beyond each.
	probeCalm = 100 * time.Millisecond
	// probeSlow is an answer so late that the node may have been away while it waited.
	probeSlow = 150 * time.Millisecond
)

// pulse follows whether a node answers. Whoever takes the node down says so, since that is sooner and surer than to find out.
type pulse struct {
	mu      sync.Mutex
	down    bool          // on purpose: asking is pointless
	epoch   int           // counts what was done to the node
	changed chan struct{} // closed at the next change; nil if nobody waits
}

// fell says that the node is about to be taken down, so that no answer counts from here on.
func (p *pulse) fell() { p.set(true) }

// rose says that the node runs again, or that it could not be taken down after all: whether it answers is to be asked.
func (p *pulse) rose() { p.set(false) }

func (p *pulse) set(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	p.epoch++
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

func (p *pulse) look() (down bool, epoch int, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.down, p.epoch, p.changed
}

// watch asks the node until ctx ends, and calls again each time it answers after it did not: when a question that was asked
// after the last sign of an outage has been answered. It tells for how long the node may not have answered: since the last
// question was asked that was answered in time.
func (p *pulse) watch(ctx context.Context, ping func(context.Context) error, again func(silence time.Duration)) {
	suspected, seen := false, 0
	good := time.Now()
	for ctx.Err() == nil {
		down, epoch, changed := p.look()
		if epoch != seen {
			suspected, seen = true, epoch
		}
		if down {
			await(ctx, changed, nil)
			continue
		}
		asked := time.Now()
		asking, cancel := context.WithTimeout(ctx, probePatience)
		err := ping(asking)
		cancel()
		late := time.Since(asked) > probeSlow
		if _, now, _ := p.look(); now != epoch || ctx.Err() != nil {
			continue // it was asked before what was done to the node since
		}
		wait := probeCalm
		switch {
		case err != nil:
			suspected, wait = true, probeSoon
		case suspected:
			suspected = false
			again(time.Since(good))
			good = asked
		case late:
			suspected, wait = true, 0 // a fresh question will tell
		default:
			good = asked
		}
		if wait > 0 {
			timer := time.NewTimer(wait)
			await(ctx, changed, timer.C)
			timer.Stop()
		}
	}
}

// await waits for a change, the timer (if any), or the end of ctx.
func await(ctx context.Context, changed <-chan struct{}, timer <-chan time.Time) {
	select {
	case <-changed:
	case <-timer:
	case <-ctx.Done():
	}
}
