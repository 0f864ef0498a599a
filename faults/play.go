package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/internal/sleep"
	"fencepost.dev/scenarios"
)

// Env is what a schedule is carried out in. All times are nanoseconds since the run's epoch.
type Env struct {
	Directory Directory
	Traps     Traps   // may be nil if no line has a "when"
	Journal   Journal // may be nil: nothing is journaled then
	Now       func() int64
	// Emit writes an event and gives it back with its ID. It is never called twice at once. history.EventLog.Append fits.
	Emit      func(history.Event) (history.Event, error)
	LoadStart int64
	LoadEnd   int64 // 0: only the context ends the schedule
	Rand      *rand.Rand
	Log       *slog.Logger
}

// patience is how long an injection, or the undoing of one, may take.
const patience = 20 * time.Second

// Play carries out the schedule: each line at its time, or when a client springs its trap, again and again if it says so,
// until load or ctx ends. Every fault in force is then undone, and Play returns when all are. No two faults are in force on
// one target at once: a line waits for the target it needs.
//
// A fault that can't be injected or undone ends the schedule and is the error, unless its target died meanwhile: that is
// logged, and another target of the line is taken if there is one. A trap that nobody springs is no error either; the
// coverage tells.
func Play(ctx context.Context, lines []scenarios.Fault, env Env) error {
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	if env.Rand == nil {
		env.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	players := make([]*player, len(lines))
	stage := &stage{env: env, claims: newClaims()}
	for i, line := range lines {
		fault, options, err := parse(line)
		if err == nil && line.When != "" && env.Traps == nil {
			err = fmt.Errorf("fault %q waits for a client at %q, and nothing here can catch one", line.Do, line.When)
		}
		if err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
		players[i] = &player{
			stage: stage,
			line:  line,
			fault: fault,
			order: Order{For: line.For, Options: options},
			rand:  rand.New(rand.NewPCG(env.Rand.Uint64(), uint64(i))), // a line's choices don't depend on another's timing
			log:   env.Log.With("line", i, "fault", line.Do),
		}
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if env.LoadEnd != 0 {
		var ended context.CancelFunc
		ctx, ended = context.WithTimeout(ctx, time.Duration(env.LoadEnd-env.Now()))
		defer ended()
	}
	errs := make([]error, len(players))
	var playing sync.WaitGroup
	for i, player := range players {
		playing.Go(func() {
			if err := player.play(ctx); err != nil {
				errs[i] = fmt.Errorf("faults[%d]: %w", i, err)
				cancel()
			}
		})
	}
	playing.Wait()
	return errors.Join(errs...)
}

// stage is what the lines of a schedule share.
type stage struct {
	env    Env
	claims *claims
	emits  sync.Mutex
}

func (s *stage) emit(event history.Event) (history.Event, error) {
	s.emits.Lock()
	defer s.emits.Unlock()
	event, err := s.env.Emit(event)
	if err != nil {
		return event, fmt.Errorf("recording the fault: %w", err)
	}
	return event, nil
}

// sleepUntil reports whether the instant came before ctx ended.
func (s *stage) sleepUntil(ctx context.Context, instant int64) bool {
	return sleep.For(ctx, time.Duration(instant-s.env.Now()), nil)
}

// player carries out one line.
type player struct {
	*stage
	line  scenarios.Fault
	fault Fault
	order Order
	rand  *rand.Rand
	log   *slog.Logger
}

// play does the line until it is done with, or ctx ends. When the next time came while the last fault was still in force,
// the next follows at once; times that went by are not made up for.
func (p *player) play(ctx context.Context) error {
	due := p.env.LoadStart + int64(p.line.At)
	for injected := 0; p.line.Times == 0 || injected < p.line.Times; {
		if p.env.LoadEnd != 0 && due >= p.env.LoadEnd {
			return nil
		}
		if !p.sleepUntil(ctx, due) {
			return nil
		}
		done, err := p.once(ctx)
		if err != nil {
			return err
		}
		if done {
			injected++
		}
		if p.line.Every == 0 {
			return nil
		}
		due = max(due+int64(p.line.Every), p.env.Now())
	}
	return nil
}

// once does the line one time. It reports whether the fault was injected.
func (p *player) once(ctx context.Context) (bool, error) {
	var caught *catch
	if p.line.When != "" {
		var err error
		if caught, err = p.arm(ctx); caught == nil {
			return false, err
		}
		defer caught.release() // whatever happens below
	}
	for dead := map[string]bool{}; ; {
		target, err := p.choose(ctx, caught, dead)
		if target == nil {
			if err == nil && ctx.Err() == nil {
				err = p.missed(caught)
			}
			return false, err
		}
		injected, gone, err := p.do(ctx, target, caught)
		p.claims.free(target)
		if !gone {
			return injected, err
		}
		p.log.Warn("the target died before the fault could be done to it", "target", target.Name(), "error", err)
		dead[target.Name()] = true
	}
}

// choose claims one of the targets that the line's name stands for now: the worker whose client was caught, or any that is
// alive and not excluded. It waits for one on which no other fault is in force. Nil: there is none, or no time left.
func (p *player) choose(ctx context.Context, caught *catch, excluded map[string]bool) (Target, error) {
	if caught != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, caught.left())
		defer cancel()
	}
	targets, err := p.env.Directory.Resolve(ctx, p.line.On)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, fmt.Errorf("finding the target of %s: %w", p.fault.Name, err)
	}
	var fit []Target
	for _, target := range targets {
		if excluded[target.Name()] || caught != nil && onWorkers(p.line.On) && target.Name() != caught.Worker {
			continue
		}
		if err := check(p.fault, p.order.Options, target); err != nil {
			return nil, err
		}
		fit = append(fit, target)
	}
	target, living := p.claims.take(ctx, fit, p.rand)
	if !living {
		p.log.Warn("no target is alive", "on", p.line.On)
	}
	return target, nil
}

// onWorkers reports whether the name stands for workers, and not for a store.
func onWorkers(name string) bool {
	return name == "worker" || strings.HasPrefix(name, "worker/")
}
