package faults

import (
	"context"
	"math/rand/v2"
	"sync"
)

// claims keeps faults off targets that have one already.
type claims struct {
	mu    sync.Mutex
	held  map[string]bool // by Target.Name
	freed chan struct{}   // closed, and replaced, when a target is given back
}

func newClaims() *claims {
	return &claims{held: make(map[string]bool), freed: make(chan struct{})}
}

// take claims one of the targets, at random among those that are alive and free. If all that live are taken it waits for
// one. It gives nil if none lives (living is false then) or ctx ends first.
func (c *claims) take(ctx context.Context, targets []Target, random *rand.Rand) (taken Target, living bool) {
	for {
		c.mu.Lock()
		var free []Target
		living = false
		for _, target := range targets {
			// One with a fault in force may be dead for now only.
			if c.held[target.Name()] {
				living = true
			} else if alive(target) {
				living = true
				free = append(free, target)
			}
		}
		if len(free) > 0 && ctx.Err() == nil {
			taken = free[random.IntN(len(free))]
			c.held[taken.Name()] = true
		}
		freed := c.freed
		c.mu.Unlock()
		if taken != nil || !living {
			return taken, living
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, true
		}
	}
}

// free gives a target back.
func (c *claims) free(target Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, target.Name())
	close(c.freed)
	c.freed = make(chan struct{})
}

func alive(target Target) bool {
	mortal, ok := target.(Mortal)
	return !ok || mortal.Alive()
}
