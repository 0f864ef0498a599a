package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Schedule says when turns are due. A schedule is used by one goroutine, once.
type Schedule interface {
	// Next gives the next arrival, as the time since load started; it does not decrease. ok is false when there are no more.
	Next() (due time.Duration, ok bool)
}

// Spacing is how arrivals of a rate are spread.
type Spacing uint8

const (
	// Even: one each 1/rate.
	Even Spacing = iota
	// Poisson: independent of each other, with exponential gaps.
	Poisson
)

func (s Spacing) String() string {
	if s == Poisson {
		return "poisson"
	}
	return "even"
}

// Stage is a time with a rate, or with one that changes linearly.
type Stage struct {
	Rate, To float64 // turns per second at its start and its end; 0 to 0 is idle
	For      time.Duration
	Spacing  Spacing
}

// Constant is a stage whose rate stays.
func Constant(rate float64, length time.Duration, spacing Spacing) Stage {
	return Stage{Rate: rate, To: rate, For: length, Spacing: spacing}
}

func (s Stage) String() string {
	if s.Rate == s.To {
		return fmt.Sprintf("%g/s for %s, %s", s.Rate, s.For, s.Spacing)
	}
	return fmt.Sprintf("%g/s to %g/s over %s, %s", s.Rate, s.To, s.For, s.Spacing)
}

// turns is how many arrivals the stage brings, on average.
func (s Stage) turns() float64 { return (s.Rate + s.To) / 2 * s.For.Seconds() }

// reach is how far into the stage n turns have come: the t at which Rate·t + (To-Rate)·t²/(2·For) = n. It is written so
// that it loses no digits where the rate changes little.
func (s Stage) reach(n float64) time.Duration {
	length := s.For.Seconds()
	slope := (s.To - s.Rate) / length
	root := math.Sqrt(max(0, s.Rate*s.Rate+2*slope*n))
	if s.Rate+root == 0 {
		return 0
	}
	t := 2 * n / (s.Rate + root)
	return min(s.For, time.Duration(t*float64(time.Second)))
}

// Stages is the arrivals of stages that follow one another. Even arrivals come when the rate, summed over time, reaches 0, 1,
// 2, …; Poisson's when it reaches the sums of independent exponential steps with mean 1. So a rate that changes thins or
// crowds them as it should, and what is left of a step at the end of a stage goes on in the next.
//
// Equal stages and seed give equal arrivals, so that several workers can each take a Share of them.
type Stages struct {
	stages []Stage
	rand   *rand.Rand
	stage  int           // the present one
	before float64       // turns of the stages before it
	start  time.Duration // its start
	at     float64       // the summed rate at which the next arrival comes
}

// NewStages begins a schedule. seed matters to Poisson arrivals only.
func NewStages(stages []Stage, seed uint64) *Stages {
	s := &Stages{stages: stages, rand: rand.New(rand.NewPCG(seed, 0x6c6f6164))}
	if len(stages) > 0 && stages[0].Spacing == Poisson {
		s.at = s.rand.ExpFloat64()
	}
	return s
}

// Next is the next arrival of the present stage, or of a later one.
func (s *Stages) Next() (time.Duration, bool) {
	for s.stage < len(s.stages) {
		stage := s.stages[s.stage]
		if n := s.at - s.before; n < stage.turns() {
			due := s.start + stage.reach(max(0, n))
			if stage.Spacing == Poisson {
				s.at += s.rand.ExpFloat64()
			} else {
				s.at++
			}
			return due, true
		}
		s.before += stage.turns()
		s.start += stage.For
		s.stage++
	}
	return 0, false
}

func (s *Stages) String() string {
	words := make([]string, len(s.stages))
	for i, stage := range s.stages {
		words[i] = stage.String()
	}
	return strings.Join(words, "; then ")
}

// Length is how long the stages go on.
func Length(stages []Stage) (length time.Duration) {
	for _, stage := range stages {
		length += stage.For
	}
	return length
}

// MeanRate is the rate over all stages together.
func MeanRate(stages []Stage) float64 {
	turns := 0.0
	for _, stage := range stages {
		turns += stage.turns()
	}
	if length := Length(stages).Seconds(); length > 0 {
		return turns / length
	}
	return 0
}

// Share is every n-th arrival of a schedule: worker i of n, from 0, takes what a load balancer that goes round would send it.
// The shares of all workers together are the whole, and none is bunched.
type Share struct {
	Of     Schedule
	Worker int
	N      int
	count  int
}

// Next is the worker's next arrival.
func (s *Share) Next() (time.Duration, bool) {
	for {
		due, ok := s.Of.Next()
		mine := s.count%s.N == s.Worker
		s.count++
		if !ok || mine {
			return due, ok
		}
	}
}

func (s *Share) String() string {
	return fmt.Sprintf("worker %d of %d's share of %v", s.Worker+1, s.N, s.Of)
}

// After is a schedule without what was due before an instant: what a worker that is started again has left to do.
type After struct {
	Of   Schedule
	From time.Duration
}

// Next is the next arrival that isn't past.
func (a *After) Next() (time.Duration, bool) {
	for {
		if due, ok := a.Of.Next(); !ok || due >= a.From {
			return due, ok
		}
	}
}

func (a *After) String() string { return fmt.Sprintf("%v, from %s on", a.Of, a.From) }
