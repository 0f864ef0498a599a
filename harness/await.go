package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"fencepost.dev/process"
)

const (
	lookEvery = 5 * time.Millisecond
	// tellAfter is how long a wait goes on before a person is told for whom.
	tellAfter = time.Second
	// tellMost is how many names such a line holds.
	tellMost = 3
)

// awaitDrained waits until the turns that load began have ended.
func (c *coordinator) awaitDrained(ctx context.Context) error {
	patience := drainPatience
	if c.workload.Leftover != nil {
		patience += c.workload.Leftover(c.scenario.Workload.Parameters)
	}
	busy := c.await(context.WithoutCancel(ctx), patience, (*incarnation).isDrained)
	if len(busy) == 0 {
		return nil
	}
	return fmt.Errorf("turns of %s did not end within %s of the load", strings.Join(namesOf(busy), ", "), patience)
}

// finish has the workers close their histories and end.
func (c *coordinator) finish(ctx context.Context) error {
	if err := c.hub.Conn().Publish(subjectFinish, struct{}{}); err != nil {
		return err
	}
	left := c.await(ctx, finishPatience, (*incarnation).ended)
	err := endAll(ctx, left)
	c.crew.watching.Wait()
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("%s did not end within %s and were killed", strings.Join(namesOf(left), ", "), finishPatience))
	}
	return err
}

// await waits until each worker that lives has done what is waited for, at most for patience, and gives those that have not.
// Its phase says for whom it waits. A worker that somebody else has stopped does nothing however long one waits: that is told
// when it is seen, and if nobody has set it going within stopPatience it is killed, so that what it recorded can be read.
func (c *coordinator) await(ctx context.Context, patience time.Duration, done func(*incarnation) bool) (left []*incarnation) {
	c.mu.Lock()
	phase := c.doing
	c.mu.Unlock()
	defer c.phase(phase)
	stopped := map[*incarnation]time.Time{} // since when
	begun, nextTold := time.Now(), time.Now().Add(tellAfter)
	for ; ; c.pause(ctx, lookEvery) {
		left = slices.DeleteFunc(c.crew.alive(), done)
		now := time.Now()
		if len(left) == 0 || now.Sub(begun) > patience {
			return left
		}
		if now.Before(nextTold) {
			continue
		}
		nextTold = now.Add(tellAfter)
		c.phase(fmt.Sprintf("%s: %s (≤ %s)", phase, fewNames(left), patience))
		if err := c.endStopped(ctx, left, stopped); err != nil {
			c.complain(err)
		}
	}
}

// endStopped tells of workers that somebody else has stopped, and kills those that have been for stopPatience.
func (c *coordinator) endStopped(ctx context.Context, left []*incarnation, since map[*incarnation]time.Time) error {
	var late []*incarnation
	for _, inc := range left {
		first, known := since[inc]
		switch {
		case !c.held(inc):
			delete(since, inc)
		case !known:
			since[inc] = time.Now()
			c.complain(fmt.Errorf("worker %s (process %d) is stopped, and no fault of ours stopped it; kill -CONT %d within %s lets it end",
				inc.worker.name, inc.handle.PID, inc.handle.PID, stopPatience))
			c.Notice(fmt.Sprintf("worker %s is stopped by somebody else: kill -CONT %d lets it end; in %s it is killed", inc.worker.name, inc.handle.PID, stopPatience))
		case time.Since(first) >= stopPatience:
			late = append(late, inc)
		}
	}
	return endAll(ctx, late)
}

// held says whether a worker of this machine is stopped, and no fault of ours is in force on it.
func (c *coordinator) held(inc *incarnation) bool {
	return c.Remote == 0 && process.Stopped(inc.handle.PID) && !c.faulted(inc.worker.name)
}

// endAll kills workers, on purpose, and returns when their ends have been noted.
func endAll(ctx context.Context, list []*incarnation) error {
	var ending errgroup.Group
	for _, inc := range list {
		ending.Go(func() error { return inc.end(ctx) })
	}
	return ending.Wait()
}

func namesOf(list []*incarnation) []string {
	var names []string
	for _, inc := range list {
		names = append(names, inc.worker.name)
	}
	return names
}

// fewNames is the names for a line on a terminal.
func fewNames(list []*incarnation) string {
	names := namesOf(list)
	if more := len(names) - tellMost; more > 0 {
		return fmt.Sprintf("%s +%d", strings.Join(names[:tellMost], ", "), more)
	}
	return strings.Join(names, ", ")
}
