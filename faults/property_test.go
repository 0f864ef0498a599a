package faults_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/scenarios"
)

// TestAnySchedule plays schedules at random, with slow targets and targets that die, and holds each to what is promised of
// all: targets are never used by two lines at once (they fail then), everything is journaled before it is done, everything is
// undone, and the events tell of exactly what was done.
func TestAnySchedule(t *testing.T) {
	durations := rapid.SampledFrom([]time.Duration{0, 1 * ms, 250 * ms, 1 * s, 1700 * ms})
	line := rapid.Custom(func(t *rapid.T) scenarios.Fault {
		return scenarios.Fault{
			At:    durations.Draw(t, "at"),
			Every: durations.Filter(func(d time.Duration) bool { return d != 1*ms }).Draw(t, "every"),
			Times: rapid.IntRange(0, 3).Draw(t, "times"),
			For:   durations.Draw(t, "for"),
			Do:    rapid.SampledFrom([]string{"pause", "kill", "restart"}).Draw(t, "do"),
			On:    rapid.SampledFrom([]string{"worker", "worker/w1", "valkey", "v3"}).Draw(t, "on"),
			When:  rapid.SampledFrom([]string{"", "", "holding", "writing"}).Draw(t, "when"),
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(line, 1, 5).Draw(r, "lines")
		delays := rapid.SliceOfN(durations, 4, 4).Draw(r, "delays")
		dying := rapid.IntRange(0, 8).Draw(r, "dying") // from 4 on: none
		var failure string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld("w0", "w1", "v2", "v3")
			for i, name := range w.names {
				w.targets[name].delay = delays[i]
			}
			if dying < len(w.names) {
				w.targets[w.names[dying]].dies, w.targets[w.names[dying]].from = true, 2*s
			}
			for i := range 20 {
				w.spring([]string{"holding", "writing"}[i%2], w.names[i%3%2], i, time.Duration(i)*300*ms)
			}
			err := faults.Play(t.Context(), lines, w.env(5*s))
			failure = judge(w, err, dying)
		})
		if failure != "" {
			r.Fatal(failure)
		}
	})
}

// judge says what is wrong with how a schedule went; "" if nothing is.
func judge(w *world, err error, dying int) string {
	// Whatever is being started again when the target dies can't be.
	if err != nil && (dying >= len(w.names) || !strings.Contains(err.Error(), "starting "+w.names[dying]+" again")) {
		return fmt.Sprintf("%v\n%s", err, w)
	}
	for _, name := range w.names {
		if w.targets[name].paused {
			return fmt.Sprintf("%s is still paused\n%s", name, w)
		}
	}
	if err == nil && len(w.open) > 0 {
		return fmt.Sprintf("%v still in the journal\n%s", w.open, w)
	}
	journaled, done := map[string]bool{}, 0
	for _, line := range w.diary {
		words := strings.Fields(line)
		switch verb, target := words[1], words[len(words)-1]; verb {
		case "journal":
			journaled[target] = true
		case "undone":
			journaled[target] = false
		case "pause", "kill":
			done++
			if !journaled[target] {
				return fmt.Sprintf("%q is not in the journal\n%s", line, w)
			}
		}
	}
	for _, event := range w.events {
		if event.Kind != history.EventFault {
			continue
		}
		done--
		if !event.Confirmed || event.End != 0 && event.End < event.At || event.Fault == "pause" && event.End == 0 {
			return fmt.Sprintf("%+v\n%s", event, w)
		}
	}
	if done != 0 {
		return fmt.Sprintf("%d faults more than events\n%s", done, w)
	}
	return ""
}
