package load

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func all(s Schedule) (due []time.Duration) {
	for {
		d, ok := s.Next()
		if !ok {
			return due
		}
		due = append(due, d)
	}
}

func stagesGen(spacings ...Spacing) *rapid.Generator[[]Stage] {
	stage := rapid.Custom(func(t *rapid.T) Stage {
		return Stage{
			Rate:    rapid.Float64Range(0, 2000).Draw(t, "rate"),
			To:      rapid.Float64Range(0, 2000).Draw(t, "to"),
			For:     time.Duration(rapid.Int64Range(1, int64(2*time.Second)).Draw(t, "for")),
			Spacing: rapid.SampledFrom(spacings).Draw(t, "spacing"),
		}
	})
	return rapid.SliceOfN(stage, 1, 4)
}

// Arrivals come in order, within the stages, and never in an idle one.
func TestArrivalsAreInOrderAndInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stages := stagesGen(Even, Poisson).Draw(t, "stages")
		if rapid.Bool().Draw(t, "idle") {
			i := rapid.IntRange(0, len(stages)-1).Draw(t, "which")
			stages[i].Rate, stages[i].To = 0, 0
		}
		last, length := time.Duration(0), Length(stages)
		for i, due := range all(NewStages(stages, rapid.Uint64().Draw(t, "seed"))) {
			if due < last || due > length {
				t.Fatalf("arrival %d is due at %s, after one at %s, in %s", i, due, last, length)
			}
			last = due
			start := time.Duration(0)
			for _, stage := range stages {
				if stage.Rate == 0 && stage.To == 0 && due > start && due < start+stage.For {
					t.Fatalf("arrival %d is due at %s, in the middle of an idle stage", i, due)
				}
				start += stage.For
			}
		}
	})
}

// Evenly spaced, there is one arrival for each whole turn that the rate sums up to, and the first comes at once.
func TestEvenArrivalsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stages := stagesGen(Even).Draw(t, "stages")
		turns := 0.0
		for _, stage := range stages {
			turns += stage.turns()
		}
		got := float64(len(all(NewStages(stages, 0))))
		if math.Abs(got-math.Ceil(turns)) > 1e-6*turns && got != math.Ceil(turns) {
			t.Fatalf("%v arrivals of %v turns", got, turns)
		}
	})
}

func TestConstantEvenArrivalsAreEquidistant(t *testing.T) {
	due := all(NewStages([]Stage{Constant(200, 6*time.Second, Even)}, 0))
	if len(due) != 1200 {
		t.Fatalf("%d arrivals, want 1200", len(due))
	}
	for i, d := range due {
		if want := time.Duration(i) * 5 * time.Millisecond; (d - want).Abs() > time.Microsecond {
			t.Fatalf("arrival %d at %s, want %s", i, d, want)
		}
	}
}

// A ramp from nothing to r has a quarter of its arrivals in its first half.
func TestLinearRampCrowdsTowardsItsEnd(t *testing.T) {
	for _, spacing := range []Spacing{Even, Poisson} {
		due := all(NewStages([]Stage{{Rate: 0, To: 4000, For: 10 * time.Second, Spacing: spacing}}, 7))
		half, _ := slices.BinarySearch(due, 5*time.Second)
		share := float64(half) / float64(len(due))
		// 20,000 arrivals: four standard deviations of a Poisson share are 0.013.
		if math.Abs(share-0.25) > 0.013 || math.Abs(float64(len(due))-20000) > 4*math.Sqrt(20000) {
			t.Errorf("%s: %d arrivals, %.3f of them in the first half", spacing, len(due), share)
		}
	}
}

// Poisson arrivals have exponential gaps: as spread as they are long on average, and a 1/e of them longer than that.
func TestPoissonGaps(t *testing.T) {
	due := all(NewStages([]Stage{Constant(1000, 50*time.Second, Poisson)}, 3))
	var sum, squares, longer float64
	for i := 1; i < len(due); i++ {
		gap := (due[i] - due[i-1]).Seconds() * 1000
		sum, squares = sum+gap, squares+gap*gap
		if gap > 1 {
			longer++
		}
	}
	n := float64(len(due) - 1)
	mean, deviation := sum/n, math.Sqrt(squares/n-sum*sum/n/n)
	if math.Abs(mean-1) > 0.02 || math.Abs(deviation-1) > 0.03 || math.Abs(longer/n-1/math.E) > 0.01 {
		t.Errorf("mean gap %.3f, deviation %.3f, longer than the mean %.3f", mean, deviation, longer/n)
	}
	if again := all(NewStages([]Stage{Constant(1000, 50*time.Second, Poisson)}, 3)); !slices.Equal(due, again) {
		t.Error("the same seed gave other arrivals")
	}
	if other := all(NewStages([]Stage{Constant(1000, 50*time.Second, Poisson)}, 4)); slices.Equal(due, other) {
		t.Error("another seed gave the same arrivals")
	}
}

// The shares of all workers are the whole, and any two of them differ by one arrival at most at any time.
func TestSharesMakeTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stages := stagesGen(Even, Poisson).Draw(t, "stages")
		seed := rapid.Uint64().Draw(t, "seed")
		n := rapid.IntRange(1, 5).Draw(t, "workers")
		whole := all(NewStages(stages, seed))
		var together []time.Duration
		for worker := range n {
			share := all(&Share{Of: NewStages(stages, seed), Worker: worker, N: n})
			for k, due := range share {
				if want := whole[k*n+worker]; due != want {
					t.Fatalf("worker %d: arrival %d is due at %s, want %s", worker, k, due, want)
				}
			}
			together = append(together, share...)
		}
		slices.Sort(together)
		if !slices.Equal(together, whole) {
			t.Fatalf("%d arrivals together, %d in the whole", len(together), len(whole))
		}
	})
}

func TestAfterSkipsWhatIsPast(t *testing.T) {
	for _, from := range []time.Duration{401 * time.Millisecond, 500 * time.Millisecond} {
		due := all(&After{Of: NewStages([]Stage{Constant(10, time.Second, Even)}, 0), From: from})
		if len(due) != 5 || due[0] != 500*time.Millisecond {
			t.Errorf("left from %s on: %v", from, due)
		}
	}
}

func TestSchedulesPrintThemselves(t *testing.T) {
	stages := NewStages([]Stage{Constant(200, time.Second, Even), {Rate: 200, To: 50, For: 2 * time.Second, Spacing: Poisson}}, 0)
	got := fmt.Sprint(&After{Of: &Share{Of: stages, Worker: 1, N: 3}, From: time.Second})
	want := "worker 2 of 3's share of 200/s for 1s, even; then 200/s to 50/s over 2s, poisson, from 1s on"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
