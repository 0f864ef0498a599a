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
	n := 0
	for i := range events {
		e := &events[i]
		worker := workerOf(e)
		if worker != "" && !workers[worker] || e.At > t.To || eventEnd(e, t.To) < t.From || n == mostEvents {
			continue
		}
		phrase, lasting := eventPhrase(e)
		if phrase == "" || implied(e, r.Faults) || e.Kind == history.EventStall && int64(e.Delay) < (t.To-t.From)/stallShare {
			continue
		}
		n++
		who := cleanName(e.Target)
		if who == "" {
			who = "run"
		}
		note := cleanText(e.Detail)
		if e.Kind == history.EventStall {
			note = "" // its detail says the same
		}
		if e.Client != "" && e.Point != "" {
			note = aim(e)
		}
		told := *e // the event itself is the record's
		told.At, told.End = t.stillness(e)
		seen := told.End == e.End
		e = &told
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
				text := undone(e)
				if !seen {
					text = "running again"
				}
				t.Steps = append(t.Steps, step{At: e.End, Who: who, Mark: markFault, Ends: true, Text: text + " after " + span(time.Duration(e.End-e.At))})
			}
		}
		t.Shades = append(t.Shades, shade{From: e.At, To: end, Label: label, Worker: worker})
	}
}

// stillness narrows a pause by the operations of the tale. The event's times enclose it: the process may have run for a
// moment after the first, and was seen to run only at the second. A worker's clients show that it runs by each call and each
// answer that they have, and a store by each answer; the pause lies in the longest time between two of those. What the
// resource decided shows nothing of a worker, whose request may have been under way. An event that is no pause, or not over,
// is given back as it is.
func (t *tale) stillness(e *history.Event) (from, to int64) {
	if e.Kind != history.EventFault || e.Fault != "pause" || e.End == 0 {
		return e.At, e.End
	}
	ran := []int64{e.At, e.End}
	shows := func(at int64) {
		if at > e.At && at < e.End {
			ran = append(ran, at)
		}
	}
	worker := workerOf(e)
	for i := range t.Steps {
		for _, op := range []*Operation{t.Steps[i].Op, t.Steps[i].Asked} {
			switch {
			case op == nil || op.Synthetic || decision(op):
			case worker == "":
				if op.Primitive != "resource" && answered(op) {
					shows(op.Return)
				}
			case strings.HasPrefix(op.Client, e.Target+"/"):
				shows(op.Call)
				if answered(op) {
					shows(op.Return)
				}
			}
		}
	}
	slices.Sort(ran)
	from, to = ran[0], ran[1]
	for i := 2; i < len(ran); i++ {
		if ran[i]-ran[i-1] > to-from {
			from, to = ran[i-1], ran[i]
		}
	}
	return from, to
}

// points are where a client was when a fault was aimed at it, in words.
var points = map[string]string{
	"before-read":       "before it read",
	"holding":           "while it held its lock",
	"before-extend":     "before it extended its lock",
	"before-write":      "before it wrote",
	"request-in-flight": "with a request under way",
	"between-commands":  "between two commands",
}

// aim says whom a fault waited for. One on a worker was done to the whole process, and not to the client alone; one on a store
// was only timed by a client.
func aim(e *history.Event) string {
	point, known := points[e.Point]
	if !known {
		point = "at " + cleanName(e.Point)
	}
	fault, client := cleanName(e.Fault), cleanName(e.Client)
	switch {
	case e.Kind != history.EventFault: // nothing was done
		return client + ", " + point
	case workerOf(e) == "":
		return "the " + fault + " was timed by " + client + ": " + point
	}
	did, known := map[string]string{"pause": "stopped", "kill": "ended", "restart": "ended"}[e.Fault]
	if !known {
		did = "was on"
	}
	return "the " + fault + " was aimed at " + client + " " + point + ", and " + did + " all of " + cleanName(e.Target)
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
