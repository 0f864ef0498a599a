package harness

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/load"
	"fencepost.dev/models"
	"fencepost.dev/scenarios"
	"fencepost.dev/subjects"
	"fencepost.dev/topology"
	"fencepost.dev/workloads"
)

// Vocabulary is all that scenarios can name here.
func Vocabulary() scenarios.Vocabulary {
	v := scenarios.Vocabulary{Metric: metricUnit}
	for _, s := range subjects.All() {
		v.Subjects = append(v.Subjects, scenarios.KnownSubject{Name: s.Name, Primitive: s.Primitive, Points: s.Points, Stores: s.Stores, Options: s.Options})
	}
	for _, k := range workloads.All() {
		v.Workloads = append(v.Workloads, scenarios.KnownWorkload{Name: k.Name, Primitives: k.Primitives, Points: k.Points, Parameters: k.Parameters})
	}
	for _, f := range faults.All() {
		v.Faults = append(v.Faults, scenarios.KnownFault{Name: f.Name, Workers: f.Supports(&worker{}), Stores: true, Options: f.Options})
	}
	for _, c := range models.All() {
		known := scenarios.KnownCheck{Name: c.Name, Primitives: c.Primitives}
		for _, severity := range c.Severities {
			known.Severities = append(known.Severities, string(severity))
		}
		v.Checks = append(v.Checks, known)
	}
	for _, c := range models.Counters() {
		v.Counters = append(v.Counters, c.Name)
	}
	for _, k := range topology.Kinds() {
		addKind(&v, k)
	}
	return v
}

// addKind adds one kind and provider of a store, keeping the order of the topology's own table.
func addKind(v *scenarios.Vocabulary, k topology.Kind) {
	s := slices.IndexFunc(v.Stores, func(s scenarios.KnownStore) bool { return s.Name == k.Store })
	if s < 0 {
		v.Stores = append(v.Stores, scenarios.KnownStore{Name: k.Store})
		s = len(v.Stores) - 1
	}
	kinds := &v.Stores[s].Kinds
	i := slices.IndexFunc(*kinds, func(known scenarios.KnownKind) bool { return known.Name == k.Kind })
	if i < 0 {
		*kinds = append(*kinds, scenarios.KnownKind{Name: k.Kind})
		i = len(*kinds) - 1
	}
	(*kinds)[i].Providers = append((*kinds)[i].Providers, k.Provider)
}

// Subjects lists the implementations there are.
func Subjects() []subjects.Subject { return subjects.All() }

// engines are those that can be asked for by name.
var engines = []models.Engine{models.EngineStream, models.EnginePorcupine, models.EngineBoth}

// Engines names them.
func Engines() []string {
	names := make([]string, len(engines))
	for i, e := range engines {
		names[i] = string(e)
	}
	return names
}

// ParseEngine finds an engine by name; "" chooses one for each object by how many operations it has.
func ParseEngine(name string) (models.Engine, error) {
	e := models.Engine(name)
	if name != "" && !slices.Contains(engines, e) {
		return "", fmt.Errorf("no engine is called %q; there are %s", name, strings.Join(Engines(), ", "))
	}
	return e, nil
}

// metricUnit judges the expression of a threshold.
func metricUnit(expression string) (scenarios.Unit, error) {
	m, err := load.ParseMetric(expression)
	if err != nil {
		return "", err
	}
	if kinds := history.KindNames(); m.Kind != "" && !slices.Contains(kinds, m.Kind) {
		return "", fmt.Errorf("%q is not a metric: no operation is called %q; there are %s", expression, m.Kind, strings.Join(kinds, ", "))
	}
	return scenarios.Unit(m.Unit()), nil
}
