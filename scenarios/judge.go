package scenarios

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,99}$`)

// judge holds a decoded scenario against the vocabulary and itself, and fills in what the file leaves to defaults.
func (d *decoder) judge(s *Scenario) {
	d.require("name", s.Name != "", "the scenario's name, such as lock-pause")
	d.require("subject", s.Subject != "", "what is tested, such as lock/valkey")
	d.require("workload", d.given("workload"), "what clients do, such as {kind: critical-section}")
	d.require("load", d.given("load"), "how much they do, such as {workers: 3, clients: 4, arrival: {rate: 200, for: 5s}}")
	d.require("checks", len(s.Checks) > 0, "what is decided, such as [linearizable]")
	d.require("expect", d.given("expect"), "pass, or {violation: [checks that must fail]}")
	if s.Name != "" && !nameForm.MatchString(s.Name) {
		d.fail("name", "%q can't name a directory of results; use lower-case letters, digits and hyphens", clip(s.Name))
	}
	for i, tag := range s.Tags {
		if tag == "" || strings.ContainsAny(tag, ", \t\n") {
			d.fail(fmt.Sprintf("tags[%d]", i), "a tag is one word, found %q", clip(tag))
		}
	}
	subject := d.judgeSubject(s)
	if w := d.knownWorkload(s.Workload.Kind); subject != nil && w != nil && subject.Primitive != "" && !slices.Contains(w.Primitives, subject.Primitive) {
		d.fail("subject", "%s is a %s, and the workload %s drives %s only", s.Subject, subject.Primitive, w.Name, strings.Join(w.Primitives, ", "))
		return // the rest would be held against the wrong one
	}
	d.judgeTopology(s, subject)
	d.judgeLoad(&s.Load)
	for i := range s.Faults {
		d.judgeFault(s, subject, fmt.Sprintf("faults[%d]", i), &s.Faults[i])
	}
	d.judgeChecks(s, subject)
	for name, need := range s.Coverage {
		at := join("coverage", name)
		if !slices.Contains(d.vocabulary.Counters, name) {
			d.fail(at, "%s", unknown("counter", name, d.vocabulary.Counters, "coverage"))
		} else if need < 0 {
			d.fail(at, "must not be negative, is %d", need)
		}
	}
}

func (d *decoder) require(field string, there bool, what string) {
	switch {
	case there:
	case d.given(field):
		d.fail(field, "is empty; expected %s", what)
	default:
		d.fail(field, "is missing; expected %s", what)
	}
}

// judgeSubject finds the subject. An unknown one gives nil.
func (d *decoder) judgeSubject(s *Scenario) *KnownSubject {
	if s.Subject == "" {
		return nil
	}
	var names []string
	for i, k := range d.vocabulary.Subjects {
		names = append(names, k.Name)
		if k.Name != s.Subject && !(strings.HasSuffix(k.Name, ":") && len(s.Subject) > len(k.Name) && strings.HasPrefix(s.Subject, k.Name)) {
			continue
		}
		d.judgeOptions(s, &d.vocabulary.Subjects[i])
		return &d.vocabulary.Subjects[i]
	}
	d.fail("subject", "%s", unknown("subject", s.Subject, names, "the catalogue"))
	return nil
}

// judgeOptions refuses options that the subject would not look at. A program of somebody else's judges its own.
func (d *decoder) judgeOptions(s *Scenario, subject *KnownSubject) {
	if strings.HasSuffix(subject.Name, ":") {
		return
	}
	for name := range s.Options {
		switch {
		case len(subject.Options) == 0:
			d.fail(join("options", name), "the subject %s has no options", subject.Name)
		case !slices.Contains(subject.Options, name):
			d.fail(join("options", name), "%s", unknown("option", name, subject.Options, subject.Name))
		}
	}
}

func (d *decoder) knownWorkload(kind string) *KnownWorkload {
	for i, k := range d.vocabulary.Workloads {
		if k.Name == kind {
			return &d.vocabulary.Workloads[i]
		}
	}
	return nil
}

// judgeTopology gives the subject the stores that it needs, by default where the file doesn't name them, and holds all of
// them against those there are.
func (d *decoder) judgeTopology(s *Scenario, subject *KnownSubject) {
	if subject != nil {
		for _, name := range subject.Stores {
			if _, there := s.Topology[name]; !there {
				if s.Topology == nil {
					s.Topology = map[string]Store{}
				}
				s.Topology[name] = Store{}
			}
		}
	}
	for name, store := range s.Topology {
		at := join("topology", name)
		i := slices.IndexFunc(d.vocabulary.Stores, func(k KnownStore) bool { return k.Name == name })
		if i < 0 || len(d.vocabulary.Stores[i].Kinds) == 0 {
			var names []string
			for _, k := range d.vocabulary.Stores {
				names = append(names, k.Name)
			}
			d.fail(at, "%s", unknown("store", name, names, "the catalogue"))
			continue
		}
		kinds := d.vocabulary.Stores[i].Kinds
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		if store.Kind == "" {
			store.Kind = names[0]
		}
		k := slices.Index(names, store.Kind)
		if k < 0 {
			d.fail(join(at, "kind"), "%s", unknown("kind", store.Kind, names, name))
			continue
		}
		if d.provider != "" {
			store.Provider = d.provider
			d.marks[join(at, "provider")] = mark{flag: "--provider"}
		}
		if store.Provider == "" && len(kinds[k].Providers) > 0 {
			store.Provider = kinds[k].Providers[0]
		}
		if !slices.Contains(kinds[k].Providers, store.Provider) {
			d.fail(join(at, "provider"), "%s", unknown("provider", store.Provider, kinds[k].Providers, name+" "+store.Kind))
		}
		if len(store.Options) == 0 {
			store.Options = nil
		}
		s.Topology[name] = store
	}
}

// Limits of a run: workers and clients are numbered in 16 bits; beyond the others a number is a slip of the pen.
const (
	mostWorkers = 1000
	mostClients = 60000
	mostRate    = 1e7
	longest     = 24 * time.Hour
)

// settled is how long a run waits after load where the scenario doesn't say.
const settled = 300 * time.Millisecond

func (d *decoder) judgeLoad(l *Load) {
	if !d.given("load") {
		return
	}
	count := func(field string, n *int, most int) {
		if !d.given(field) {
			*n = 1
		}
		if *n < 1 || *n > most {
			d.fail(field, "must be between 1 and %d, is %d", most, *n)
		}
	}
	count("load.workers", &l.Workers, mostWorkers)
	count("load.clients", &l.Clients, mostClients)
	if !d.given("load.settle") {
		l.Settle = settled
	}
	d.span("load.settle", l.Settle, 0)

	arrival, stages := d.given("load.arrival"), d.given("load.stages")
	switch {
	case l.Closed && stages:
		d.fail("load.stages", "a closed loop has no stages; say how long it runs with load.for")
	case l.Closed && !d.given("load.for"):
		d.fail("load.for", "is missing; expected how long the closed loop runs, such as 5s")
	case l.Closed:
		d.span("load.for", l.Arrival.For, 1)
	case arrival && stages:
		d.fail("load.stages", "has an arrival beside it; a load has one of the two")
	case stages && len(l.Stages) == 0:
		d.fail("load.stages", "is empty; expected stages such as {rate: 200, to: 1000, for: 5s}")
	case stages:
		busy := false
		for i := range l.Stages {
			d.judgeArrival(fmt.Sprintf("load.stages[%d]", i), &l.Stages[i], true)
			busy = busy || l.Stages[i].Rate > 0 || l.Stages[i].To > 0
		}
		if !busy {
			d.fail("load.stages", "all have rate 0; nothing would ever start")
		}
	case arrival:
		d.judgeArrival("load.arrival", &l.Arrival, false)
	default:
		d.fail("load.arrival", "is missing; expected {rate: 200, for: 5s}, or stages, or closed: true")
	}
}

// judgeArrival judges one rate. A stage may be idle or change its rate.
func (d *decoder) judgeArrival(at string, a *Arrival, stage bool) {
	rate := join(at, "rate")
	switch {
	case !d.given(rate):
		d.fail(rate, "is missing; expected turns per second, such as 200")
	case a.Rate < 0 || a.Rate == 0 && !stage || math.IsNaN(a.Rate):
		d.fail(rate, "must be above 0, is %v", a.Rate)
	case a.Rate > mostRate:
		d.fail(rate, "must be at most %v, is %v", mostRate, a.Rate)
	}
	if d.given(join(at, "to")) {
		switch {
		case !stage:
			d.fail(join(at, "to"), "belongs to a stage; write load.stages: [{rate: …, to: …, for: …}]")
		case !(a.To > 0 && a.To <= mostRate):
			d.fail(join(at, "to"), "must be above 0 and at most %v, is %v", mostRate, a.To)
		}
	}
	if !d.given(join(at, "for")) {
		d.fail(join(at, "for"), "is missing; expected how long, such as 5s")
	}
	d.span(join(at, "for"), a.For, 1)
	switch a.Spacing {
	case "":
		a.Spacing = Even
	case Even, Poisson:
	default:
		d.fail(join(at, "spacing"), "%s", unknown("spacing", string(a.Spacing), []string{string(Even), string(Poisson)}, "an arrival"))
	}
}

// span judges a length of time. A duration of an absent field is accepted.
func (d *decoder) span(field string, length, least time.Duration) {
	if d.given(field) && (length < least || length > longest) {
		if length >= 0 && least == 1 {
			d.fail(field, "must be above 0 and at most %s, is %s", longest, length)
			return
		}
		d.fail(field, "must not be negative, nor more than %s, is %s", longest, length)
	}
}

func (d *decoder) judgeChecks(s *Scenario, subject *KnownSubject) {
	for i, name := range s.Checks {
		at := fmt.Sprintf("checks[%d]", i)
		k := d.knownCheck(name)
		switch {
		case k == nil:
			var names []string
			for _, c := range d.vocabulary.Checks {
				names = append(names, c.Name)
			}
			d.fail(at, "%s", unknown("check", name, names, "the catalogue"))
		case slices.Contains(s.Checks[:i], name):
			d.fail(at, "%s is listed twice", name)
		case subject != nil && subject.Primitive != "" && !slices.Contains(k.Primitives, subject.Primitive):
			d.fail(at, "%s judges %s only, and %s is a %s", name, strings.Join(k.Primitives, ", "), s.Subject, subject.Primitive)
		}
	}
	d.judgeExpected(s, "expect.violation", s.Expect.Violation)
	d.judgeExpected(s, "expect.may", s.Expect.May)
	d.judgeExpected(s, "expect.not", s.Expect.Not)
	for i, name := range s.Expect.May {
		if slices.Contains(s.Expect.Violation, name) {
			d.fail(fmt.Sprintf("expect.may[%d]", i), "%s must fail already; it can't also be free to", name)
		}
	}
}

func (d *decoder) knownCheck(name string) *KnownCheck {
	for i, k := range d.vocabulary.Checks {
		if k.Name == name {
			return &d.vocabulary.Checks[i]
		}
	}
	return nil
}

// judgeExpected holds names such as "linearizable:safety" against the scenario's checks.
func (d *decoder) judgeExpected(s *Scenario, path string, names []string) {
	if slices.ContainsFunc(d.mistakes, func(m Mistake) bool { return strings.HasPrefix(m.Field, d.prefix+"checks") }) {
		return // who knows what was meant
	}
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		check, severity, severe := strings.Cut(name, ":")
		k := d.knownCheck(check)
		switch {
		case !slices.Contains(s.Checks, check) && k != nil:
			d.fail(at, "%s is not among the scenario's checks; add it there", check)
		case !slices.Contains(s.Checks, check):
			d.fail(at, "%s", unknown("check", check, s.Checks, "this scenario"))
		case severe && k != nil && !slices.Contains(k.Severities, severity):
			d.fail(at, "%s", unknown("severity", severity, k.Severities, check))
		}
	}
}

// judgeFault judges one line of the schedule.
func (d *decoder) judgeFault(s *Scenario, subject *KnownSubject, at string, f *Fault) {
	field := func(name string) string { return join(at, name) }
	if f.Do == "" {
		d.fail(field("do"), "is missing; expected a fault%s", listed(faultNames(d.vocabulary), "the catalogue"))
		return
	}
	if f.On == "" {
		d.fail(field("on"), "is missing; expected a target: worker, worker/w1, valkey, valkey/primary, …")
	} else {
		d.judgeTarget(s, field("on"), f)
	}
	for name, length := range map[string]time.Duration{"at": f.At, "every": f.Every, "for": f.For} {
		d.span(field(name), length, 0)
	}
	if f.Times < 0 {
		d.fail(field("times"), "must not be negative, is %d", f.Times)
	}
	if f.Times > 0 && f.Every == 0 {
		d.fail(field("times"), "needs every: how long from one time to the next")
	}
	if length := s.Load.Length(); length > 0 && f.At >= length {
		d.fail(field("at"), "%s is after the load has ended (%s)", f.At, length)
	}
	if f.When != "" {
		var points []string
		owner := "this scenario"
		if w := d.knownWorkload(s.Workload.Kind); w != nil {
			points, owner = append(points, w.Points...), w.Name
		}
		if subject != nil && len(subject.Points) > 0 {
			points, owner = append(points, subject.Points...), owner+" with "+s.Subject
		}
		if (subject != nil || s.Subject == "") && d.knownWorkload(s.Workload.Kind) != nil && !slices.Contains(points, f.When) {
			d.fail(field("when"), "%s", unknown("point", f.When, points, owner))
		}
	}
}

func (d *decoder) judgeTarget(s *Scenario, at string, f *Fault) {
	i := slices.IndexFunc(d.vocabulary.Faults, func(k KnownFault) bool { return k.Name == f.Do })
	if i < 0 {
		return
	}
	kind := d.vocabulary.Faults[i]
	party, part, _ := strings.Cut(f.On, "/")
	if party == "worker" {
		if !kind.Workers {
			d.fail(at, "%s can't be done to a worker", f.Do)
		} else if number, ok := workerNumber(part); part != "" && (!ok || number > s.Load.Workers) {
			d.fail(at, "there is no worker %q; load.workers is %d, so they are w1 to w%d", part, s.Load.Workers, s.Load.Workers)
		}
		return
	}
	if _, there := s.Topology[party]; !there {
		targets := []string{"worker"}
		for name := range s.Topology {
			targets = append(targets, name)
		}
		d.fail(at, "%s", unknown("target", party, targets, "this scenario"))
	} else if !kind.Stores {
		d.fail(at, "%s can't be done to a store", f.Do)
	}
}

// workerNumber reads "w1".
func workerNumber(name string) (n int, ok bool) {
	_, err := fmt.Sscanf(name, "w%d", &n)
	return n, err == nil && n >= 1 && fmt.Sprintf("w%d", n) == name
}
