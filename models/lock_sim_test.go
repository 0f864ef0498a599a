package models

import (
	"container/heap"
	"context"

	"testing"
	"time"

	"pgregory.net/rapid"

	"fencepost.dev/history"
)

const msec = int64(time.Millisecond)

// simTTL, simDrift, simGranularity and simError are what simulated locks and clocks keep to.
const (
	simTTL         = 100 * msec
	simDrift       = 0.01
	simGranularity = msec
	simError       = 3 * msec
)

// lockSim is a lock that is right, its clients, and the ways in which they lose sight of each other: every history that it
// makes is legal. It is a discrete-event simulation; true is the lock's own time.
type lockSim struct {
	t        *rapid.T
	contract Contract
	h        *history.History
	queue    simQueue
	now      int64

	holder   history.GrantID
	expired  bool
	expires  int64
	renewing bool
	token    int64

	offset  []int64 // of a process's clock
	dies    []int64 // when a process dies, or never
	clients []*simClient
}

type simClient struct {
	process, client uint16
	sequence        uint32
	grant           history.GrantID
	generation      int64
	left            int // operations
}

type simEvent struct {
	at    int64
	order int
	do    func()
}

type simQueue []simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(e any)   { *q = append(*q, e.(simEvent)) }
func (q *simQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (s *lockSim) at(t int64, do func()) {
	heap.Push(&s.queue, simEvent{max(t, s.now), len(s.queue), do})
}

// upTo draws a span: mostly short, now and then as long as it may be.
func (s *lockSim) upTo(most int64, label string) int64 {
	if rapid.IntRange(0, 3).Draw(s.t, label+" short") > 0 {
		most = min(most, 8*msec)
	}
	return rapid.Int64Range(0, most).Draw(s.t, label)
}

func (s *lockSim) chance(percent int, label string) bool {
	return rapid.IntRange(0, 99).Draw(s.t, label) < percent
}

// simulateLock makes a legal history of one lock.
func simulateLock(t *rapid.T, most int) (*history.History, Contract) {
	s := &lockSim{t: t, h: &history.History{Names: history.Names{Keys: []string{"", "k"}, Errors: []string{""}}}}
	s.contract = Contract{
		AfterExpiry: rapid.SampledFrom([]AfterExpiry{Gone, Takeable}).Draw(t, "after expiry"),
		LateBy:      rapid.SampledFrom([]float64{0, 0, 1}).Draw(t, "late by"),
		Renews:      rapid.SampledFrom([]Renews{RenewsClient, RenewsClient, RenewsItself}).Draw(t, "renews"),
		Refusals:    rapid.SampledFrom([]Refusals{Exact, Exact, MayBeSpurious}).Draw(t, "refusals"),
		ClockSkew:   rapid.SampledFrom([]int64{0, 0, 10 * msec}).Draw(t, "skew"),
		Tokens:      true,
	}
	processes := rapid.IntRange(1, 3).Draw(t, "processes")
	for p := range processes {
		s.h.Names.Workers = append(s.h.Names.Workers, history.Process{Worker: string(rune('a' + p)), Incarnation: 1, ClockError: simError})
		s.offset = append(s.offset, rapid.Int64Range(-simError, simError).Draw(t, "offset"))
		dies := never
		if s.chance(15, "dies") {
			dies = rapid.Int64Range(0, 400*msec).Draw(t, "death")
		}
		s.dies = append(s.dies, dies)
		for c := range rapid.IntRange(1, 2).Draw(t, "clients") {
			client := &simClient{process: uint16(p), client: uint16(c), left: rapid.IntRange(1, most).Draw(t, "operations")}
			s.clients = append(s.clients, client)
			s.at(s.upTo(150*msec, "start"), func() { s.turn(client) })
		}
		if dies != never {
			s.at(dies, func() { s.die(uint16(p)) })
		}
	}
	for s.queue.Len() > 0 {
		e := heap.Pop(&s.queue).(simEvent)
		s.now = e.at
		e.do()
	}
	return s.h, s.contract
}

func (s *lockSim) alive(c *simClient) bool { return s.now < s.dies[c.process] }

func (s *lockSim) die(process uint16) {
	s.h.Events = append(s.h.Events, history.Event{Kind: history.EventWorkerDied, Process: int(process), Node: -1, At: s.now + s.upTo(20*msec, "seen dead")})
	if s.renewing && int64(s.holder)>>48-1 == int64(process) {
		s.stopRenewing()
	}
}

// stopRenewing leaves the hold to its time-to-live, from the last renewal that was under way.
func (s *lockSim) stopRenewing() {
	s.renewing = false
	s.expires = s.now + rapid.Int64Range(0, Grace-1).Draw(s.t, "last renewal") + s.lifetime()
}

// lifetime is how long a time-to-live lasts by the lock's clock and its resolution, and what the contract lets it add.
func (s *lockSim) lifetime() int64 {
	ttl := float64(simTTL)
	life := int64(ttl*(1+rapid.Float64Range(-simDrift, simDrift).Draw(s.t, "drift"))) +
		rapid.Int64Range(-simGranularity, simGranularity).Draw(s.t, "resolution") +
		rapid.Int64Range(-s.contract.ClockSkew, s.contract.ClockSkew).Draw(s.t, "skewed")
	if s.contract.LateBy > 0 {
		life += rapid.Int64Range(0, int64(ttl*s.contract.LateBy)).Draw(s.t, "late")
	}
	return life
}

func (s *lockSim) turn(c *simClient) {
	if c.left == 0 || !s.alive(c) {
		return
	}
	c.left--
	op := history.Operation{Kind: history.Acquire, Key: 1, Worker: c.process, Client: c.client, Commit: history.Completed, Call: s.now}
	if c.grant != 0 {
		switch {
		case s.contract.Renews == RenewsItself && s.renewing && s.holder == c.grant && s.chance(25, "lost"):
			op.Kind = history.Lost
		case s.contract.Renews == RenewsItself || s.chance(50, "release"):
			op.Kind = history.Release
		case s.chance(90, "extend"):
			op.Kind = history.Extend
		}
	}
	switch op.Kind {
	case history.Acquire:
		c.sequence++
		c.grant, c.generation = history.NewGrantID(c.process, c.client, c.sequence), 0
		op.SetTTL(time.Duration(simTTL))
	case history.Extend:
		c.generation++
		op.SetGeneration(c.generation)
		op.SetTTL(time.Duration(simTTL))
	default:
		if s.renewing && s.holder == c.grant {
			s.stopRenewing()
		}
	}
	op.SetGrant(c.grant)
	s.send(c, op)
}

// send lets the request reach the lock, and the answer its client, or not.
func (s *lockSim) send(c *simClient, op history.Operation) {
	if op.Kind == history.Lost {
		op.Outcome = history.OK
		c.grant = 0
		s.record(c, op, s.now)
		return
	}
	switch fate := rapid.IntRange(0, 19).Draw(s.t, "fate"); {
	case fate < 15:
		s.at(s.now+s.upTo(140*msec, "there"), func() {
			op.Outcome = s.apply(&op)
			back := s.now + s.upTo(140*msec, "back")
			s.at(back, func() { s.answered(c, op) })
		})
	case fate < 16:
		op.Outcome = history.Failed
		s.at(s.now+s.upTo(50*msec, "failing"), func() { s.record(c, op, s.now); s.forget(c, op) })
	default:
		op.Outcome = history.Unknown
		giveUp := s.now + s.upTo(80*msec, "patience")
		if fate < 19 {
			closed := min(giveUp, s.dies[c.process])
			s.at(s.now+rapid.Int64Range(0, closed-s.now+Grace-1).Draw(s.t, "under way"), func() {
				applied := op
				s.apply(&applied)
			})
		}
		s.at(giveUp, func() { s.record(c, op, s.now); s.forget(c, op) })
	}
}

// forget is what a client does with a grant that it has no answer about: mostly it gives it up, or releases it to be sure.
func (s *lockSim) forget(c *simClient, op history.Operation) {
	if op.Kind == history.Acquire && s.chance(60, "forget") || op.Kind == history.Release {
		c.grant = 0
	}
}

func (s *lockSim) answered(c *simClient, op history.Operation) {
	if op.Kind == history.Acquire && op.Outcome == history.OK && s.contract.Renews == RenewsItself && s.alive(c) {
		if s.settle(); s.holder == c.grant && !s.expired {
			s.renewing, s.expires = true, never
		}
	}
	if op.Outcome == history.Refused || op.Kind == history.Release {
		c.grant = 0
	}
	s.record(c, op, s.now)
}

// record writes the operation as its process's clock saw it, and goes on with the client's next. The answer to a dead process
// is not recorded.
func (s *lockSim) record(c *simClient, op history.Operation, at int64) {
	op.Return = at
	if at >= s.dies[c.process] {
		op.Outcome, op.Commit = history.Unknown, history.Invoked
		op.SetToken(0)
	}
	op.Call += s.offset[c.process]
	op.Return += s.offset[c.process]
	if op.Commit == history.Invoked {
		op.Return = 0
	}
	s.h.Operations = append(s.h.Operations, op)
	s.at(at+s.upTo(120*msec, "rest"), func() { s.turn(c) })
}

// settle lets the hold expire if its time is over.
func (s *lockSim) settle() {
	if s.holder != 0 && !s.expired && s.now >= s.expires {
		s.expired = true
		if s.contract.AfterExpiry == Gone {
			s.holder, s.expired = 0, false
		}
	}
}

// apply is the lock.
func (s *lockSim) apply(op *history.Operation) history.Outcome {
	s.settle()
	mine := s.holder == op.Grant()
	switch op.Kind {
	case history.Acquire:
		spurious := s.contract.Refusals == MayBeSpurious && s.chance(20, "spurious")
		if s.holder != 0 && !s.expired || spurious {
			return history.Refused
		}
		s.token++
		op.SetToken(s.token)
		s.holder, s.expired, s.renewing = op.Grant(), false, false
		s.expires = s.now + s.lifetime()
	case history.Extend:
		if !mine {
			return history.Refused
		}
		s.expired = false
		s.expires = s.now + s.lifetime()
	case history.Release:
		if !mine {
			return history.Refused
		}
		s.holder, s.expired, s.renewing = 0, false, false
	}
	return history.OK
}

func simInput(t rapid.TB, h *history.History, c Contract) *Input {
	in, err := Prepare(h, PrepareOptions{
		Primitive: "lock", Contract: c, Drift: simDrift, Granularity: time.Duration(simGranularity), Limit: Limit{Parallel: 1, Time: 20 * time.Second},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return in
}

// A lock that keeps its contract is never accused, whatever its clients see of it.
func TestLegalLocksAreAccepted(t *testing.T) {
	histories(t, 10_000)
	seen := map[string]int64{}
	var all, undecided int
	rapid.Check(t, func(t *rapid.T) {
		all++
		h, contract := simulateLock(t, 6)
		in := simInput(t, h, contract)
		for name, n := range Count(in) {
			seen[name] += n
		}
		for _, check := range []Check{linearizable, mutualExclusion, tokenOrder} {
			switch r := check.Run(context.Background(), in); r.Verdict {
			case Inconclusive: // Porcupine's search explodes on one in many thousands
				undecided++
			case Violation:
				t.Fatalf("%s: %s %s\n%+v\n%+v\n%s", check.Name, r.Verdict, r.Reason, contract, r.Findings, dump(in))
			}
		}
	})
	for _, counter := range []string{"granted", "refused", "extended", "released", "unknown", "failed", "contended", "grants-lost", "worker-deaths"} {
		if seen[counter] == 0 && all >= 1000 { // a short run has a few dozen
			t.Errorf("no simulated history had anything %s", counter)
		}
	}
	t.Log(seen)
	if undecided > all/1000 {
		t.Errorf("%d of %d were left undecided", undecided, all)
	}
}

func dump(in *Input) string {
	var text string
	for _, p := range partitions(in, lockObject(in)) {
		for i := range p.ops {
			op := &p.ops[i]
			text += instant(op.Call) + ".." + instant(op.Return) + " " + describeLockOperation(op) + "\n"
		}
	}
	return text
}

// The same histories with something wrong in them are judged alike by Porcupine and by trying every order.
func TestMutatedLocksAreJudgedAlike(t *testing.T) {
	histories(t, 10_000)
	var accepted, rejected, long int
	rapid.Check(t, func(t *rapid.T) {
		h, contract := simulateLock(t, 2)
		mutate(t, h.Operations)
		in := simInput(t, h, contract)
		o := lockObject(in)
		for _, p := range partitions(in, o) {
			for _, ops := range [][]history.Operation{p.ops, relaxed(o.spec, p.ops)} {
				if len(ops) > 8 {
					long++
					continue
				}
				want := bruteForce(o.spec, ops)
				got := decidePorcupine(context.Background(), o.spec, ops, testBudget)
				if got.reason != "" || (got.verdict == Pass) != want {
					t.Fatalf("porcupine %v, brute force %v\n%+v\n%s", got, want, contract, dump(in))
				}
				if want {
					accepted++
				} else {
					rejected++
				}
			}
		}
	})
	t.Logf("accepted %d, rejected %d, too long for brute force %d", accepted, rejected, long)
	if n := accepted + rejected; rejected < n/20 || accepted < n/20 {
		t.Errorf("%d accepted and %d rejected: the mutations are lopsided", accepted, rejected)
	}
}

// mutate makes one thing of a history other than it was: an answer flipped, an expiry moved, two answers swapped, an interval
// moved, an operation left out.
func mutate(t *rapid.T, ops []history.Operation) {
	if len(ops) == 0 {
		return
	}
	any := func(label string) *history.Operation { return &ops[rapid.IntRange(0, len(ops)-1).Draw(t, label)] }
	op := any("mutated")
	switch rapid.SampledFrom([]string{"flip", "expiry", "swap", "move", "leave out"}).Draw(t, "mutation") {
	case "flip":
		if op.Outcome == history.OK {
			op.Outcome = history.Refused
		} else if op.Commit == history.Completed {
			op.Outcome = history.OK
		}
	case "expiry":
		op.SetTTL(op.TTL() * time.Duration(rapid.IntRange(1, 4).Draw(t, "times")) / 2)
	case "swap":
		other := any("other")
		if op.Commit == history.Completed && other.Commit == history.Completed {
			op.Outcome, other.Outcome = other.Outcome, op.Outcome
		}
	case "move":
		d := rapid.Int64Range(-150*msec, 150*msec).Draw(t, "by")
		op.Call += d
		if op.Commit == history.Completed {
			op.Return += d
		}
	case "leave out":
		if op.Commit == history.Completed {
			op.Outcome = history.Failed
		}
	}
}
