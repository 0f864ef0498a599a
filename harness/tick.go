package harness

import (
	"context"
	"maps"
	"slices"
	"time"

	"fencepost.dev/load"
	"fencepost.dev/reports"
)

// tickEvery is how often a person is told where the run stands.
const tickEvery = 200 * time.Millisecond

// phase says what the run is doing besides load.
func (c *coordinator) phase(doing string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doing = doing
}

// tick tells where the run stands until ctx ends; wait returns when it has stopped.
func (c *coordinator) tick(ctx context.Context) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(tickEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				c.Progress(c.standing())
			}
		}
	}()
	return func() { <-done }
}

// standing is where the run stands. It gives each change of faults once.
func (c *coordinator) standing() reports.Tick {
	now := c.clock.Now()
	c.mu.Lock()
	doing, inForce, changes := c.doing, slices.Sorted(maps.Values(c.inForce)), c.changes
	c.changes = nil
	c.mu.Unlock()
	// Reports come a bin late: the last whole second of what is known by now.
	until := now - 2*int64(load.Bin)
	recent := c.tally.Total(until-int64(time.Second), until)
	total := c.tally.Total(0, load.All)
	return reports.Tick{
		At: time.Duration(max(now-c.start, 0)), Total: c.scenario.Load.Length(), Doing: doing,
		Rate: float64(recent.Operations()), P50: recent.Quantile(.5), P99: recent.Quantile(.99),
		Count: total.Operations(), Errors: total.Errors(), Faults: inForce, Changes: changes,
	}
}
