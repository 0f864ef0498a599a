package faults

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fencepost.dev/history"
)

// trapPatience is how long a caught client stays at its point (see Traps.Arm): a fault that comes later missed it.
const trapPatience = time.Second

// catch is a client caught at its point, until it is let go.
type catch struct {
	Sprung
	now     func() int64
	once    sync.Once
	waiting bool // when it was let go: it was still there
}

// arm waits for a client to spring the line's trap; nil if none did before ctx ended.
func (p *player) arm(ctx context.Context) (*catch, error) {
	var workers []string // any
	if onWorkers(p.line.On) && p.line.On != "worker" {
		targets, err := p.env.Directory.Resolve(ctx, p.line.On)
		if err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("finding the target of %s: %w", p.fault.Name, err)
		}
		for _, target := range targets {
			workers = append(workers, target.Name())
		}
	}
	sprung, err := p.env.Traps.Arm(ctx, p.line.When, workers)
	if err != nil {
		if ctx.Err() != nil {
			p.log.Info("nobody sprang the trap", "point", p.line.When)
			return nil, nil
		}
		return nil, fmt.Errorf("waiting for a client at %q: %w", p.line.When, err)
	}
	return &catch{Sprung: sprung, now: p.env.Now}, nil
}

// left is for how long the client will still wait.
func (c *catch) left() time.Duration {
	return max(0, trapPatience-time.Duration(c.now()-c.At))
}

// release lets the client go, the first time it is called, and reports whether the fault caught it: it was still waiting.
func (c *catch) release() bool {
	c.once.Do(func() {
		inTime := c.left() > 0
		c.waiting = c.Release() && inTime
	})
	return c.waiting
}

// missed records that the caught client goes on without the fault. It does nothing if no client was caught.
func (p *player) missed(caught *catch) error {
	if caught == nil {
		return nil
	}
	caught.release()
	p.log.Warn("trap missed: the fault was not in force within a second", "point", p.line.When, "client", caught.Client)
	_, err := p.emit(history.Event{
		Kind: history.EventTrapMissed, At: p.env.Now(), Fault: p.fault.Name,
		Target: caught.Worker, Process: caught.Process, Node: -1,
		Point: p.line.When, Client: caught.Client, Grant: caught.Grant,
	})
	return err
}
