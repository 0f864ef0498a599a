package reports

import (
	"slices"
	"strings"
	"time"

	"fencepost.dev/history"
)

// shade is a fault in force: what a picture shades.
type shade struct {
	From, To int64 // To of a fault that nothing undid is the end of the tale
	Label    string
	Worker   string // whose clients' lanes; "": the store's
}

// events adds what happened meanwhile to the workers that occur in the tale, and to stores and paths.
func (t *tale) events(r *Result) {
	workers := map[string]bool{}
	for i := range t.Steps {
		worker, _, _ := strings.Cut(t.Steps[i].Who, "/")
		workers[worker] = true
		base, _, _ := strings.Cut(worker, ".") // any incarnation
		workers[base] = true
	}
	events := slices.Concat(r.Faults, r.Stalls)
	slices.SortStableFunc(events, func(a, b history.Event) int { return int(min(max(a.At-b.At, -1), 1)) })
	told := 0
	for i := range events {
		e := &events[i]
		worker := workerOf(e)
		if worker != "" && !workers[worker] || e.At > t.To || eventEnd(e, t.To) < t.From || told == mostEvents {
			continue
		}
		phrase, lasting := eventPhrase(e)
		if phrase == "" || implied(e, r.Faults) || e.Kind == history.EventStall && int64(e.Delay) < (t.To-t.From)/stallShare {
			continue
		}
		told++
		who := cleanName(e.Target)
		if who == "" {
			who = "run"
		}
		note := cleanText(e.Detail)
		if e.Kind == history.EventStall {
			note = "" // its detail says the same
		}
		if e.Client != "" && e.Point != "" {
			note = "caught " + cleanName(e.Client) + " at " + cleanName(e.Point)
		}
		if e.At >= t.From {
			t.Steps = append(t.Steps, step{At: e.At, Who: who, Text: phrase, Note: note, Mark: markFault})
		} else {
			t.Steps = append(t.Steps, step{At: t.From, Who: who, Mark: markFault,
				Text: phrase + " since " + clock(e.At, t.Decimals)})
		}
		if !lasting {
			continue
		}
		end := eventEnd(e, t.To)
		label := phrase
		if e.End != 0 {
			if e.Kind != history.EventStall { // which says how long it was already
				label = faultLabel(e, phrase) + span(time.Duration(e.End-e.At))
			}
			if e.End <= t.To && e.Kind != history.EventStall {
				t.Steps = append(t.Steps, step{At: e.End, Who: who, Mark: markFault,
					Text: undone(e) + " after " + span(time.Duration(e.End-e.At))})
			}
		}
		t.Shades = append(t.Shades, shade{From: e.At, To: end, Label: label, Worker: worker})
	}
}

// eventEnd is when an event was over; one that never ended lasts to the end of the tale.
func eventEnd(e *history.Event, to int64) int64 {
	switch {
	case e.End != 0:
		return e.End
	case e.Kind == history.EventStall:
		return e.At + int64(e.Delay)
	case e.Kind == history.EventFault && e.Fault != "failover":
		return max(to, e.At)
	}
	return e.At
}

// stallShare: a stall shorter than this part of a tale explains nothing in it.
const stallShare = 10

// implied reports whether an event only says again what a fault on the same target says: that who was killed died and was
// started again, that who was paused was not scheduled.
func implied(e *history.Event, faults []history.Event) bool {
	const soon = int64(250 * time.Millisecond)
	switch e.Kind {
	case history.EventStall:
		return underFault(e, faults)
	case history.EventWorkerDied, history.EventWorkerStarted, history.EventNodeAnswering:
		return slices.ContainsFunc(faults, func(f history.Event) bool {
			if f.Kind != history.EventFault || f.Target != e.Target || f.Fault != "kill" && f.Fault != "restart" {
				return false
			}
			near := func(at int64) bool { return e.At >= at-soon && e.At <= at+soon }
			return near(f.At) || f.End != 0 && near(f.End)
		})
	}
	return false
}

// underFault reports whether a stall is a fault's own doing: most of it lies in one that was in force on the same target.
func underFault(stall *history.Event, faults []history.Event) bool {
	end := eventEnd(stall, stall.At)
	return slices.ContainsFunc(faults, func(f history.Event) bool {
		if f.Kind != history.EventFault || f.Target != stall.Target {
			return false
		}
		common := min(end, eventEnd(&f, end)) - max(stall.At, f.At)
		return common > (end-stall.At)/2
	})
}

// workerOf is the worker that an event happened to; "": a store or the run.
func workerOf(e *history.Event) string {
	target, _, path := strings.Cut(e.Target, ">")
	if e.Process < 0 && !path || strings.Contains(target, "/") {
		return ""
	}
	return target
}

// faultPhrases are the words for a fault that came into force, and for its end.
var faultPhrases = map[string][2]string{
	"pause":     {"paused", "seen running again"},
	"kill":      {"killed", "started again"},
	"restart":   {"ended, to be started again", "started again"},
	"partition": {"cut off", "connected again"},
	"delay":     {"delayed", "no longer delayed"},
	"skew":      {"clock skewed", "clock right again"},
	"failover":  {"failover", "failover over"},
}

// faultLabel says in a picture what was done for how long.
func faultLabel(e *history.Event, phrase string) string {
	switch e.Fault {
	case "kill":
		return "killed, back after "
	case "restart":
		return "restarted, back after "
	}
	return phrase + " for "
}

// eventPhrase says an event in words; lasting: it is in force from At to End. "" for what needs no telling.
func eventPhrase(e *history.Event) (phrase string, lasting bool) {
	switch e.Kind {
	case history.EventFault:
		if p, ok := faultPhrases[e.Fault]; ok {
			return p[0], true
		}
		return cleanName(e.Fault), true
	case history.EventWorkerDied:
		return "died", false
	case history.EventWorkerStarted:
		return "started as a new process", false
	case history.EventNodeAnswering:
		return "answers again", false
	case history.EventPathHealed:
		return "connected again", false
	case history.EventTrapMissed:
		return "the fault came too late for the client that waited for it", false
	case history.EventStall:
		return "not scheduled for " + span(e.Delay), true
	}
	return "", false
}

func undone(e *history.Event) string {
	if p, ok := faultPhrases[e.Fault]; ok {
		return p[1]
	}
	return cleanName(e.Fault) + " over"
}
