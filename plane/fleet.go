package plane

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"
)

// agentGone is after how much silence an agent is given up. It is longer than the agent's own patience with us plus the time
// it takes to kill, so that by then an agent that was merely cut off has ended its processes too.
const agentGone = defaultLost + 2*time.Second

// ErrAgentGone: the agent has not answered for so long that it and its processes are taken for dead.
var ErrAgentGone = errors.New("plane: the agent is gone")

// Fleet is the coordinator's side of the agents: it admits them, watches over them, and starts and handles workers through
// them. It is safe for concurrent use.
type Fleet struct {
	conn    *Conn
	clock   *Clock
	version string
	gone    time.Duration
	cancels []func() // of what it serves
	beats   sync.WaitGroup
	ctx     context.Context // ended by Close
	end     context.CancelFunc

	mu      sync.Mutex
	agents  map[string]*member
	refused []string
	changed chan struct{} // closed and replaced when agents or refused change
}

// member is an agent that was admitted. Its workers and whether it is absent are guarded by Fleet.mu.
type member struct {
	info    AgentInfo
	gone    chan struct{} // closed when it is given up
	workers map[string]*Worker
	// absent: nobody listens to what is asked of it. Its connection is closed, and may come back.
	absent bool
}

// NewFleet admits agents of the same version from now on, and answers clock probes of workers that don't share the
// coordinator's clock.
func NewFleet(conn *Conn, clock *Clock, version string) (*Fleet, error) {
	return newFleet(conn, clock, version, agentGone)
}

func newFleet(conn *Conn, clock *Clock, version string, gone time.Duration) (*Fleet, error) {
	f := &Fleet{
		conn: conn, clock: clock, version: version, gone: gone,
		agents: map[string]*member{}, changed: make(chan struct{}),
	}
	f.ctx, f.end = context.WithCancel(context.Background())
	serve := func(subject string, call func(context.Context, Message) (any, error)) error {
		cancel, err := conn.Serve(subject, call)
		if err == nil {
			f.cancels = append(f.cancels, cancel)
		}
		return err
	}
	probes, err := clock.Serve(conn)
	if err == nil {
		f.cancels = append(f.cancels, probes)
		err = errors.Join(serve(exitSubject, f.exited), serve(byeSubject, f.bye), serve(helloSubject, f.hello))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// hello admits an agent, or says why not.
func (f *Fleet) hello(_ context.Context, m Message) (any, error) {
	var info AgentInfo
	if err := m.Decode(&info); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.announce()
	refuse := func(format string, v ...any) (any, error) {
		err := fmt.Errorf(format, v...)
		f.refused = append(f.refused, fmt.Sprintf("agent %s on %s was refused: %v", info.ID, info.Hostname, err))
		return nil, err
	}
	if f.ctx.Err() != nil {
		return refuse("the run is over")
	}
	if !idPattern.MatchString(info.ID) {
		return refuse("%q is no agent's name: use letters, digits, - and _", info.ID)
	}
	if info.Version != f.version {
		return refuse("it is Fencepost %s and the coordinator is %s: run the same version on both", info.Version, f.version)
	}
	if old := f.agents[info.ID]; old != nil {
		if old.info.Instance == info.Instance {
			return nil, nil // our answer was lost
		}
		return refuse("the name is taken by process %d on %s: give each agent its own", old.info.PID, old.info.Hostname)
	}
	a := &member{info: info, gone: make(chan struct{}), workers: map[string]*Worker{}}
	f.agents[info.ID] = a
	f.beats.Add(1)
	go f.watch(a)
	return nil, nil
}

// announce wakes those who wait for agents. mu is held.
func (f *Fleet) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// watch asks an agent again and again whether it is there, which also tells it that we are, and gives it up after too much
// silence. Silence is counted from failed questions, none for more than it took at most: a coordinator that itself stood
// still must not blame the agent.
func (f *Fleet) watch(a *member) {
	defer f.beats.Done()
	const patience = time.Second
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	var silent time.Duration
	for last := time.Now(); ; {
		ctx, cancel := context.WithTimeout(f.ctx, patience)
		there := f.beat(ctx, a)
		cancel()
		if there {
			silent = 0
		} else {
			silent += min(time.Since(last), patience+beatEvery)
		}
		last = time.Now()
		if silent >= f.gone {
			f.giveUp(a)
			return
		}
		select {
		case <-f.ctx.Done():
			return
		case <-a.gone:
			return
		case <-tick.C:
		}
	}
}

// beat asks an agent once whether it is there, and notes whether anybody listens.
func (f *Fleet) beat(ctx context.Context, a *member) (there bool) {
	var instance string
	err := f.conn.Request(ctx, agentSubject(a.info.ID, verbBeat), nil, &instance)
	there = err == nil && instance == a.info.Instance
	f.mu.Lock()
	defer f.mu.Unlock()
	// A stopped agent answers nothing, but its connection is there: it is not absent.
	if absent := errors.Is(err, ErrNobody); there && a.absent || absent && !a.absent {
		a.absent = absent
		f.announce()
	}
	return there
}

// bye lets an agent go that has said so, as nothing of it is left: its name is free at once.
func (f *Fleet) bye(_ context.Context, m Message) (any, error) {
	var info AgentInfo
	if err := m.Decode(&info); err != nil {
		return nil, err
	}
	f.mu.Lock()
	a := f.agents[info.ID]
	f.mu.Unlock()
	if a != nil && a.info.Instance == info.Instance {
		f.giveUp(a)
	}
	return nil, nil
}

// giveUp forgets an agent and ends its workers' handles. It may be called again.
func (f *Fleet) giveUp(a *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.agents[a.info.ID] != a {
		return
	}
	delete(f.agents, a.info.ID)
	close(a.gone)
	for name, w := range a.workers {
		delete(a.workers, name)
		w.finish(Exit{Code: -1, Gone: true, At: f.clock.Now()})
	}
	f.announce()
}

// Wait waits for n agents and gives those that there are, by id. One that has left since it came is none of them: each is
// asked once more before they are given. When ctx ends first, the error says how many are there, and who was refused and why.
func (f *Fleet) Wait(ctx context.Context, n int) ([]AgentInfo, error) {
	for asked := false; ; {
		f.mu.Lock()
		var present []*member
		var infos []AgentInfo
		for _, a := range f.agents {
			if !a.absent {
				present, infos = append(present, a), append(infos, a.info)
			}
		}
		changed, refused := f.changed, strings.Join(f.refused, "; ")
		f.mu.Unlock()
		switch {
		case len(infos) < n:
			asked = false
		case asked:
			sort.Slice(infos, func(i, j int) bool { return infos[i].ID < infos[j].ID })
			return infos, nil
		default:
			f.askAll(ctx, present)
			asked = true
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			err := fmt.Errorf("plane: %d of %d agents joined: %w", len(infos), n, context.Cause(ctx))
			if refused != "" {
				err = fmt.Errorf("%w; %s", err, refused)
			}
			return nil, err
		}
	}
}

// askAll asks each agent whether it is there. One that doesn't answer holds the rest up for no longer than a beat.
func (f *Fleet) askAll(ctx context.Context, agents []*member) {
	ctx, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	var all sync.WaitGroup
	for _, a := range agents {
		all.Go(func() { f.beat(ctx, a) })
	}
	all.Wait()
}

// Launch starts a worker's client process on an agent. It returns when the process runs, which is before it is ready.
func (f *Fleet) Launch(ctx context.Context, agentID string, l Launch) (*Worker, error) {
	w := &Worker{fleet: f, Name: l.Worker, Incarnation: l.Incarnation, Agent: agentID, name: l.name(), done: make(chan struct{})}
	f.mu.Lock()
	a := f.agents[agentID]
	if a == nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("plane: launching worker %s: no agent is called %s", w.name, agentID)
	}
	if a.workers[w.name] != nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("plane: launching worker %s: it runs already", w.name)
	}
	w.member = a
	a.workers[w.name] = w // before it starts: it may end at once
	f.mu.Unlock()
	var reply launchReply
	err := w.ask(ctx, verbLaunch, launchOrder{Launch: l, Share: f.clock.Share()}, &reply)
	if err == nil {
		w.PID = reply.PID
		return w, nil
	}
	if remote := (*Remote)(nil); !errors.As(err, &remote) && !errors.Is(err, ErrNobody) && !errors.Is(err, ErrAgentGone) {
		// It may run all the same: see that it doesn't.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		w.ask(late, verbHandle, handleOrder{Name: w.name, Do: "kill"}, nil)
		cancel()
	}
	f.mu.Lock()
	delete(a.workers, w.name)
	f.mu.Unlock()
	return nil, fmt.Errorf("plane: launching worker %s: %w", w.name, err)
}

// exited takes an agent's report of a worker's end.
func (f *Fleet) exited(_ context.Context, m Message) (any, error) {
	var report exitReport
	if err := m.Decode(&report); err != nil {
		return nil, err
	}
	at := f.clock.Now() - int64(report.Ago)
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.agents[report.Agent]
	if a == nil || a.info.Instance != report.Instance {
		return nil, nil
	}
	if w := a.workers[report.Name]; w != nil { // else an answer of ours was lost, and it is repeated
		delete(a.workers, report.Name)
		w.finish(Exit{Code: report.Code, Signal: report.Signal, At: at})
	}
	return nil, nil
}

// Close dismisses the agents, which kill what they still run, waits for the workers' ends as long as an agent may take, and
// ends the fleet. Workers that nothing was heard of are then reported as gone.
func (f *Fleet) Close() {
	f.mu.Lock()
	members, workers := f.members(), f.workers()
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(f.ctx, endGrace+time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, a := range members {
		all.Go(func() { f.conn.Request(ctx, agentSubject(a.info.ID, verbDismiss), nil, nil) })
	}
	for _, w := range workers {
		all.Go(func() {
			select {
			case <-w.done:
			case <-ctx.Done():
			}
		})
	}
	all.Wait()
	f.end()
	for _, cancel := range f.cancels { // hello among them: no new watch begins after this
		cancel()
	}
	f.beats.Wait()
	f.mu.Lock()
	members = f.members()
	f.mu.Unlock()
	for _, a := range members {
		f.giveUp(a)
	}
}

// members and workers list what there is. mu is held.
func (f *Fleet) members() []*member {
	var list []*member
	for _, a := range f.agents {
		list = append(list, a)
	}
	return list
}

func (f *Fleet) workers() []*Worker {
	var list []*Worker
	for _, a := range f.agents {
		for _, w := range a.workers {
			list = append(list, w)
		}
	}
	return list
}
