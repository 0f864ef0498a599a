package workloads

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/history"
)

// plainly is a section on one lock: 100 ms of work under a time-to-live of a second.
func plainly(client ClientKind) CriticalSection {
	return CriticalSection{Client: client, Keys: 1, TTL: time.Second, Hold: 100 * time.Millisecond}
}

func TestATurnsOperations(t *testing.T) {
	s := turn(t, plainly(Trusting), func(s *stand) { s.grant.Handle = "mine" }, false)
	s.tells(`
		0s acquire k0 #1 ttl=1s
		0s acquire k0 #1 ttl=1s token=7 node=3 → ok
		0s · before-read
		0s read k0 #1
		0s read k0 #1 version=10 sequence=1 → ok
		0s · holding
		100ms · before-write
		100ms write k0 #1 version=10
		100ms write k0 #1 version=10 sequence=2 → ok
		100ms release k0 #1 token=7
		100ms release k0 #1 token=7 node=3 → ok`)
	want := []string{"acquire 2 k0 1s", "read k0 token=0 base=0", "write k0 token=0 base=10", "release 2 k0 mine"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked %q, not %q", s.asked, want)
	}
}

func TestAFencedClientShowsItsToken(t *testing.T) {
	s := turn(t, plainly(Fenced), func(*stand) {}, false)
	want := []string{"acquire 2 k0 1s", "read k0 token=7 base=0", "write k0 token=7 base=10", "release 2 k0 <nil>"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked %q, not %q", s.asked, want)
	}
	if diary := strings.Join(s.diary, "\n"); strings.Count(diary, "write k0 #1 version=10 token=7") != 1 {
		t.Errorf("the token of the write is not recorded before it is sent:\n%s", diary)
	}
}

// What comes of an acquire that is not granted, and what is recorded of it.
func TestNotGranted(t *testing.T) {
	waiting := plainly(Trusting)
	waiting.Wait, waiting.Retry = 25*time.Millisecond, 10*time.Millisecond
	busy := func(s *stand) { s.answers[history.Acquire] = []history.Outcome{history.Refused} }
	t.Run("refused", func(t *testing.T) {
		turn(t, plainly(Trusting), busy, false).tells(`
			0s acquire k0 #1 ttl=1s
			0s acquire k0 #1 ttl=1s error=1 node=3 → refused`)
	})
	t.Run("refused until waiting is over: each try is a grant of its own", func(t *testing.T) {
		turn(t, waiting, busy, false).tells(`
			0s acquire k0 #1 ttl=1s
			0s acquire k0 #1 ttl=1s error=1 node=3 → refused
			10ms acquire k0 #2 ttl=1s
			10ms acquire k0 #2 ttl=1s error=1 node=3 → refused
			20ms acquire k0 #3 ttl=1s
			20ms acquire k0 #3 ttl=1s error=1 node=3 → refused`)
	})
	t.Run("refused once", func(t *testing.T) {
		s := turn(t, waiting, func(s *stand) {
			s.answers[history.Acquire] = []history.Outcome{history.Refused, history.OK}
		}, false)
		if last := s.diary[len(s.diary)-1]; last != "110ms release k0 #2 token=7 node=3 → ok" {
			t.Errorf("it ended with %q", last)
		}
	})
	t.Run("cancelled while it waits", func(t *testing.T) {
		turn(t, waiting, func(s *stand) {
			busy(s)
			time.AfterFunc(5*time.Millisecond, s.at["cancel"])
		}, false).tells(`
			0s acquire k0 #1 ttl=1s
			0s acquire k0 #1 ttl=1s error=1 node=3 → refused`)
	})
	// Nobody asks again after what may have been granted, or could not be sent.
	for outcome, code := range map[history.Outcome]string{history.Unknown: "2", history.Failed: "3"} {
		t.Run(outcome.String(), func(t *testing.T) {
			turn(t, waiting, func(s *stand) { s.answers[history.Acquire] = []history.Outcome{outcome} }, false).tells(`
				0s acquire k0 #1 ttl=1s
				0s acquire k0 #1 ttl=1s error=` + code + ` node=3 → ` + outcome.String())
		})
	}
}

// A read that was not accepted ends the work, a write doesn't undo it, and the lock is given up either way.
func TestAttemptsThatAreNotAccepted(t *testing.T) {
	for outcome, recorded := range map[history.Outcome]string{
		history.Refused: "sequence=1 token=7", history.Unknown: "token=7 error=2", history.Failed: "token=7 error=3",
	} {
		t.Run("read "+outcome.String(), func(t *testing.T) {
			turn(t, plainly(Fenced), func(s *stand) { s.answers[history.Read] = []history.Outcome{outcome} }, false).tells(`
				0s acquire k0 #1 ttl=1s
				0s acquire k0 #1 ttl=1s token=7 node=3 → ok
				0s · before-read
				0s read k0 #1 token=7
				0s read k0 #1 ` + recorded + ` → ` + outcome.String() + `
				0s release k0 #1 token=7
				0s release k0 #1 token=7 node=3 → ok`)
		})
	}
	t.Run("write refused", func(t *testing.T) {
		s := turn(t, plainly(Fenced), func(s *stand) { s.answers[history.Write] = []history.Outcome{history.Refused} }, false)
		if want := "100ms write k0 #1 version=10 sequence=2 token=7 → refused"; !slices.Contains(s.diary, want) {
			t.Errorf("no %q in %q", want, s.diary)
		}
		if last := s.asked[len(s.asked)-1]; last != "release 2 k0 <nil>" {
			t.Errorf("it ended with %q", last)
		}
	})
}

func TestRenewal(t *testing.T) {
	renewing := func(client ClientKind) CriticalSection {
		p := plainly(client)
		p.TTL, p.Hold, p.Renew = 100*time.Millisecond, 250*time.Millisecond, 80*time.Millisecond
		return p
	}
	writes := func(s *stand) bool { return strings.Contains(strings.Join(s.asked, "\n"), "write") }
	t.Run("each acknowledged extension is a generation", func(t *testing.T) {
		turn(t, renewing(Checking), func(*stand) {}, false).tells(`
			0s acquire k0 #1 ttl=100ms
			0s acquire k0 #1 ttl=100ms token=7 node=3 → ok
			0s · before-read
			0s read k0 #1
			0s read k0 #1 version=10 sequence=1 → ok
			0s · holding
			80ms · before-extend
			80ms extend k0 #1 ttl=100ms generation=1 token=7
			80ms extend k0 #1 ttl=100ms generation=1 token=7 node=3 → ok
			160ms · before-extend
			160ms extend k0 #1 ttl=100ms generation=2 token=7
			160ms extend k0 #1 ttl=100ms generation=2 token=7 node=3 → ok
			240ms · before-extend
			240ms extend k0 #1 ttl=100ms generation=3 token=7
			240ms extend k0 #1 ttl=100ms generation=3 token=7 node=3 → ok
			250ms · before-write
			250ms write k0 #1 version=10
			250ms write k0 #1 version=10 sequence=2 → ok
			250ms release k0 #1 token=7
			250ms release k0 #1 token=7 node=3 → ok`)
	})
	for _, client := range []ClientKind{Trusting, Checking, Fenced} {
		t.Run(string(client)+" is refused, and doesn't write", func(t *testing.T) {
			s := turn(t, renewing(client), func(s *stand) { s.answers[history.Extend] = []history.Outcome{history.Refused} }, false)
			want := []string{"80ms extend k0 #1 ttl=100ms generation=1 token=7 error=1 node=3 → refused",
				"80ms release k0 #1 token=7", "80ms release k0 #1 token=7 node=3 → ok"}
			if got := s.diary[len(s.diary)-3:]; !slices.Equal(got, want) {
				t.Errorf("it ended with %q, not %q", got, want)
			}
		})
	}
	for _, c := range []struct {
		name    string
		client  ClientKind
		answers []history.Outcome
		takes   time.Duration // by each extension
		writes  bool
	}{
		{"one answer lost", Checking, []history.Outcome{history.OK, history.Unknown, history.OK}, 0, true},
		{"one not sent", Checking, []history.Outcome{history.Failed, history.OK}, 0, true},
		{"all lost", Checking, []history.Outcome{history.Unknown}, 0, false},
		{"all lost, and nobody looks", Trusting, []history.Outcome{history.Unknown}, 0, true},
		{"lost when the time was over", Checking, []history.Outcome{history.Unknown}, 20 * time.Millisecond, false},
		{"lost when a little was left", Checking, []history.Outcome{history.Unknown, history.OK}, 19 * time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := turn(t, renewing(c.client), func(s *stand) {
				s.answers[history.Extend] = c.answers
				s.takes[history.Extend] = c.takes
			}, false)
			if writes(s) != c.writes {
				t.Errorf("wrote: %v\n%s", writes(s), strings.Join(s.diary, "\n"))
			}
		})
	}
}

// A checking client counts from before it asked, by its own clock, and writes only before its time is over.
func TestAClientThatLooksAtItsClock(t *testing.T) {
	for _, c := range []struct {
		name     string
		client   ClientKind
		acquire  time.Duration // how long it takes
		late     time.Duration // spent at "holding"
		skew     time.Duration // of the client's clock, from then on
		validity time.Duration // that the subject vouches for
		writes   bool
	}{
		{name: "in time", client: Checking, late: 899 * time.Millisecond, writes: true},
		{name: "just past it", client: Checking, late: 900 * time.Millisecond},
		{name: "nobody looks", client: Trusting, late: time.Hour, writes: true},
		{name: "the resource looks", client: Fenced, late: time.Hour, writes: true},
		{name: "the answer was slow", client: Checking, acquire: 500 * time.Millisecond, late: 400 * time.Millisecond},
		{name: "its clock is fast", client: Checking, skew: 900 * time.Millisecond},
		{name: "its clock is slow", client: Checking, late: 950 * time.Millisecond, skew: -100 * time.Millisecond, writes: true},
		{name: "the subject vouches for less", client: Checking, late: 100 * time.Millisecond, validity: 200 * time.Millisecond},
		{name: "and no more is used", client: Checking, late: 99 * time.Millisecond, validity: 200 * time.Millisecond, writes: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := turn(t, plainly(c.client), func(s *stand) {
				s.takes[history.Acquire] = c.acquire
				s.grant.Validity = c.validity
				s.at["holding"] = func() { time.Sleep(c.late); s.skew = c.skew }
			}, false)
			if got := strings.Contains(strings.Join(s.asked, "\n"), "write"); got != c.writes {
				t.Errorf("wrote: %v\n%s", got, strings.Join(s.diary, "\n"))
			}
			if last := s.asked[len(s.asked)-1]; last != "release 2 k0 <nil>" {
				t.Errorf("it ended with %q", last)
			}
		})
	}
}

func TestLostWhileHeld(t *testing.T) {
	turn(t, plainly(Trusting), func(s *stand) {
		c := make(chan struct{})
		s.grant.Lost = c
		time.AfterFunc(40*time.Millisecond, func() { close(c) })
	}, false).tells(`
		0s acquire k0 #1 ttl=1s
		0s acquire k0 #1 ttl=1s token=7 node=3 → ok
		0s · before-read
		0s read k0 #1
		0s read k0 #1 version=10 sequence=1 → ok
		0s · holding
		40ms lost k0 #1
		40ms lost k0 #1 → ok
		40ms release k0 #1 token=7
		40ms release k0 #1 token=7 node=3 → ok`)
}

// When the run is over a client makes no further call, not even to release.
func TestCancelled(t *testing.T) {
	s := turn(t, plainly(Trusting), func(s *stand) {
		s.at["holding"] = func() { time.AfterFunc(40*time.Millisecond, s.at["cancel"]) }
	}, false)
	if last := s.diary[len(s.diary)-1]; last != "0s · holding" {
		t.Errorf("it ended with %q", last)
	}
}

func TestFinalAsksForEveryLock(t *testing.T) {
	p := plainly(Trusting)
	p.Keys = 3
	s := turn(t, p, func(s *stand) {
		s.answers[history.Acquire] = []history.Outcome{history.OK, history.Refused, history.OK}
	}, true)
	want := []string{"acquire 2 k0 1s", "release 2 k0 <nil>", "acquire 2 k1 1s", "acquire 2 k2 1s", "release 2 k2 <nil>"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked %q, not %q", s.asked, want)
	}
	p.Keys = 1000
	if s := turn(t, p, func(*stand) {}, true); len(s.asked) != 2*64 {
		t.Errorf("%d questions about 1000 locks", len(s.asked))
	}
}

func TestASectionNeedsALock(t *testing.T) {
	if _, err := criticalSection.New(3, criticalSection.Parameters(), Env{}); err == nil ||
		err.Error() != "workloads: critical-section needs a lock, and int is none" {
		t.Error(err)
	}
}

func TestFencedAndLeftover(t *testing.T) {
	p := plainly(Checking)
	p.Wait, p.Retry = 50*time.Millisecond, time.Millisecond
	if got := criticalSection.Leftover(&p); got != 150*time.Millisecond {
		t.Errorf("a turn may go on for %s", got)
	}
	for client, want := range map[ClientKind]bool{Trusting: false, Checking: false, Fenced: true} {
		p.Client = client
		if criticalSection.Fenced(&p) != want {
			t.Errorf("%s fenced: %v", client, !want)
		}
	}
}

func TestValidate(t *testing.T) {
	const ms = time.Millisecond
	if err := criticalSection.Parameters().(*CriticalSection).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for _, c := range []struct {
		change func(*CriticalSection)
		want   string // "" for none
	}{
		{func(p *CriticalSection) { p.Client = "trustful" }, `client: "trustful" is none of trusting, checking, fenced`},
		{func(p *CriticalSection) { p.Keys = 0 }, "keys: must be between 1 and 1000000, is 0"},
		{func(p *CriticalSection) { p.Keys = 1_000_000 }, ""},
		{func(p *CriticalSection) { p.Keys = 1_000_001 }, "keys: must be between 1 and 1000000, is 1000001"},
		{func(p *CriticalSection) { p.TTL = ms }, ""},
		{func(p *CriticalSection) { p.TTL = ms - 1 }, "ttl: must be at least 1ms, is 999.999µs"},
		{func(p *CriticalSection) { p.Hold = 0 }, ""},
		{func(p *CriticalSection) { p.Hold = -1 }, "hold: must not be negative, is -1ns"},
		{func(p *CriticalSection) { p.Renew = -1 }, "renew: must not be negative, is -1ns"},
		{func(p *CriticalSection) { p.Renew = time.Second - 1 }, ""},
		{func(p *CriticalSection) { p.Renew = time.Second }, "renew: must come before the ttl (1s) is over, is 1s"},
		{func(p *CriticalSection) { p.Wait = -1 }, "wait: must not be negative, is -1ns"},
		{func(p *CriticalSection) { p.Wait = ms }, "retry: must be positive when there is a wait, is 0s"},
		{func(p *CriticalSection) { p.Wait, p.Retry = ms, 1 }, ""},
		{func(p *CriticalSection) { p.Keys, p.Hold = 0, -1 }, "keys: must be between 1 and 1000000, is 0\nhold: must not be negative, is -1ns"},
	} {
		p := plainly(Trusting)
		c.change(&p)
		got := ""
		if err := p.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, not %q", p, got, c.want)
		}
	}
}

func TestFind(t *testing.T) {
	for _, k := range All() {
		if found, ok := Find(k.Name); !ok || found.Summary != k.Summary {
			t.Errorf("%s is not found", k.Name)
		}
		if k.Name == "" || k.Summary == "" || len(k.Primitives) == 0 || k.Parameters == nil || k.New == nil || k.Fenced == nil || k.Leftover == nil {
			t.Errorf("%+v is incomplete", k)
		}
	}
	if _, ok := Find("critical-selection"); ok {
		t.Error("found what there is not")
	}
}
