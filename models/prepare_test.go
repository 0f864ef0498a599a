package models

import (
	"strings"
	"testing"
	"time"

	"fencepost.dev/history"
)

// The bound of an unknown operation: until when, in ms, it can take effect. It is called at 0 and given up at 100 by w1, and
// asks node 0.
func TestBound(t *testing.T) {
	const op = "w1/c0 acquire k 0..100 unknown A node=0\n"
	const forever = -1
	cases := []struct {
		name  string
		story string
		bound time.Duration // stated by the contract
		want  float64
	}{
		{"a quiet path", op, 0, 1100},
		{"as the contract states", op, 300 * time.Millisecond, 400},
		{"as the contract states, whatever happens", op + "! pause valkey/0 50..2000", 300 * time.Millisecond, 400},
		{"nobody knows", op, time.Duration(Unbounded), forever},

		{"its worker died with the request under way", "w1/c0 acquire k 0..? unknown A node=0\n ! died w1 70", 0, 1070},
		{"its worker died after it gave up", op + "! died w1 500", 0, 1100},
		{"it was still open at the end", "w1/c0 acquire k 0..? unknown A node=0\n w2/c0 acquire k 5000..5001 ok B", 0, 6001},

		{"the node was paused, and the request waited in its socket", op + "! pause valkey/0 50..2000", 0, 3000},
		{"and answered later than it ran", op + "! pause valkey/0 50..2000\n ! answering valkey/0 2100 delay=2100", 0, 3100},
		{"another node was paused", op + "! pause valkey/1 50..2000\n ! answering valkey/1 2100 delay=2100", 0, 1100},
		{"the node was paused before the call", op + "! pause valkey/0 -50..-10", 0, 1100},
		{"the node was paused when all was over", op + "! pause valkey/0 1200..2000\n ! answering valkey/0 2100 delay=950", 0, 1100},
		{"the node was paused while it was not", op + "! pause valkey/0 900..2000", 0, 3000},
		{"the node stayed paused", op + "! pause valkey/0 50..", 0, forever},
		{"one pause after another", op + "! pause valkey/0 50..200\n ! pause valkey/0 1100..1300\n ! pause valkey/0 2200..2500", 0, 3500},
		{"with a gap that is long enough", op + "! pause valkey/0 50..200\n ! pause valkey/0 1300..1500", 0, 1200},
		{"the node fell silent by itself, or its link did: TCP waits as long again", op + "! answering valkey/0 9000 delay=8950", 0, 9000 + 1000 + 8950},
		{"the node fell silent by itself, and another before it", op + "! answering valkey/1 8000 delay=7950\n ! answering valkey/0 9000 delay=8950", 0, 9000 + 1000 + 8950},
		{"the node fell silent by itself when all was over", op + "! answering valkey/0 9000 delay=7850", 0, 1100},
		{"nobody knows for how long the node was silent", op + "! answering valkey/0 9000", 0, 10000},
		{"one silence after another", "w1/c0 acquire k 0..10000 unknown A node=0\n ! answering valkey/0 5000 delay=200\n ! answering valkey/0 20000 delay=9500", 0, 20000 + 1000 + 9500},
		{"a silence, and a pause before the bound that it leaves", "w1/c0 acquire k 0..10000 unknown A node=0\n ! answering valkey/0 20000 delay=10000\n ! pause valkey/0 20500..40000", 0, 40000 + 1000 + 10000},
		{"the asked node is not known", "w1/c0 acquire k 0..100 unknown A node=65535\n ! pause valkey/1 50..2000", 0, 3000},

		{"its worker was paused, and gave up afterwards", "w1/c0 acquire k 0..2000 unknown A node=0\n ! pause w1 50..1950", 0, 3000},
		{"another worker was paused", op + "w2/c0 acquire k 0..1 ok B\n ! pause w2 50..1950", 0, 1100},
		{"a kill of its worker keeps no request", "w1/c0 acquire k 0..? unknown A node=0\n ! kill w1 60..\n ! died w1 70", 0, 1070},
		{"the node was killed, and stayed dead", op + "! kill valkey/0 50..", 0, 1100},
		{"the node was killed and came back", op + "! kill valkey/0 50..700\n ! answering valkey/0 800 delay=800", 0, 1800 + 650},

		{"a delay on its path", op + "! delay w1>valkey/0 0..500 delay=3000", 0, 500 + 1000 + 3000},
		{"a delay on another's path", op + "w2/c0 acquire k 0..1 ok B\n ! delay w2>valkey/0 0..500 delay=3000", 0, 1100},
		{"a delay on the path of all its worker's incarnations", "w1.2/c0 acquire k 0..100 unknown A node=0\n w1/c0 acquire k 0..1 ok B\n ! delay w1>valkey/0 0..500 delay=3000", 0, 500 + 1000 + 3000},
		{"a delay on the path of one incarnation, by its full name", "w1.2/c0 acquire k 0..100 unknown A node=0\n ! delay w1.2>valkey/0 0..500 delay=3000", 0, 500 + 1000 + 3000},
		{"a cut of its path: TCP waits as long again", op + "! partition w1>valkey/0 50..450", 0, 450 + 1000 + 400},
		{"a cut that healed later than it was undone", op + "! partition w1>valkey/0 50..450\n ! healed w1>valkey/0 650 delay=600", 0, 650 + 1000 + 600},
		{"a cut that was never undone", op + "! partition w1>valkey/0 50..", 0, forever},
		{"a skewed clock keeps nothing", op + "! skew valkey/0 50..", 0, 1100},
		{"a flush is over at once", op + "! flush valkey/0 50..", 0, 1100},
		{"its worker's clock error", op + "clock w1 2", 0, 1102},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := prepared(t, c.story, PrepareOptions{Contract: Contract{RequestBound: int64(c.bound)}})
			got := in.Operations[0]
			want := int64(c.want * 1e6)
			if c.want == forever {
				want = never
			}
			if got.Return != want {
				t.Errorf("bound %s, want %s", history.Since(got.Return), history.Since(want))
			}
			if got.Flags&history.Optional == 0 {
				t.Error("not optional")
			}
		})
	}
}

func TestPrepareWidensAndSorts(t *testing.T) {
	h := tell(t, `
		w1/c0 acquire k 10..11 ok A
		w2/c0 acquire k 12..13 refused B
		clock w2 5`)
	in, err := Prepare(h, PrepareOptions{Primitive: "lock"})
	if err != nil {
		t.Fatal(err)
	}
	first := in.Operations[0]
	if first.Worker != 1 || first.Call != 7e6 || first.Return != 18e6 {
		t.Errorf("first %+v", first)
	}
	if h.Operations[1].Call != 12e6 {
		t.Error("Prepare changed the history that it was given")
	}
	if in.End != 13e6 || in.Drift != DefaultDrift || in.Granularity != DefaultGranularity {
		t.Errorf("end %d, drift %v, granularity %s", in.End, in.Drift, in.Granularity)
	}
}

func TestPrepareRefusesWhatCannotBe(t *testing.T) {
	backwards := tell(t, "w1/c0 acquire k 10..5 ok A")
	nobody := tell(t, "w1/c0 acquire k 0..5 ok A")
	nobody.Operations[0].Worker = 7
	for name, h := range map[string]*history.History{"answered before that": backwards, "process 7": nobody} {
		if _, err := Prepare(h, PrepareOptions{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want an error that says %q", err, name)
		}
	}
}

func TestPrepareRefusesSenselessOptions(t *testing.T) {
	for _, o := range []PrepareOptions{{Drift: -0.1}, {Drift: 1}, {Granularity: -1}, {Contract: Contract{LateBy: -1}}, {Contract: Contract{ClockSkew: -1}}} {
		if _, err := Prepare(&history.History{}, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestPlusDoesNotWrap(t *testing.T) {
	for _, c := range []struct{ t, d, want int64 }{
		{never, -5, never}, {never - 3, 5, never}, {5, never, never}, {-5, -never, -never - 1}, {-5, -never + 1, -never - 1}, {-5, -never + 7, -never + 2}, {3, 4, 7},
	} {
		if got := plus(c.t, c.d); got != c.want {
			t.Errorf("plus(%d, %d) = %d, want %d", c.t, c.d, got, c.want)
		}
	}
}
