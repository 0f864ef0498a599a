package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/load"
	"fencepost.dev/plane"
	"fencepost.dev/reports"
)

// perform is the run proper: barrier, load with its faults, settling, final reads, collection.
func (c *coordinator) perform(ctx context.Context) error {
	c.start = c.clock.Now() + int64(startDelay)
	c.record.Start = c.start
	close(c.open)
	c.emit(history.Event{Kind: history.EventLoadStarted, At: c.start, Process: -1, Node: -1})

	// What must still be done when ctx has ended is done under working.
	working := context.WithoutCancel(ctx)
	background, stop := context.WithCancel(working)
	watched, ticked := c.watchStores(background), c.tick(background)
	// The witness is in this process: if it is late, a prompt client's write is.
	unstall, err := plane.StartStalls(c.clock, stallThreshold, func(s plane.Stall) { c.emitStall("coordinator", -1, stallOf(s)) })
	if err != nil {
		unstall = func() {}
		c.complain(err)
	}
	defer func() {
		stop()
		unstall()
		watched()
		ticked()
	}()

	end := c.start + int64(c.scenario.Load.Length())
	loading, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	if c.watcher != nil {
		c.watcher.start(stopLoad)
	}
	faultsErr := faults.Play(loading, c.scenario.Faults, faults.Env{
		Directory: c.directory(), Traps: c.traps, Journal: c.journal,
		Now: c.clock.Now, Emit: c.tell, LoadStart: c.start, LoadEnd: end, Rand: c.rand, Log: c.log,
	})
	c.awaitEnd(loading, end)
	if c.watcher != nil {
		c.watcher.end()
	}
	deadErr := c.deadNodes(working)
	if loading.Err() != nil {
		_ = c.hub.Conn().Publish(subjectStop, struct{}{}) // a worker that misses it stops at its own end of load
	}
	c.emit(history.Event{Kind: history.EventLoadEnded, At: c.clock.Now(), Process: -1, Node: -1})
	c.phase("settling")
	drainErr := c.awaitDrained(ctx)
	if ctx.Err() == nil {
		c.pause(ctx, c.scenario.Load.Settle)
		c.finalReads(ctx)
	}
	c.record.End = c.clock.Now()
	c.phase("collecting")
	finishErr := c.finish(working)
	if err := errors.Join(faultsErr, deadErr, drainErr, finishErr); err != nil {
		c.complain(err)
	}
	return c.collect(ctx)
}

// complain notes what went wrong after the load had begun: what was recorded is decided all the same, but proves no pass.
func (c *coordinator) complain(err error) {
	c.log.Error("the run did not go as planned", "error", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range strings.SplitSeq(err.Error(), "\n") {
		c.trouble = append(c.trouble, line)
	}
}

// awaitEnd waits until load is over by the clock, or nobody is left to make any.
func (c *coordinator) awaitEnd(ctx context.Context, end int64) {
	for c.clock.Now() < end && ctx.Err() == nil && len(c.crew.alive()) > 0 {
		c.pause(ctx, min(time.Duration(end-c.clock.Now()), 50*time.Millisecond))
	}
}

func (c *coordinator) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// finalReads has one worker look at how things ended up. A run without them has less evidence, not wrong evidence.
func (c *coordinator) finalReads(ctx context.Context) {
	alive := slices.DeleteFunc(c.crew.alive(), func(inc *incarnation) bool { return !inc.isDrained() || c.held(inc) })
	if len(alive) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	if err := c.hub.Conn().Request(ctx, finalSubject(alive[0].process), struct{}{}, nil); err != nil {
		c.log.Warn("final reads were not taken", "worker", alive[0].worker.name, "error", err)
	}
}

// collect brings the record to its final form.
func (c *coordinator) collect(ctx context.Context) error {
	if c.receiver != nil {
		if err := c.closeReceiver(); err != nil {
			c.complain(err)
		}
	}
	if err := c.closeResource(); err != nil {
		c.complain(err)
	}
	if err := history.Finish(c.Out); err != nil {
		c.complain(err)
	}
	if err := c.list(); err != nil {
		c.complain(err)
	}
	r := &c.record.Result
	r.Elapsed = time.Since(c.started).Seconds()
	r.CutShort = ctx.Err() != nil
	if c.watcher != nil {
		r.Stopped = c.watcher.result()
	}
	c.measure(r)
	c.describeWorkers(r)
	for store, up := range c.stores {
		r.Environment.Servers[store] = up.Version()
	}
	if err := c.writeLatencies(); err != nil {
		c.complain(err)
	}
	// A stall may still be noticed, and what run.json vouches for must not grow.
	if err := c.events.Close(); err != nil {
		c.complain(err)
	}
	c.mu.Lock()
	c.record.Trouble = c.trouble
	c.mu.Unlock()
	c.record.Complete = ctx.Err() == nil
	return c.record.write(c.Out)
}

// list notes which records there are.
func (c *coordinator) list() error {
	reader, err := history.Open(c.Out)
	if err != nil {
		return err
	}
	c.record.Sources = reader.Sources()
	return reader.Close()
}

func (c *coordinator) writeLatencies() error {
	f, err := os.Create(filepath.Join(c.Out, latencyFile))
	if err != nil {
		return fmt.Errorf("writing %s: %w", latencyFile, reason(err))
	}
	return errors.Join(c.tally.Write(f, c.epoch), f.Close())
}

// measure puts what the load came to into the result. Rates are of turns; operations and latencies are of the subject and
// the resource, by kind.
func (c *coordinator) measure(r *reports.Result) {
	total := c.tally.Total(0, load.All)
	r.Load = reports.Load{Operations: total.Operations(), Errors: total.Errors(), Latency: map[string]reports.Latency{}}
	var turns int64
	for _, inc := range c.crew.incarnations() {
		inc.mu.Lock()
		turns += inc.turns
		r.Load.Unstarted += inc.unstarted
		inc.mu.Unlock()
	}
	r.Load.Arrivals = turns + r.Load.Unstarted
	length := c.scenario.Load.Length().Seconds()
	if r.Stopped != nil {
		length = min(length, time.Duration(r.Stopped.At-c.start).Seconds())
	}
	if length > 0 {
		r.Load.Achieved = float64(turns) / length
		r.Load.Offered = r.Load.Achieved
		if !c.scenario.Load.Closed {
			r.Load.Offered = load.MeanRate(stagesOf(c.scenario.Load))
		}
	}
	for kind, s := range c.tally.Summarize(0, load.All) {
		us := func(d time.Duration) float64 { return float64(d) / 1e3 }
		r.Load.Latency[kind] = reports.Latency{
			P50: us(s.Quantile(.50)), P90: us(s.Quantile(.90)), P99: us(s.Quantile(.99)), P999: us(s.Quantile(.999)),
			Max: us(s.Max()), Count: s.Operations(),
		}
	}
}

// describeWorkers puts the incarnations into the record and the result.
func (c *coordinator) describeWorkers(r *reports.Result) {
	c.record.Workers = nil
	r.Environment.Workers = nil
	for _, inc := range c.crew.incarnations() {
		inc.mu.Lock()
		w := reports.Worker{Name: inc.worker.name, Incarnation: inc.number, Machine: inc.worker.agent.Hostname, ClockError: inc.clockError, Died: inc.died}
		if inc.readySaid != nil {
			w.SameClock = inc.readySaid.SameClock
		}
		inc.mu.Unlock()
		c.record.Workers = append(c.record.Workers, history.Process{Worker: w.Name, Incarnation: w.Incarnation, ClockError: w.ClockError})
		r.Environment.Workers = append(r.Environment.Workers, w)
	}
}
