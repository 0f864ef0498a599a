package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/internal/sleep"
	"fencepost.dev/subjects"
	"fencepost.dev/witness"
)

// ClientKind is how far a client trusts the lock that it was granted.
type ClientKind string

const (
	// Trusting writes because it was granted the lock, however long ago.
	Trusting ClientKind = "trusting"
	// Checking looks at its own clock before it writes. That narrows the window and does not close it: it can be stopped
	// between the look and the write.
	Checking ClientKind = "checking"
	// Fenced sends its grant's token with every attempt, and the resource refuses a token that is not the newest.
	Fenced ClientKind = "fenced"
)

// CriticalSection are the parameters of the workload of that name.
type CriticalSection struct {
	Client ClientKind    `yaml:"client"`
	Keys   int           `yaml:"keys"`  // how many locks there are, each with a protected register of its own
	TTL    time.Duration `yaml:"ttl"`   // time-to-live asked for
	Hold   time.Duration `yaml:"hold"`  // between reading the register and writing it
	Renew  time.Duration `yaml:"renew"` // extend the hold this often; 0: never
	Wait   time.Duration `yaml:"wait"`  // how long to go on trying for a busy lock; 0: one try
	Retry  time.Duration `yaml:"retry"` // pause between tries
}

// Validate says what is wrong with the parameters, if anything is.
func (p *CriticalSection) Validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(p.Client != Trusting && p.Client != Checking && p.Client != Fenced,
		"client: %q is none of %s, %s, %s", p.Client, Trusting, Checking, Fenced)
	bad(p.Keys < 1 || p.Keys > 1_000_000, "keys: must be between 1 and 1000000, is %d", p.Keys)
	bad(p.TTL < time.Millisecond, "ttl: must be at least 1ms, is %s", p.TTL)
	bad(p.Hold < 0, "hold: must not be negative, is %s", p.Hold)
	bad(p.Renew < 0, "renew: must not be negative, is %s", p.Renew)
	bad(p.Renew > 0 && p.Renew >= p.TTL, "renew: must come before the ttl (%s) is over, is %s", p.TTL, p.Renew)
	bad(p.Wait < 0, "wait: must not be negative, is %s", p.Wait)
	bad(p.Wait > 0 && p.Retry <= 0, "retry: must be positive when there is a wait, is %s", p.Retry)
	return errors.Join(errs...)
}

var criticalSection = Kind{
	Name:       "critical-section",
	Primitives: []string{"lock", "lease"},
	Summary:    "acquire a lock, read what it protects, hold it for a while, write, release",
	Points:     []string{"before-read", "holding", "before-extend", "before-write", RequestInFlight},
	Parameters: func() any {
		return &CriticalSection{Client: Trusting, Keys: 4, TTL: 10 * time.Second, Hold: 20 * time.Millisecond, Retry: 10 * time.Millisecond}
	},
	New: func(subject, parameters any, env Env) (Workload, error) {
		lock, ok := subject.(subjects.Lock)
		if !ok {
			return nil, fmt.Errorf("workloads: critical-section needs a lock, and %T is none", subject)
		}
		s := &section{CriticalSection: *parameters.(*CriticalSection), lock: lock, env: env}
		for i := range s.Keys {
			s.keys = append(s.keys, fmt.Sprintf("k%d", i))
		}
		return s, nil
	},
	Fenced:   func(parameters any) bool { return parameters.(*CriticalSection).Client == Fenced },
	Leftover: func(parameters any) time.Duration { p := parameters.(*CriticalSection); return p.Wait + p.Hold },
}

// section is the workload of one worker.
type section struct {
	CriticalSection
	lock subjects.Lock
	env  Env
	keys []string
}

// hold is one grant while its client works under it.
type hold struct {
	key        string
	id         history.GrantID
	grant      subjects.Grant
	until      time.Time // by the client's own clock: when the last acknowledged time-to-live ends
	generation int64
	version    int64 // of the register, as read
}

// Turn is one critical section.
func (s *section) Turn(ctx context.Context, c *Client) {
	defer func() { c.Grant = 0 }()
	h, granted := s.acquire(ctx, c, s.keys[c.Rand.IntN(len(s.keys))])
	if !granted {
		return
	}
	s.work(ctx, c, h)
	if ctx.Err() == nil {
		s.release(ctx, c, h)
	}
}

// work reads the register, holds the lock and writes. It stops where the hold is known to be lost.
func (s *section) work(ctx context.Context, c *Client, h *hold) {
	s.env.Point(ctx, c, "before-read")
	if !s.attempt(ctx, c, h, history.Read) {
		return
	}
	s.env.Point(ctx, c, "holding")
	if !s.keep(ctx, c, h) || s.Client == Checking && !c.Now().Before(h.until) {
		return
	}
	s.env.Point(ctx, c, "before-write")
	s.attempt(ctx, c, h, history.Write)
}

// acquire tries for the lock until it is granted, Wait is over, or the answer is neither granted nor busy.
func (s *section) acquire(ctx context.Context, c *Client, key string) (*hold, bool) {
	deadline := time.Now().Add(s.Wait)
	for {
		h, answer := s.try(ctx, c, key)
		if answer.Outcome == history.OK {
			return h, true
		}
		if answer.Outcome != history.Refused || time.Until(deadline) <= s.Retry || !sleep.For(ctx, s.Retry, nil) {
			return nil, false
		}
	}
}

// try asks for the lock once. The client's own deadline counts from before the request, as a careful client's does.
func (s *section) try(ctx context.Context, c *Client, key string) (*hold, subjects.Answer) {
	h := &hold{key: key, id: c.NextGrant()}
	c.Grant = h.id
	op := history.Operation{Kind: history.Acquire, Key: c.Key(key), Node: history.NoNode}
	op.SetGrant(h.id)
	op.SetTTL(s.TTL)
	asked := c.Now()
	slot := c.Begin(&op)
	s.env.Point(ctx, c, RequestInFlight)
	var answer subjects.Answer
	h.grant, answer = s.lock.Acquire(ctx, int(c.Number), key, s.TTL)
	op.SetToken(h.grant.Token)
	op.SetValidity(h.grant.Validity)
	end(c, slot, &op, answer)
	h.until = asked.Add(op.Validity())
	return h, answer
}

// keep holds the lock for Hold, renewing it if asked to. It reports false when the hold is known to be lost.
func (s *section) keep(ctx context.Context, c *Client, h *hold) bool {
	for left := s.Hold; left > 0; {
		step := left
		if s.Renew > 0 && s.Renew < left {
			step = s.Renew
		}
		if !s.await(ctx, c, h, step) {
			return false
		}
		if left -= step; left > 0 && !s.extend(ctx, c, h) {
			return false
		}
	}
	return true
}

// await lets d go by, unless the subject says meanwhile that the hold is lost.
func (s *section) await(ctx context.Context, c *Client, h *hold, d time.Duration) bool {
	if sleep.For(ctx, d, h.grant.Lost) {
		return true
	}
	if ctx.Err() == nil {
		op := history.Operation{Kind: history.Lost, Key: c.Key(h.key), Outcome: history.OK, Node: history.NoNode}
		op.SetGrant(h.id)
		c.End(c.Begin(&op), &op)
	}
	return false
}

// extend renews the hold. Only a definite refusal makes the client give up at once; after an unknown or failed answer it
// goes on as long as the last acknowledged time-to-live lasts by its own clock, and a trusting one for ever.
func (s *section) extend(ctx context.Context, c *Client, h *hold) bool {
	s.env.Point(ctx, c, "before-extend")
	h.generation++
	op := history.Operation{Kind: history.Extend, Key: c.Key(h.key), Node: history.NoNode}
	op.SetGrant(h.id)
	op.SetTTL(s.TTL)
	op.SetToken(h.grant.Token)
	op.SetGeneration(h.generation)
	asked := c.Now()
	slot := c.Begin(&op)
	s.env.Point(ctx, c, RequestInFlight)
	answer := s.lock.Extend(ctx, int(c.Number), h.key, h.grant, s.TTL)
	end(c, slot, &op, answer)
	switch answer.Outcome {
	case history.OK:
		h.until = asked.Add(s.TTL)
		return true
	case history.Refused:
		return false
	default:
		return s.Client == Trusting || c.Now().Before(h.until)
	}
}

func (s *section) release(ctx context.Context, c *Client, h *hold) {
	op := history.Operation{Kind: history.Release, Key: c.Key(h.key), Node: history.NoNode}
	op.SetGrant(h.id)
	op.SetToken(h.grant.Token)
	slot := c.Begin(&op)
	s.env.Point(ctx, c, RequestInFlight)
	end(c, slot, &op, s.lock.Release(ctx, int(c.Number), h.key, h.grant))
}

// attempt reads or writes the register under the grant and reports whether it was accepted. An answer that got lost leaves
// the operation unknown and counts as not accepted.
func (s *section) attempt(ctx context.Context, c *Client, h *hold, kind history.Kind) bool {
	op := history.Operation{Kind: kind, Key: c.Key(h.key), Node: history.NoNode}
	op.SetGrant(h.id)
	op.SetVersion(h.version)
	a := witness.Attempt{Kind: kind, Key: h.key, Process: c.Process, Client: c.Number, Grant: h.id, Version: h.version}
	if s.Client == Fenced {
		a.Token = h.grant.Token
		op.SetToken(a.Token)
	}
	slot := c.Begin(&op)
	d, err := s.env.Register.Attempt(ctx, a)
	op.Outcome, op.Error = witness.OutcomeOf(d.Accepted, err), c.Error(err)
	if op.Outcome == history.OK && kind == history.Read {
		h.version = d.Version
		op.SetVersion(d.Version)
	}
	op.SetSequence(d.Sequence)
	c.End(slot, &op)
	return op.Outcome == history.OK
}

// Final asks once for every lock, so that the history shows which of them could still be had at the end.
func (s *section) Final(ctx context.Context, c *Client) {
	for _, key := range s.keys[:min(len(s.keys), 64)] {
		if h, answer := s.try(ctx, c, key); answer.Outcome == history.OK {
			s.release(ctx, c, h)
		}
	}
}

// end completes an operation of the subject with its answer.
func end(c *Client, slot history.Slot, op *history.Operation, a subjects.Answer) {
	op.Outcome, op.Node, op.Error = a.Outcome, a.Node, c.Error(a.Err)
	c.End(slot, op)
}
