package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fencepost.dev/process"
)

// playClient is a worker's client process: it reads what it is told, tells the test that it lives, and waits.
func playClient() {
	start := must(ReadClientStart(os.Stdin))
	fmt.Println("client", start.Worker, start.Incarnation) // to the log
	var mode string
	must(0, json.Unmarshal(start.Assignment, &mode))
	if mode == "exit 3" {
		os.Exit(3)
	}
	conn := must(Dial(context.Background(), start.URL, start.Token, start.Worker))
	clock := must(JoinClock(context.Background(), start.Share, conn))
	alive := alive{Worker: start.Worker, Incarnation: start.Incarnation, PID: os.Getpid(), Token: os.Getenv("FENCEPOST_TOKEN"), Plane: os.Getenv("FENCEPOST_PLANE")}
	for {
		alive.At = clock.Now()
		must(0, conn.Publish("alive", alive))
		time.Sleep(5 * time.Millisecond)
	}
}

type alive struct {
	Worker           string
	Incarnation, PID int
	At               int64
	Token, Plane     string
}

// playAgent is `bench worker --join` in small.
func playAgent() {
	o := AgentOptions{ID: os.Getenv("AGENT_ID"), Version: os.Getenv("AGENT_VERSION"), Dir: os.Getenv("AGENT_DIR"), Lost: time.Second}
	journal := must(process.OpenJournal(filepath.Join(o.Dir, "journal")))
	o.Journal = journal
	fmt.Println("agent", os.Getpid())
	fmt.Println("ended:", NewAgent(playDial(), o).Run(context.Background()))
	must(0, journal.Close())
	os.Exit(0)
}

func startAgent(t *testing.T, h *Hub, id, version, dir string) *child {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := play(t, "agent", nil, append(at(h), "AGENT_ID="+id, "AGENT_VERSION="+version, "AGENT_DIR="+dir)...)
	c.line(t)
	return c
}

// crew is a coordinator: hub, clock, fleet, and what its workers last said.
type crew struct {
	*Hub
	*Fleet
	clock *Clock
	alive chan alive
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	h, _ := hub(t)
	c := &crew{Hub: h, clock: NewClock(), alive: make(chan alive, 100000)}
	var err error
	if c.Fleet, err = newFleet(h.Conn(), c.clock, "1.0", 1500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Fleet.Close)
	cancel, err := h.Conn().Subscribe("alive", func(m Message) {
		var a alive
		if err := m.Decode(&a); err == nil {
			c.alive <- a
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	return c
}

// hear waits for a sign of life that was given at or after the time since.
func (c *crew) hear(t *testing.T, name string, since int64) alive {
	t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		select {
		case a := <-c.alive:
			if a.At >= since && fmt.Sprintf("%s.%d", a.Worker, a.Incarnation) == name {
				return a
			}
		case <-deadline:
			t.Fatalf("%s gives no sign of life", name)
		}
	}
}

func (c *crew) launch(t *testing.T, agent, worker string, incarnation int, mode string) *Worker {
	t.Helper()
	assignment, _ := json.Marshal(mode)
	w, err := c.Launch(t.Context(), agent, Launch{Worker: worker, Incarnation: incarnation, Assignment: assignment})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func wait(t *testing.T, c *crew, n int) []AgentInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	infos, err := c.Wait(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	return infos
}

// exists says whether a process is there and not merely unreaped.
func exists(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func ended(t *testing.T, w *Worker, d time.Duration) Exit {
	t.Helper()
	if !w.ended() {
		select {
		case <-w.Done():
		case <-time.After(d):
			t.Fatalf("%s: no end within %v", w, d)
		}
	}
	return w.Exit()
}

// One agent in the coordinator's process and two that were started by hand, treated alike.
func TestAgents(t *testing.T) {
	t.Setenv("FENCEPOST_TOKEN", "secret")
	c := newCrew(t)
	dir := t.TempDir()
	journal, err := process.OpenJournal(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error)
	here := NewAgent(dial(t, c.Hub, "agent"), AgentOptions{ID: "local", Version: "1.0", Dir: dir, Journal: journal})
	go func() { ran <- here.Run(context.WithoutCancel(t.Context())) }()
	far := []*child{startAgent(t, c.Hub, "a1", "1.0", filepath.Join(dir, "a1")), startAgent(t, c.Hub, "a2", "1.0", filepath.Join(dir, "a2"))}
	infos := wait(t, c, 3)
	if infos[0].ID != "a1" || infos[0].PID != far[0].Process.Pid || infos[2].ID != "local" || infos[2].PID != os.Getpid() ||
		infos[1].CPUs == 0 || infos[1].Hostname == "" || infos[1].Clock != c.clock.Share().Identity {
		t.Errorf("agents: %+v", infos)
	}
	ctx := t.Context()
	for _, agent := range []string{"local", "a1", "a2"} {
		t.Run(agent, func(t *testing.T) {
			name := "w-" + agent
			w := c.launch(t, agent, name, 1, "")
			first := c.hear(t, name+".1", 0)
			if first.PID != w.PID || first.Plane != c.URL() || first.Token != "" {
				t.Errorf("it says %+v, its handle %d", first, w.PID)
			}
			if _, err := c.Launch(ctx, agent, Launch{Worker: name, Incarnation: 1, Assignment: []byte(`""`)}); err == nil {
				t.Error("it was launched twice")
			}

			if err := w.Pause(ctx); err != nil {
				t.Fatal(err)
			}
			paused := c.clock.Now()
			time.Sleep(200 * time.Millisecond)
			resumed := c.clock.Now()
			if err := w.Resume(ctx); err != nil {
				t.Fatal(err)
			}
			slack := int64(10 * time.Microsecond)
			for a := c.hear(t, name+".1", 0); a.At < resumed-slack; a = c.hear(t, name+".1", 0) {
				if a.At > paused+slack {
					t.Fatalf("a sign of life %v after the pause", time.Duration(a.At-paused))
				}
			}

			before := c.clock.Now()
			if err := w.Kill(ctx); err != nil {
				t.Fatal(err)
			}
			exit := ended(t, w, 0)
			if exit.Signal != "killed" || exit.Code != -1 || exit.At < before || exit.At > c.clock.Now() || exists(w.PID) {
				t.Errorf("it %v at %d, after %d; exists: %v", exit, exit.At, before, exists(w.PID))
			}
			if err := w.Kill(ctx); err != nil {
				t.Errorf("killing it again: %v", err)
			}
			if err := w.Pause(ctx); err == nil {
				t.Error("a dead worker was paused")
			}

			again := c.launch(t, agent, name, 2, "")
			c.hear(t, name+".2", 0)
			if err := again.Pause(ctx); err != nil { // stopping one that is stopped
				t.Fatal(err)
			}
			if err := again.Stop(ctx, 10*time.Second); err != nil {
				t.Fatal(err)
			}
			if exit := ended(t, again, 0); exit.Signal != "terminated" {
				t.Errorf("it %v", exit)
			}

			third := c.launch(t, agent, name, 3, "exit 3")
			if exit := ended(t, third, 20*time.Second); exit.Code != 3 || exit.Signal != "" || exit.Gone {
				t.Errorf("it %v", exit)
			}
		})
	}
	log, err := os.ReadFile(filepath.Join(dir, "a1", "w-a1.1.log"))
	if err != nil || !strings.Contains(string(log), "client w-a1 1") {
		t.Errorf("its log says %q, %v", log, err)
	}
	for _, l := range []Launch{{Worker: "x", Log: "../x.log"}, {Worker: "x", Log: "/x.log"}} {
		if _, err := c.Launch(ctx, "local", l); err == nil || !strings.Contains(err.Error(), "within the agent's directory") {
			t.Errorf("a log outside: %v", err)
		}
	}
	if _, err := c.Launch(ctx, "a9", Launch{Worker: "x"}); err == nil || !strings.Contains(err.Error(), "no agent is called a9") {
		t.Errorf("an agent that isn't there: %v", err)
	}

	// The end of the run ends what still runs, and the agents.
	w1, w2 := c.launch(t, "local", "w1", 1, ""), c.launch(t, "a1", "w2", 1, "")
	c.hear(t, "w1.1", 0)
	c.Fleet.Close()
	for _, w := range []*Worker{w1, w2} {
		if exit := ended(t, w, 0); exit.Signal != "killed" || exists(w.PID) {
			t.Errorf("%s %v; exists: %v", w, exit, exists(w.PID))
		}
	}
	if err := <-ran; err != nil {
		t.Errorf("the local agent: %v", err)
	}
	if err := journal.Close(); err != nil {
		t.Error(err)
	}
	for _, a := range far {
		if said := a.line(t); said != "ended: <nil>" {
			t.Errorf("an agent %s", said)
		}
	}
}

// An agent that is killed takes its workers with it, also a stopped one, and the fleet says so.
func TestAgentKilled(t *testing.T) {
	c := newCrew(t)
	a := startAgent(t, c.Hub, "a1", "1.0", t.TempDir())
	wait(t, c, 1)
	running, stopped := c.launch(t, "a1", "w1", 1, ""), c.launch(t, "a1", "w2", 1, "")
	c.hear(t, "w1.1", 0)
	c.hear(t, "w2.1", 0)
	if err := stopped.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Process.Kill()
	within(t, 5*time.Second, "its workers are dead", func() bool { return !exists(running.PID) && !exists(stopped.PID) })
	for _, w := range []*Worker{running, stopped} {
		if exit := ended(t, w, 20*time.Second); !exit.Gone {
			t.Errorf("%s %v", w, exit)
		}
	}
	if _, err := c.Launch(t.Context(), "a1", Launch{Worker: "w3"}); err == nil {
		t.Error("something was launched on an agent that is gone")
	}
	// Its name is free again.
	startAgent(t, c.Hub, "a1", "1.0", t.TempDir())
	wait(t, c, 1)
}

// A request that a dead agent will never answer ends when the agent is given up.
func TestAgentKilledWhileAsked(t *testing.T) {
	c := newCrew(t)
	a := startAgent(t, c.Hub, "a1", "1.0", t.TempDir())
	wait(t, c, 1)
	w := c.launch(t, "a1", "w1", 1, "")
	c.hear(t, "w1.1", 0)
	a.Process.Signal(syscall.SIGSTOP) // it has the request and does not answer
	failed := make(chan error)
	go func() { failed <- w.Pause(context.WithoutCancel(t.Context())) }()
	time.Sleep(50 * time.Millisecond)
	a.Process.Kill()
	select {
	case err := <-failed:
		if err == nil {
			t.Error("a dead agent paused a worker")
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for ever")
	}
}

// An agent whose coordinator vanishes kills its workers and ends.
func TestCoordinatorVanishes(t *testing.T) {
	for _, how := range []string{"the hub is gone", "nobody asks any more"} {
		t.Run(how, func(t *testing.T) {
			c := newCrew(t)
			a := startAgent(t, c.Hub, "a1", "1.0", t.TempDir())
			wait(t, c, 1)
			w := c.launch(t, "a1", "w1", 1, "")
			c.hear(t, "w1.1", 0)
			if how == "the hub is gone" {
				c.Hub.Close()
			} else {
				c.end() // the fleet's watches end without a word to the agents
			}
			if said := a.line(t); !strings.HasPrefix(said, "ended: "+ErrCoordinatorGone.Error()) {
				t.Errorf("the agent %s", said)
			}
			within(t, 5*time.Second, "its worker is dead", func() bool { return !exists(w.PID) })
		})
	}
}

func TestAgentsThatAreRefused(t *testing.T) {
	c := newCrew(t)
	startAgent(t, c.Hub, "a1", "1.0", t.TempDir())
	wait(t, c, 1)
	for _, r := range []struct{ id, version, says string }{
		{"a2", "0.9", "run the same version on both"},
		{"a1", "1.0", "give each agent its own"},
		{"a.1", "1.0", "letters, digits, - and _"},
	} {
		a := startAgent(t, c.Hub, r.id, r.version, t.TempDir())
		if said := a.line(t); !strings.Contains(said, r.says) || !strings.HasPrefix(said, "ended:") {
			t.Errorf("%s: it %s", r.id, said)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Wait(ctx, 2)
	if err == nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 of 2 agents joined") ||
		!strings.Contains(err.Error(), "agent a2 on") || !strings.Contains(err.Error(), "0.9") {
		t.Errorf("waiting for one that was refused: %v", err)
	}
}

func TestReadClientStart(t *testing.T) {
	for text, says := range map[string]string{
		"":                       "started by an agent, not by hand",
		"{":                      "reading the assignment",
		`{}`:                     "names no hub",
		`{"url":"nats://x"}`:     "no worker",
		`{"url":3,"worker":"w"}`: "reading the assignment",
	} {
		if _, err := ReadClientStart(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An agent that was killed is none of those that a run waits for, also before it is given up.
func TestWaitLeavesOutTheDead(t *testing.T) {
	c := newCrew(t)
	c.gone = time.Minute
	a := startAgent(t, c.Hub, "a1", "1.0", t.TempDir())
	wait(t, c, 1)
	a.Process.Kill()
	a.Wait()
	startAgent(t, c.Hub, "a2", "1.0", t.TempDir())
	within(t, 20*time.Second, "a2 is admitted", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.agents["a2"] != nil
	})
	// The hub may take a moment to see that the connection is closed: what must not happen is that it never does.
	within(t, 5*time.Second, "one is there", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*beatEvery)
		defer cancel()
		infos, err := c.Wait(ctx, 1)
		return err == nil && len(infos) == 1 && infos[0].ID == "a2"
	})
}

// An agent that leaves says so: its name is free for the next at once.
func TestAgentLeaves(t *testing.T) {
	c := newCrew(t)
	for range 2 {
		a := startAgent(t, c.Hub, "a1", "1.0", t.TempDir())
		wait(t, c, 1)
		if err := c.Hub.Conn().Request(t.Context(), agentSubject("a1", verbDismiss), nil, nil); err != nil {
			t.Fatal(err)
		}
		if said := a.line(t); said != "ended: <nil>" {
			t.Fatalf("the agent %s", said)
		}
		c.mu.Lock()
		left := len(c.agents)
		c.mu.Unlock()
		if left > 0 {
			t.Fatal("it has left and is still counted")
		}
	}
}
