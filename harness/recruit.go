package harness

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"fencepost.dev/history"
	"fencepost.dev/plane"
)

// localAgent is the id of the agent in the coordinator's own process.
const localAgent = "local"

// recruit finds agents, starts the workers and waits until each is ready.
func (c *coordinator) recruit(ctx context.Context) error {
	agents, err := c.agents(ctx)
	if err != nil {
		return err
	}
	c.crew.spread(agents)
	c.record = c.newRecord()
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	var starting errgroup.Group
	for _, w := range c.crew.workers {
		inc, err := c.crew.launch(ctx, w)
		if err != nil {
			return err
		}
		starting.Go(func() error { return inc.awaitReady(ctx) })
	}
	return starting.Wait()
}

// agents gives those that will run the workers: the one in this process, or Remote ones that join.
func (c *coordinator) agents(ctx context.Context) ([]plane.AgentInfo, error) {
	conn := c.hub.Conn()
	fleet, err := plane.NewFleet(conn, c.clock, Version())
	if err != nil {
		return nil, err
	}
	c.later(func() error { fleet.Close(); return nil })
	c.crew.fleet = fleet
	c.later(c.endWorkers)
	if c.Remote > 0 {
		return c.remoteAgents(ctx)
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding our own executable, which workers run: %w", err)
	}
	agent := plane.NewAgent(conn, plane.AgentOptions{
		ID: localAgent, Version: Version(), Executable: executable, Dir: filepath.Join(c.Out, logsDir),
		Journal: c.journal, Log: c.log,
	})
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(running) }()
	c.later(func() error {
		stop()
		return <-ended
	})
	return fleet.Wait(ctx, 1)
}

// remoteAgents waits for agents on other machines, and says how they join.
func (c *coordinator) remoteAgents(ctx context.Context) (_ []plane.AgentInfo, err error) {
	var o history.ReceiverOptions
	if c.watcher != nil {
		o.Tap = c.watcher.tap
	}
	if c.receiver, err = history.NewReceiver(filepath.Join(c.Out, historyDir), o); err != nil {
		return nil, err
	}
	c.later(c.closeReceiver)
	stop, err := c.hub.Conn().Serve(subjectHistory, c.workerHistory)
	if err != nil {
		return nil, err
	}
	c.later(func() error { stop(); return nil })
	for subject, take := range map[string]func(context.Context, plane.Message) (any, error){subjectLack: c.workerLack, subjectLog: c.workerLog} {
		stop, err := c.hub.Conn().Serve(subject, take)
		if err != nil {
			return nil, err
		}
		c.later(func() error { stop(); return nil })
	}
	c.Notice(fmt.Sprintf("waiting for %d agents; on each machine:\n  FENCEPOST_TOKEN=%s bench worker --join %s", c.Remote, c.hub.Token(), joinURL(c.hub.URL(), c.Listen)))
	agents, err := c.crew.fleet.Wait(ctx, c.Remote)
	if err != nil {
		return nil, err
	}
	here := c.clock.Share().Identity
	for _, agent := range agents {
		for _, name := range sortedNames(c.stores) {
			if e := c.stores[name].Endpoint(); !agent.Clock.Shares(here) && !routable(e) {
				return nil, fmt.Errorf("agent %s on %s can't reach %s at %v: run it where both can, and name it with --provider external --%s HOST:PORT",
					agent.ID, agent.Hostname, name, e.Addresses, name)
			}
		}
	}
	return agents, nil
}

// joinURL is where other machines reach the hub: its own URL, with this host's name in place of an unspecified address.
func joinURL(url, listen string) string {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return url
	}
	name, err := os.Hostname()
	if err != nil {
		return url
	}
	return strings.Replace(url, "127.0.0.1", name, 1)
}

// endWorkers ends what workers are left when a run is given up.
func (c *coordinator) endWorkers() error {
	ctx, cancel := context.WithTimeout(context.Background(), finishPatience)
	defer cancel()
	err := endAll(ctx, c.crew.alive())
	c.crew.watching.Wait()
	return err
}

// workerReady answers a worker that is ready: when the barrier opens.
func (c *coordinator) workerReady(ctx context.Context, m plane.Message) (any, error) {
	var r ready
	if err := m.Decode(&r); err != nil {
		return nil, err
	}
	inc, err := c.crew.known(r.Process)
	if err != nil {
		return nil, err
	}
	inc.mu.Lock()
	again := inc.readySaid != nil
	inc.readySaid = &r
	inc.clockError = r.ClockError
	inc.mu.Unlock()
	if again {
		return nil, fmt.Errorf("process %d has said that it is ready before", r.Process)
	}
	close(inc.isReady)
	if r.Error != "" {
		return barrier{}, nil
	}
	select {
	case <-c.open:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.emit(history.Event{Kind: history.EventWorkerStarted, At: c.clock.Now(), Target: inc.worker.name, Process: int(r.Process), Node: -1})
	return barrier{Start: c.start, Armed: c.traps.current()}, nil
}

// workerDrained notes that no turn of a worker is running any more.
func (c *coordinator) workerDrained(_ context.Context, m plane.Message) (any, error) {
	var d drained
	if err := m.Decode(&d); err != nil {
		return nil, err
	}
	if inc := c.crew.processNumbered(d.Process); inc != nil {
		inc.mu.Lock()
		inc.drained, inc.unstarted, inc.turns = true, d.Unstarted, d.Turns
		inc.mu.Unlock()
	}
	return struct{}{}, nil
}

// workerHistory takes in what a remote worker recorded.
func (c *coordinator) workerHistory(_ context.Context, m plane.Message) (any, error) {
	return struct{}{}, c.receiver.Receive(m.Data())
}

// workerProgress takes in what a worker reports every 100 ms.
func (c *coordinator) workerProgress(m plane.Message) {
	var p progress
	if err := m.Decode(&p); err != nil {
		c.log.Error("a progress report could not be read", "error", err)
		return
	}
	inc := c.crew.processNumbered(p.Process)
	if inc == nil {
		return
	}
	inc.mu.Lock()
	inc.clockError, inc.turns = p.ClockError, p.Turns
	inc.mu.Unlock()
	for _, i := range p.Intervals {
		if err := c.tally.Add(i); err != nil {
			c.log.Error("a latency report could not be merged", "worker", inc.worker.name, "error", err)
		}
	}
	for _, s := range p.Stalls {
		c.emitStall(inc.worker.name, int(p.Process), s)
	}
}

// emitStall records a gap in a process's scheduling, or a movement of its real-time clock.
func (c *coordinator) emitStall(name string, process int, s stall) {
	c.emit(history.Event{
		Kind: history.EventStall, Fault: s.Kind, At: s.At, End: s.At + s.Length, Target: name, Process: process, Node: -1,
		Delay: time.Duration(s.Delay), Detail: s.Detail,
	})
}
