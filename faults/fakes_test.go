package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/scenarios"
)

// world is what a schedule is played in, without processes: time is that of a synctest bubble, and everything that happens
// is a line of the diary.
type world struct {
	epoch   time.Time
	targets map[string]*target
	names   []string // in order
	springs map[string][]faults.Sprung
	// releases says what Release answers; true if absent.
	gone map[string]bool

	mu     sync.Mutex
	diary  []string
	events []history.Event // the last of each ID
	open   map[int]string  // journal
	begun  int
}

func newWorld(names ...string) *world {
	w := &world{
		epoch: time.Now(), targets: map[string]*target{}, springs: map[string][]faults.Sprung{}, gone: map[string]bool{},
		open: map[int]string{},
	}
	for i, name := range names {
		process, node := i, -1
		if name[0] != 'w' {
			process, node = -1, i
		}
		w.targets[name] = &target{world: w, name: name, process: process, node: node}
		w.names = append(w.names, name)
	}
	return w
}

func (w *world) now() int64 { return int64(time.Since(w.epoch)) }

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.diary = append(w.diary, fmt.Sprintf("%v "+format, append([]any{time.Since(w.epoch)}, args...)...))
}

func (w *world) env(loadEnd time.Duration) faults.Env {
	return faults.Env{
		Directory: w, Traps: w, Journal: w, Now: w.now, Emit: w.emit, LoadEnd: int64(loadEnd), Rand: newRand(1),
	}
}

// play runs the schedule and checks what must be so after any schedule: nothing is in force, and the journal is empty.
func (w *world) play(t testing.TB, loadEnd time.Duration, lines ...scenarios.Fault) {
	t.Helper()
	if err := faults.Play(context.Background(), lines, w.env(loadEnd)); err != nil {
		t.Fatalf("Play: %v\n%s", err, w)
	}
	w.settled(t)
}

func (w *world) settled(t testing.TB) {
	t.Helper()
	for _, name := range w.names {
		if w.targets[name].paused {
			t.Errorf("%s is still paused", name)
		}
	}
	if len(w.open) > 0 {
		t.Errorf("still in the journal: %v", w.open)
	}
}

func (w *world) emit(event history.Event) (history.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if event.ID == 0 {
		event.ID = len(w.events) + 1
		w.events = append(w.events, event)
	} else {
		w.events[event.ID-1] = event
	}
	return event, nil
}

func (w *world) Begin(kind string, data any) (func() error, error) {
	w.mu.Lock()
	w.begun++
	id, record := w.begun, data.(faults.Record)
	w.open[id] = record.Fault + " " + record.Target
	w.mu.Unlock()
	w.note("journal %s %s %s", kind, record.Fault, record.Target)
	return func() error {
		w.note("undone %s %s", record.Fault, record.Target)
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, open := w.open[id]; !open {
			return errors.New("undone twice")
		}
		delete(w.open, id)
		return nil
	}, nil
}

func (w *world) Resolve(_ context.Context, name string) ([]faults.Target, error) {
	var found []faults.Target
	for _, one := range w.names {
		switch {
		case one == name, "worker/"+one == name,
			name == "worker" && one[0] == 'w', name == "valkey" && one[0] == 'v':
			found = append(found, w.targets[one])
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no %s", name)
	}
	return found, nil
}

// spring lets a client of the worker reach the point at an instant; it is caught if a trap is armed then, or armed later.
func (w *world) spring(point, worker string, client int, at time.Duration) {
	w.springs[point] = append(w.springs[point], faults.Sprung{
		Worker: worker, Process: w.targets[worker].process, Client: fmt.Sprintf("%s/c%d", worker, client),
		Grant: history.GrantID(client), At: int64(at),
	})
}

func (w *world) Arm(ctx context.Context, point string, workers []string) (faults.Sprung, error) {
	for {
		w.mu.Lock()
		for i, sprung := range w.springs[point] {
			if sprung.At <= w.now() && (len(workers) == 0 || workers[0] == sprung.Worker) {
				w.springs[point] = append(w.springs[point][:i:i], w.springs[point][i+1:]...)
				w.mu.Unlock()
				sprung.At = w.now()
				sprung.Release = func() bool {
					w.note("released %s", sprung.Client)
					return !w.gone[sprung.Client]
				}
				return sprung, nil
			}
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return faults.Sprung{}, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (w *world) String() string {
	text := ""
	for _, line := range w.diary {
		text += line + "\n"
	}
	return text
}

// target takes all faults, each after its delay, and fails the test's way if told to.
type target struct {
	world         *world
	name          string
	process, node int

	delay  time.Duration
	from   time.Duration // since when fail and dies hold
	fail   error
	dies   bool // whatever is done fails, and it is dead
	paused bool
	dead   bool
	keeps  bool
}

func (t *target) Name() string      { return t.name }
func (t *target) Place() (int, int) { return t.process, t.node }
func (t *target) Alive() bool       { return !t.dead }
func (t *target) Keeps() bool       { return t.keeps }

func (t *target) do(ctx context.Context, verb string, state *bool, to bool) error {
	select {
	case <-time.After(t.delay):
	case <-ctx.Done():
		return ctx.Err()
	}
	if bad := t.fail != nil || t.dies; bad && time.Since(t.world.epoch) >= t.from {
		if t.dies {
			t.dead, t.paused = true, false
		}
		return errors.Join(t.fail, errors.New("no such process"))
	}
	if *state == to {
		return fmt.Errorf("%s of what is so already", verb)
	}
	*state = to
	t.world.note("%s %s", verb, t.name)
	return nil
}

func (t *target) Pause(ctx context.Context) error  { return t.do(ctx, "pause", &t.paused, true) }
func (t *target) Resume(ctx context.Context) error { return t.do(ctx, "resume", &t.paused, false) }
func (t *target) Kill(ctx context.Context) error   { return t.do(ctx, "kill", &t.dead, true) }
func (t *target) Start(ctx context.Context) error  { return t.do(ctx, "start", &t.dead, false) }
func (t *target) StartEmpty(ctx context.Context) error {
	return t.do(ctx, "start empty", &t.dead, false)
}
