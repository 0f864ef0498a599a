package witness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"fencepost.dev/history"
	"fencepost.dev/plane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is a witness's log, by key.
type log struct {
	mu   sync.Mutex
	keys map[string][]history.Operation
}

func (l *log) add(key string, op history.Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil {
		l.keys = map[string][]history.Operation{}
	}
	l.keys[key] = append(l.keys[key], op)
}

// ticks is a clock that never shows the same time twice.
func ticks() func() int64 {
	var t atomic.Int64
	return func() int64 { return t.Add(1) }
}

// story makes attempts one after another, and gives what the log says of each: "+" accepted, "-" refused.
func story(t *testing.T, fenced bool, attempts ...Attempt) (decisions string, l *log, got []Decision) {
	t.Helper()
	l = &log{}
	r := NewRegisters(fenced, ticks(), l.add)
	for _, a := range attempts {
		d, err := r.Attempt(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
		decisions += map[bool]string{true: "+", false: "-"}[d.Accepted]
	}
	return decisions, l, got
}

func read(grant history.GrantID, token int64) Attempt {
	return Attempt{Kind: history.Read, Key: "k", Grant: grant, Token: token}
}

func write(grant history.GrantID, token, base int64) Attempt {
	return Attempt{Kind: history.Write, Key: "k", Grant: grant, Token: token, Version: base}
}

func TestDecisions(t *testing.T) {
	const a, b = history.GrantID(1), history.GrantID(2)
	for _, c := range []struct {
		name     string
		fenced   bool
		attempts []Attempt
		expect   string
	}{
		{"unfenced takes what comes", false, []Attempt{write(a, 2, 0), write(b, 1, 0), write(b, 2, 0), read(0, 0), write(0, 0, 9)}, "+++++"},
		{"a higher token, and the same again", true, []Attempt{read(a, 1), write(a, 1, 0), read(b, 2), write(b, 2, 1), write(b, 2, 2)}, "+++++"},
		{"a write raises the fence", true, []Attempt{write(b, 2, 0), write(a, 1, 0)}, "+-"},
		{"a read raises it too", true, []Attempt{read(b, 2), write(a, 1, 0)}, "+-"},
		{"a stale read is refused", true, []Attempt{write(b, 2, 0), read(a, 1)}, "+-"},
		{"a known token of another grant", true, []Attempt{read(a, 1), read(b, 1), write(b, 1, 0), write(a, 1, 0)}, "+--+"},
		{"no token", true, []Attempt{read(0, 0), write(0, 0, 0), write(a, 1, 0), write(0, 0, 1)}, "--+-"},
		{"a refused token raises nothing", true, []Attempt{read(a, 5), read(b, 3), read(b, 4), read(a, 5)}, "+--+"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, _, _ := story(t, c.fenced, c.attempts...); got != c.expect {
				t.Errorf("decided %s, not %s", got, c.expect)
			}
		})
	}
}

// A reads and is paused past its lease; B is granted it, and reads. A wakes and writes, B writes.
var lostUpdate = []Attempt{read(1, 33), read(2, 34), write(1, 33, 0), write(2, 34, 0)}

// A register that is fenced on writes alone would accept A's write, as no higher token has been written; and then B's, which
// was based on what it read before: A's update is lost although no write was stale. That reads raise the fence prevents it.
func TestFencingWritesAloneLosesAnUpdate(t *testing.T) {
	// Writes alone: the reads go past the fence.
	var writes []Attempt
	for _, a := range lostUpdate {
		if a.Kind == history.Write {
			writes = append(writes, a)
		}
	}
	if got, _, _ := story(t, true, writes...); got != "++" {
		t.Errorf("with fenced writes alone: %s, not ++", got)
	}
	got, _, d := story(t, true, lostUpdate...)
	if got != "++-+" {
		t.Errorf("with fenced reads: %s, not ++-+", got)
	}
	if d[3].Version != 1 {
		t.Errorf("B's write, based on version 0, made version %d", d[3].Version)
	}
	if got, _, d := story(t, false, lostUpdate...); got != "++++" || d[3].Version != 2 {
		t.Errorf("unfenced: %s, and B's write, based on version 0, made version %d", got, d[3].Version)
	}
}

func TestLog(t *testing.T) {
	attempts := []Attempt{
		{Kind: history.Read, Key: "k", Process: 3, Client: 4, Grant: 7, Token: 33},
		{Kind: history.Write, Key: "k", Process: 3, Client: 4, Grant: 7, Token: 33, Version: 0},
		{Kind: history.Write, Key: "k", Process: 1, Client: 2, Grant: 6, Token: 32, Version: 5},
		{Kind: history.Read, Key: "other", Process: 1, Client: 2, Grant: 6, Token: 32},
		{Kind: history.Read, Key: "k", Process: 1, Client: 2, Grant: 6, Token: 32},
		{Kind: history.Read, Key: "k", Process: 3, Client: 4, Grant: 7, Token: 33},
	}
	_, l, _ := story(t, true, attempts...)
	op := func(at int64, kind history.Kind, outcome history.Outcome, a Attempt, version, sequence int64) history.Operation {
		o := history.Operation{Call: at, Return: at, Worker: a.Process, Client: a.Client, Node: history.NoNode,
			Kind: kind, Outcome: outcome, Commit: history.Completed}
		o.SetToken(a.Token)
		o.SetGrant(a.Grant)
		o.SetVersion(version)
		o.SetSequence(sequence)
		return o
	}
	expect := map[string][]history.Operation{
		"k": {
			op(1, history.Read, history.OK, attempts[0], 0, 1),
			op(2, history.Write, history.OK, attempts[1], 0, 2),
			op(3, history.Write, history.Refused, attempts[2], 5, 3),
			op(5, history.Read, history.Refused, attempts[4], 0, 4),
			op(6, history.Read, history.OK, attempts[5], 1, 5),
		},
		"other": {op(4, history.Read, history.OK, attempts[3], 0, 1)},
	}
	if fmt.Sprint(l.keys) != fmt.Sprint(expect) {
		t.Errorf("the log is\n%+v\nnot\n%+v", l.keys, expect)
	}
}

func TestAttemptsThatMakeNoSense(t *testing.T) {
	l := &log{}
	r := NewRegisters(false, ticks(), l.add)
	if _, err := r.Attempt(t.Context(), Attempt{Kind: history.Acquire, Key: "k"}); err == nil {
		t.Error("a register was acquired")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := r.Attempt(ended, write(0, 0, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("an attempt whose context has ended: %v", err)
	}
	if len(l.keys) != 0 {
		t.Errorf("they are in the log: %v", l.keys)
	}
}

// Whatever is attempted, by however many at once: the log of each key tells one order, with times that agree with it, in
// which versions count the accepted writes; and where the register is fenced, no accepted attempt is stale in that order,
// and none that isn't was refused.
func TestAnyAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fenced := rapid.Bool().Draw(t, "fenced")
		clients := rapid.IntRange(1, 4).Draw(t, "clients")
		attempt := rapid.Custom(func(t *rapid.T) Attempt {
			return Attempt{
				Kind:    rapid.SampledFrom([]history.Kind{history.Read, history.Write}).Draw(t, "kind"),
				Key:     rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
				Grant:   history.GrantID(rapid.IntRange(0, 3).Draw(t, "grant")),
				Token:   rapid.Int64Range(-1, 4).Draw(t, "token"),
				Version: rapid.Int64Range(0, 5).Draw(t, "version"),
			}
		})
		l := &log{}
		r := NewRegisters(fenced, ticks(), l.add)
		type made struct {
			Attempt
			Decision
		}
		all := make([][]made, clients)
		var group sync.WaitGroup
		for c := range clients {
			list := rapid.SliceOfN(attempt, 0, 12).Draw(t, "attempts")
			group.Go(func() {
				for _, a := range list {
					a.Client = uint16(c)
					d, err := r.Attempt(context.Background(), a)
					if err != nil {
						panic(err)
					}
					all[c] = append(all[c], made{a, d})
				}
			})
		}
		group.Wait()

		logged := map[string]int{}
		for key, ops := range l.keys {
			var version, fence, last int64
			holder := history.GrantID(-1)
			for i, o := range ops {
				accepted := o.Outcome == history.OK
				if o.Sequence() != int64(i+1) || o.Call <= last || o.Return != o.Call {
					t.Fatalf("%s: place %d holds sequence %d at %d, after %d", key, i+1, o.Sequence(), o.Call, last)
				}
				last = o.Call
				stale := o.Token() < fence || o.Token() == fence && fence != 0 && o.Grant() != holder || o.Token() <= 0
				if refuse := fenced && stale; accepted == refuse {
					t.Fatalf("%s: token %d of grant %d at fence %d of grant %d: %v", key, o.Token(), o.Grant(), fence, holder, o.Outcome)
				}
				if accepted {
					fence, holder = o.Token(), o.Grant()
				}
				if accepted && o.Kind == history.Write {
					version++
				}
				if accepted && o.Kind == history.Read && o.Version() != version {
					t.Fatalf("%s: version %d was read after %d writes", key, o.Version(), version)
				}
			}
			logged[key] = len(ops)
		}
		for _, list := range all {
			for _, m := range list {
				o := l.keys[m.Key][m.Sequence-1]
				if o.Client != m.Client || o.Kind != m.Kind || o.Token() != m.Token || (o.Outcome == history.OK) != m.Accepted {
					t.Fatalf("a client was told %+v; the log has %+v", m, o)
				}
				logged[m.Key]--
			}
		}
		if logged["a"] != 0 || logged["b"] != 0 {
			t.Fatalf("the log holds others' attempts too: %v", logged)
		}
	})
}

// served is a register behind the plane, and a connection to it.
func served(t testing.TB, r Register) (*plane.Conn, *plane.Hub, func()) {
	t.Helper()
	hub, err := plane.Listen(context.Background(), plane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	cancel, err := Serve(hub.Conn(), r)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := plane.Dial(context.Background(), hub.URL(), hub.Token(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn, hub, cancel
}

func TestOverThePlane(t *testing.T) {
	l := &log{}
	conn, _, cancel := served(t, NewRegisters(true, ticks(), l.add))
	r := Dial(conn)
	outcome := func(a Attempt) (Decision, history.Outcome) {
		d, err := r.Attempt(t.Context(), a)
		return d, OutcomeOf(d.Accepted, err)
	}
	a := Attempt{Kind: history.Write, Key: "é \"k\"", Process: 65535, Client: 65534, Grant: history.NewGrantID(65534, 65535, 1<<32-1), Token: 1 << 62, Version: 1<<63 - 1}
	if d, o := outcome(a); o != history.OK || d != (Decision{Accepted: true, Version: 1, Sequence: 1}) {
		t.Errorf("%v: %+v", o, d)
	}
	if o := l.keys[a.Key][0]; o.Grant() != a.Grant || o.Token() != a.Token || o.Version() != a.Version || o.Worker != a.Process || o.Client != a.Client {
		t.Errorf("the log has %+v", o)
	}
	a.Token--
	if d, o := outcome(a); o != history.Refused || d.Sequence != 2 {
		t.Errorf("%v: %+v", o, d)
	}
	a.Kind = history.Acquire
	if _, o := outcome(a); o != history.Failed {
		t.Errorf("what makes no sense is %v", o)
	}
	cancel()
	a.Kind = history.Read
	if _, o := outcome(a); o != history.Failed {
		t.Errorf("when nobody serves it is %v", o)
	}
	conn.Close()
	if _, o := outcome(a); o != history.Failed {
		t.Errorf("on a closed connection it is %v", o)
	}
	if n := len(l.keys[a.Key]); n != 2 {
		t.Errorf("the log holds %d attempts", n)
	}
}

// slow decides, and then doesn't answer in time.
type slow struct {
	Register
	decided chan struct{}
}

func (s slow) Attempt(ctx context.Context, a Attempt) (Decision, error) {
	d, err := s.Register.Attempt(ctx, a)
	close(s.decided)
	<-ctx.Done()
	return d, err
}

// The answer to a write that was accepted is lost: its client must not take that for a no.
func TestLostAnswerIsUnknown(t *testing.T) {
	l := &log{}
	s := slow{NewRegisters(false, ticks(), l.add), make(chan struct{})}
	conn, _, cancel := served(t, s)
	defer cancel()
	ctx, end := context.WithCancel(t.Context())
	go func() { <-s.decided; end() }()
	d, err := Dial(conn).Attempt(ctx, write(1, 0, 0))
	if o := OutcomeOf(d.Accepted, err); o != history.Unknown {
		t.Errorf("it is %v: %v", o, err)
	}
	if o := l.keys["k"][0]; o.Outcome != history.OK {
		t.Errorf("the log has it as %v", o.Outcome)
	}
}

// The hub ends while an answer is awaited.
func TestBrokenConnectionIsUnknown(t *testing.T) {
	s := slow{NewRegisters(false, ticks(), (&log{}).add), make(chan struct{})}
	conn, hub, cancel := served(t, s)
	defer cancel()
	go func() { <-s.decided; hub.Close() }()
	ctx, end := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer end()
	d, err := Dial(conn).Attempt(ctx, write(1, 0, 0))
	if o := OutcomeOf(d.Accepted, err); o != history.Unknown {
		t.Errorf("it is %v: %v", o, err)
	}
}

func BenchmarkAttempt(b *testing.B) {
	r := NewRegisters(true, ticks(), func(string, history.Operation) {})
	a := write(1, 1, 0)
	b.ReportAllocs()
	for b.Loop() {
		r.Attempt(context.Background(), a)
	}
}

// One client over loopback, both ends in this process.
func BenchmarkRoundTrip(b *testing.B) {
	conn, _, cancel := served(b, NewRegisters(true, ticks(), func(string, history.Operation) {}))
	defer cancel()
	r := Dial(conn)
	for b.Loop() {
		if _, err := r.Attempt(context.Background(), write(1, 1, 0)); err != nil {
			b.Fatal(err)
		}
	}
}

// Eight clients at once.
func BenchmarkRoundTripsTogether(b *testing.B) {
	conn, _, cancel := served(b, NewRegisters(true, ticks(), func(string, history.Operation) {}))
	defer cancel()
	r := Dial(conn)
	b.SetParallelism(4)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := r.Attempt(context.Background(), write(1, 1, 0)); err != nil {
				b.Error(err)
			}
		}
	})
}
