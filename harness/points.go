package harness

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/workloads"
)

// trapPatience is how long a client waits at a point for the fault it has called for. The coordinator lets it go on then; by
// itself it goes on a little later, so that the two agree on whether it was still waiting unless the answer takes longer.
const (
	trapPatience = time.Second
	trapGrace    = 200 * time.Millisecond
)

// points are the places at which clients of this worker can be caught. Unless something is armed, passing one costs an
// atomic load.
type points struct {
	worker  string
	process uint16
	now     func() int64
	// announce tells the coordinator; where the client waits it returns when the coordinator lets it go on.
	announce func(ctx context.Context, s sprung) error

	armed atomic.Bool
	mu    sync.Mutex
	traps []trap

	announcing sync.WaitGroup // announcements that no client waits for
}

// arm sets a trap, if it is meant for this worker.
func (p *points) arm(t trap) {
	if len(t.Workers) > 0 && !slices.Contains(t.Workers, p.worker) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.traps, func(known trap) bool { return known.ID == t.ID }) {
		return // told at the barrier and by the way
	}
	p.traps = append(p.traps, t)
	p.armed.Store(true)
}

// disarm takes a trap away.
func (p *points) disarm(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = slices.DeleteFunc(p.traps, func(t trap) bool { return t.ID == id })
	p.armed.Store(len(p.traps) > 0)
}

// take removes the trap armed for the point, so that one client springs it.
func (p *points) take(point string) (trap, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.traps, func(t trap) bool { return t.Point == point })
	if i < 0 {
		return trap{}, false
	}
	t := p.traps[i]
	p.traps = slices.Delete(p.traps, i, i+1)
	p.armed.Store(len(p.traps) > 0)
	return t, true
}

// pass is a client at a point.
func (p *points) pass(ctx context.Context, point string, client uint16, grant history.GrantID) {
	if !p.armed.Load() {
		return
	}
	t, mine := p.take(point)
	if !mine {
		return
	}
	s := sprung{Trap: t.ID, Process: p.process, Client: client, Grant: grant, At: p.now(), Waits: point != workloads.RequestInFlight}
	ctx, cancel := context.WithTimeout(ctx, trapPatience+trapGrace)
	if !s.Waits {
		p.announcing.Go(func() {
			defer cancel()
			_ = p.announce(ctx, s) // a lost announcement is a missed trap: the coordinator counts it
		})
		return
	}
	defer cancel()
	_ = p.announce(ctx, s)
}

// clientKey carries the client through the subject's calls, so that a point inside a subject knows who is there.
type clientKey struct{}

func withClient(ctx context.Context, c *workloads.Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// atPoint is the workload's Point.
func (p *points) atPoint(ctx context.Context, c *workloads.Client, point string) {
	p.pass(ctx, point, c.Number, c.Grant)
}

// atSubjectPoint is the subject's Point.
func (p *points) atSubjectPoint(ctx context.Context, point string) {
	var client uint16
	var grant history.GrantID
	if c, ok := ctx.Value(clientKey{}).(*workloads.Client); ok {
		client, grant = c.Number, c.Grant
	}
	p.pass(ctx, point, client, grant)
}
