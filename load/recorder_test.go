package load

import (
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"fencepost.dev/history"
)

func operation(kind history.Kind, outcome history.Outcome, returned time.Duration) *history.Operation {
	return &history.Operation{Kind: kind, Outcome: outcome, Return: int64(returned)}
}

// ago is the instant so long before another.
func ago(returned, latency time.Duration) int64 { return int64(returned - latency) }

var nanoseconds = rapid.OneOf(
	rapid.Int64Range(0, int64(5*time.Millisecond)),
	rapid.Int64Range(0, int64(2*time.Hour)),
	rapid.Int64Range(-1000, 1000),
)

// What goes over the wire is exactly what recording directly would have given.
func TestLatenciesLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(nanoseconds, 1, 300).Draw(t, "latencies")
		direct := hdrhistogram.New(lowest, highest, digits)
		for _, v := range values {
			if err := direct.RecordValue(min(max(v, 0), highest)); err != nil {
				t.Fatal(err)
			}
		}
		packed := pack(slices.Clone(values))
		through := hdrhistogram.New(lowest, highest, digits)
		if err := packed.into(through); err != nil {
			t.Fatal(err)
		}
		if !direct.Equals(through) {
			t.Fatalf("recorded directly: %v\nthrough the wire: %v", direct.Export().Counts, through.Export().Counts)
		}
		if again := unfold(direct); !slices.Equal(again, packed) {
			t.Fatalf("from the histogram %x, packed %x", again, packed)
		}
	})
}

// Damaged bytes are an error or other latencies, and never a panic or a value out of range.
func TestDamagedLatencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Latencies(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		_ = l.Each(func(value, count int64) {
			if value < 0 || value > highest || count < 1 {
				t.Fatalf("%d × %d", count, value)
			}
		})
	})
	for _, damaged := range []Latencies{{0x80}, {1}, {1, 0}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1}} {
		if err := damaged.Each(func(int64, int64) {}); err == nil {
			t.Errorf("%x was read", damaged)
		}
	}
}

// Operations go to the bin in which they returned, and each is given once, however late it is recorded.
func TestTakeGivesEachOperationOnce(t *testing.T) {
	r := NewRecorder(2)
	ms := time.Millisecond
	r.Record(0, operation(history.Acquire, history.OK, 150*ms), ago(150*ms, 90*ms))
	r.Record(1, operation(history.Acquire, history.Refused, 199*ms), ago(199*ms, 2*ms))
	r.Record(1, operation(history.Release, history.Unknown, 199*ms), ago(199*ms, 9*ms))
	r.Record(0, operation(history.Acquire, history.OK, 200*ms), ago(200*ms, 1*ms))

	first := r.Take(int64(299 * ms))
	if len(first) != 1 || first[0].From != int64(100*ms) || first[0].Since != int64(60*ms) {
		t.Fatalf("took %+v", first)
	}
	if got, want := first[0].Kinds["acquire"].Outcomes, (Outcomes{history.OK: 1, history.Refused: 1}); got != want {
		t.Errorf("acquire: %v, want %v", got, want)
	}
	if got, want := first[0].Kinds["release"].Outcomes, (Outcomes{history.Unknown: 1}); got != want {
		t.Errorf("release: %v, want %v", got, want)
	}
	if again := r.Take(int64(299 * ms)); len(again) != 0 {
		t.Errorf("took again %+v", again)
	}

	r.Record(0, operation(history.Acquire, history.OK, 160*ms), ago(160*ms, ms)) // its process was stopped meanwhile
	rest := r.Take(All)
	if len(rest) != 2 || rest[0].From != int64(100*ms) || rest[1].From != int64(200*ms) {
		t.Fatalf("took %+v", rest)
	}
}

// Clients record while intervals are taken, travel as JSON and are added up: nothing is lost or counted twice.
func TestNothingIsLostOnTheWay(t *testing.T) {
	const clients, each = 8, 5000
	r, log := NewRecorder(clients), NewLog()
	var work, taking sync.WaitGroup
	done := make(chan struct{})
	add := func(before int64) {
		for _, interval := range r.Take(before) {
			wire, err := json.Marshal(interval)
			if err != nil {
				t.Error(err)
			}
			var back Interval
			if err := json.Unmarshal(wire, &back); err != nil || !reflect.DeepEqual(back, interval) {
				t.Errorf("sent %+v, received %+v: %v", interval, back, err)
			}
			if err := log.Add(back); err != nil {
				t.Error(err)
			}
		}
	}
	taking.Go(func() {
		for i := int64(1); ; i++ {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				add(i * int64(Bin))
			}
		}
	})
	for client := range clients {
		work.Go(func() {
			for i := range each {
				at := time.Duration(i) * 200 * time.Microsecond
				r.Record(client, operation(history.Acquire, history.Outcome(i%4), at), ago(at, time.Duration(i)*time.Microsecond))
			}
		})
	}
	work.Wait()
	close(done)
	taking.Wait()
	add(All)

	s := log.Summarize(0, All)["acquire"]
	quarter := int64(clients * each / 4)
	if s.Outcomes != (Outcomes{quarter, quarter, quarter, quarter}) {
		t.Errorf("counted %v", s.Outcomes)
	}
	if got, want := s.Quantile(0.5), each/2*time.Microsecond; (got - want).Abs() > want/500 {
		t.Errorf("median %s, want %s to 3 digits", got, want)
	}
	if got, want := s.Max(), (each-1)*time.Microsecond; (got - want).Abs() > want/500 {
		t.Errorf("max %s, want %s to 3 digits", got, want)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := NewRecorder(1)
	op := operation(history.Acquire, history.OK, time.Second)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Record(0, op, op.Return-int64(i%5_000_000))
		if i%2000 == 1999 {
			r.Take(All)
		}
	}
}
