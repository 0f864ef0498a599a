package workloads

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/plane"
	"fencepost.dev/subjects"
	"fencepost.dev/witness"
)

var (
	errLost   = errors.New("the answer was lost")
	errBusy   = errors.New("busy")
	errUnsent = fmt.Errorf("no line: %w", plane.ErrUnsent)
)

// stand is a client on its stand: the lock and the register answer as they are told, and everything that is recorded, and
// every point that is passed, becomes a line of the diary. Time is that of a synctest bubble.
type stand struct {
	t     *testing.T
	diary []string
	start time.Time
	skew  time.Duration // of the client's own clock

	// answers are given one after the other, by kind of operation; the last is repeated. None means ok.
	answers map[history.Kind][]history.Outcome
	takes   map[history.Kind]time.Duration // how long an operation takes
	grant   subjects.Grant
	at      map[string]func() // done when a client is at the point
	asked   []string          // what the subject and the register were asked

	version  int64
	sequence int64
	open     bool
}

// turn runs one turn of a client, or its final reads, and gives the diary.
func turn(t *testing.T, p CriticalSection, prepare func(*stand), final bool) *stand {
	t.Helper()
	s := &stand{t: t, answers: map[history.Kind][]history.Outcome{}, takes: map[history.Kind]time.Duration{}, at: map[string]func(){}}
	synctest.Test(t, func(t *testing.T) {
		s.start = time.Now()
		s.grant.Token = 7
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.at["cancel"] = cancel
		prepare(s)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		w, err := criticalSection.New(s, &p, Env{Register: s, Point: s.point})
		if err != nil {
			t.Fatal(err)
		}
		c := &Client{Process: 1, Number: 2, Rand: rand.New(rand.NewPCG(1, 1)), Now: func() time.Time { return time.Now().Add(s.skew) }, Recorder: s}
		if final {
			w.(Finisher).Final(ctx, c)
		} else {
			w.Turn(ctx, c)
			if c.Grant != 0 {
				t.Error("the client still names a grant after its turn")
			}
		}
		if s.open {
			t.Error("an operation was begun and never completed")
		}
	})
	return s
}

func (s *stand) note(format string, args ...any) {
	s.diary = append(s.diary, fmt.Sprintf("%s %s", time.Since(s.start), fmt.Sprintf(format, args...)))
}

// tells compares the diary with what is wanted, a line each.
func (s *stand) tells(want string) {
	s.t.Helper()
	var lines []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if got := strings.Join(s.diary, "\n"); got != strings.Join(lines, "\n") {
		s.t.Errorf("it went\n%s\nand not\n%s", got, strings.Join(lines, "\n"))
	}
}

// next is how the kind of operation is answered this time, after the time that it takes.
func (s *stand) next(kind history.Kind) history.Outcome {
	time.Sleep(s.takes[kind])
	list := s.answers[kind]
	if len(list) == 0 {
		return history.OK
	}
	if len(list) > 1 {
		s.answers[kind] = list[1:]
	}
	return list[0]
}

func (s *stand) answer(kind history.Kind) subjects.Answer {
	a := subjects.Answer{Outcome: s.next(kind), Node: 3}
	switch a.Outcome {
	case history.Refused:
		a.Err = errBusy
	case history.Unknown:
		a.Err = errLost
	case history.Failed:
		a.Err = errUnsent
	}
	return a
}

func (s *stand) Acquire(_ context.Context, client int, key string, ttl time.Duration) (subjects.Grant, subjects.Answer) {
	s.asked = append(s.asked, fmt.Sprintf("acquire %d %s %s", client, key, ttl))
	a := s.answer(history.Acquire)
	if a.Outcome != history.OK {
		return subjects.Grant{}, a
	}
	return s.grant, a
}

func (s *stand) Extend(_ context.Context, client int, key string, g subjects.Grant, ttl time.Duration) subjects.Answer {
	s.asked = append(s.asked, fmt.Sprintf("extend %d %s %s %v", client, key, ttl, g.Handle))
	return s.answer(history.Extend)
}

func (s *stand) Release(_ context.Context, client int, key string, g subjects.Grant) subjects.Answer {
	s.asked = append(s.asked, fmt.Sprintf("release %d %s %v", client, key, g.Handle))
	return s.answer(history.Release)
}

// Attempt is a register whose version is moved on by others: by ten with each read.
func (s *stand) Attempt(_ context.Context, a witness.Attempt) (witness.Decision, error) {
	s.asked = append(s.asked, fmt.Sprintf("%s %s token=%d base=%d", a.Kind, a.Key, a.Token, a.Version))
	outcome := s.next(a.Kind)
	switch outcome {
	case history.Unknown:
		return witness.Decision{}, errLost
	case history.Failed:
		return witness.Decision{}, errUnsent
	}
	s.sequence++
	if a.Kind == history.Read {
		s.version += 10
	}
	return witness.Decision{Accepted: outcome == history.OK, Version: s.version, Sequence: s.sequence}, nil
}

func (s *stand) point(_ context.Context, c *Client, name string) {
	if c.Grant == 0 {
		s.t.Errorf("at %s the client names no grant", name)
	}
	if name != RequestInFlight {
		s.note("· %s", name)
	}
	if do := s.at[name]; do != nil {
		do()
	}
}

func (s *stand) Key(name string) uint32 { n, _ := strconv.Atoi(name[1:]); return uint32(n) + 1 }

func (s *stand) Error(err error) uint16 {
	for i, known := range []error{nil, errBusy, errLost, errUnsent} {
		if errors.Is(err, known) {
			return uint16(i)
		}
	}
	s.t.Errorf("unexpected error %v", err)
	return 99
}

func (s *stand) Begin(op *history.Operation) history.Slot {
	if s.open {
		s.t.Errorf("%s begun while another operation is in flight", op.Kind)
	}
	s.open = true
	s.note("%s", told(op))
	return history.Slot{}
}

func (s *stand) End(_ history.Slot, op *history.Operation) {
	s.open = false
	s.note("%s → %s", told(op), op.Outcome)
}

// told is an operation with those of its fields that are not zero.
func told(op *history.Operation) string {
	text := fmt.Sprintf("%s k%d #%d", op.Kind, op.Key-1, uint32(op.Grant()))
	field := func(name string, value any, zero bool) {
		if !zero {
			text += fmt.Sprintf(" %s=%v", name, value)
		}
	}
	switch op.Kind {
	case history.Acquire, history.Extend:
		field("ttl", op.TTL(), op.TTL() == 0)
	}
	if op.Kind == history.Extend {
		field("generation", op.Generation(), false)
	}
	if op.Kind == history.Read || op.Kind == history.Write {
		field("version", op.Version(), op.Version() == 0)
		field("sequence", op.Sequence(), op.Sequence() == 0)
	}
	field("token", op.Token(), op.Kind == history.Lost || op.Token() == 0)
	field("error", op.Error, op.Error == 0)
	field("node", op.Node, op.Node == history.NoNode || op.Node == 0)
	return text
}
