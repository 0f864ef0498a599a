package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Values whose written form is more than their fields: parameters inline, short forms, units.

func (d *decoder) workload(n *yaml.Node, path string, w *Workload) {
	kind := child(n, "kind")
	if n.Kind != yaml.MappingNode || kind == nil {
		d.fail(path, "has no kind%s", listed(workloadNames(d.vocabulary), "the catalogue"))
		return
	}
	head := struct {
		Kind string `yaml:"kind"`
	}{}
	at := join(path, "kind")
	d.marks[at] = d.mark(kind)
	d.value(kind, at, reflect.ValueOf(&head.Kind).Elem())
	w.Kind = head.Kind
	i := slices.IndexFunc(d.vocabulary.Workloads, func(k KnownWorkload) bool { return k.Name == w.Kind })
	if i < 0 {
		d.fail(at, "%s", unknown("workload", w.Kind, workloadNames(d.vocabulary), "the catalogue"))
		return
	}
	structs := []reflect.Value{reflect.ValueOf(&head)}
	if parameters := d.vocabulary.Workloads[i].Parameters; parameters != nil {
		w.Parameters = parameters()
		structs = append(structs, reflect.ValueOf(w.Parameters))
	}
	if d.fields(n, path, w.Kind, structs...) && w.Parameters != nil {
		d.validate(path, w.Parameters)
	}
}

func workloadNames(v Vocabulary) (names []string) {
	for _, k := range v.Workloads {
		names = append(names, k.Name)
	}
	return names
}

// load reads a Load. A closed loop's length is written as load.for.
func (d *decoder) load(n *yaml.Node, path string, l *Load) {
	type bare Load // without this form
	var length struct {
		For time.Duration `yaml:"for"`
	}
	d.fields(n, path, "load", reflect.ValueOf((*bare)(l)), reflect.ValueOf(&length))
	at := join(path, "for")
	switch {
	case l.Closed && d.given(join(path, "arrival")):
		d.fail(join(path, "arrival"), "a closed loop has no arrival; say how long it runs with load.for")
	case l.Closed:
		l.Arrival = Arrival{For: length.For}
	case d.given(at):
		d.fail(at, "belongs to a closed loop; without closed: true it is load.arrival.for")
	}
}

func (d *decoder) fault(n *yaml.Node, path string, f *Fault) {
	type bare Fault
	structs := []reflect.Value{reflect.ValueOf((*bare)(f))}
	do := child(n, "do")
	if do != nil && do.Kind == yaml.ScalarNode {
		i := slices.IndexFunc(d.vocabulary.Faults, func(k KnownFault) bool { return k.Name == do.Value })
		if i < 0 {
			at := join(path, "do")
			d.marks[at] = d.mark(do)
			d.fail(at, "%s", unknown("fault", do.Value, faultNames(d.vocabulary), "the catalogue"))
			return
		}
		if options := d.vocabulary.Faults[i].Options; options != nil {
			f.Options = options()
			structs = append(structs, reflect.ValueOf(f.Options))
		}
	}
	owner := "a fault"
	if do != nil && do.Kind == yaml.ScalarNode {
		owner = "fault " + do.Value
	}
	if d.fields(n, path, owner, structs...) && f.Options != nil {
		d.validate(path, f.Options)
	}
}

func faultNames(v Vocabulary) (names []string) {
	for _, k := range v.Faults {
		names = append(names, k.Name)
	}
	return names
}

// expect reads pass, violation, or the names of checks.
func (d *decoder) expect(n *yaml.Node, path string, e *Expect) {
	const forms = "expected pass, or {violation: [checks that must fail], may: [checks that can]}"
	if n.Kind == yaml.ScalarNode {
		switch n.Value {
		case "pass":
			e.Pass = true
		case "violation":
			e.Loose = true
		default:
			d.fail(path, "%s, found %s", forms, describe(n))
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fail(path, "%s, found %s", forms, describe(n))
		return
	}
	names := struct {
		Violation []string `yaml:"violation"`
		May       []string `yaml:"may"`
		Not       []string `yaml:"not"`
	}{}
	d.fields(n, path, "expect", reflect.ValueOf(&names))
	e.Violation, e.May, e.Not = names.Violation, names.May, names.Not
	switch {
	case len(e.Violation) == 0 && len(e.Not) == 0:
		d.fail(path, "names no check; %s", forms)
	case len(e.Violation) > 0 && len(e.Not) > 0:
		d.fail(path, "has both violation and not; a run is to show findings or to show none of them")
	case len(e.Not) > 0 && len(e.May) > 0:
		d.fail(join(path, "may"), "means nothing beside not: every check that isn't named is free")
	}
}

// thresholds reads metric: bound, or metric: {below: bound, above: bound, outside: faults}.
func (d *decoder) thresholds(n *yaml.Node, path string, all *map[string]Threshold) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fail(path, `expected metrics ("errors": 1%%), found %s`, describe(n))
		return
	}
	thresholds := map[string]Threshold{}
	d.each(n, path, func(name, at string, value *yaml.Node) {
		t := Threshold{}
		if d.vocabulary.Metric == nil {
			d.fail(at, "thresholds can't be judged here")
			return
		}
		unit, err := d.vocabulary.Metric(name)
		if err != nil {
			d.fail(at, "%s", err)
			return
		}
		t.Unit = unit
		switch {
		case value.Kind == yaml.MappingNode:
			written := struct {
				Below   bound  `yaml:"below"`
				Above   bound  `yaml:"above"`
				Outside string `yaml:"outside"`
			}{Below: bound{unit: unit}, Above: bound{unit: unit}}
			d.fields(value, at, "a threshold", reflect.ValueOf(&written))
			t.Below, t.Above, t.Outside = written.Below.value, written.Above.value, written.Outside
			if t.Below == nil && t.Above == nil {
				d.fail(at, "has no bound; write below or above")
			}
			if t.Outside != "" && t.Outside != "faults" {
				d.fail(join(at, "outside"), "expected faults, found %q", clip(t.Outside))
			}
		case unit == PerSecond:
			d.fail(at, "a rate can be bounded either way; write {above: …} or {below: …}")
		case value.Kind == yaml.ScalarNode:
			b := bound{unit: unit}
			if err := b.UnmarshalText([]byte(value.Value)); err != nil {
				d.fail(at, "%s", err)
			}
			t.Below = b.value
		default:
			d.fail(at, "expected a bound, found %s", describe(value))
		}
		t.Text = t.text()
		thresholds[name] = t
	})
	if len(thresholds) > 0 {
		*all = thresholds
	}
}

// bound is one side of a threshold, in its metric's unit.
type bound struct {
	unit  Unit
	value *float64
}

// UnmarshalText reads 1% or 0.01, 50ms, or 1000, as the unit has it.
func (b *bound) UnmarshalText(text []byte) error {
	written := strings.TrimSpace(string(text))
	var value float64
	var err error
	switch b.unit {
	case Seconds:
		var length time.Duration
		length, err = time.ParseDuration(written)
		value = length.Seconds()
		if err != nil || length < 0 {
			return boundError{written, "a latency such as 50ms"}
		}
	case Share:
		percent, isPercent := strings.CutSuffix(written, "%")
		value, err = strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if isPercent {
			value /= 100
		}
		if err != nil || !(value >= 0 && value <= 1) {
			return boundError{written, "a share such as 1% or 0.01"}
		}
		if value == 1 && !isPercent {
			return fmt.Errorf("%s is a share of one, everything; write 1%% or 100%%, whichever is meant", written)
		}
	default:
		value, err = strconv.ParseFloat(written, 64)
		if err != nil || !(value >= 0 && value < 1e15) {
			return boundError{written, "a number per second such as 1000"}
		}
	}
	b.value = &value
	return nil
}

type boundError struct{ written, want string }

func (e boundError) Error() string {
	return "expected " + e.want + ", found " + strconv.Quote(clip(e.written))
}

// write is the inverse of UnmarshalText, exactly.
func (u Unit) write(value float64) string {
	switch u {
	case Seconds:
		return time.Duration(value*1e9 + 0.5).String()
	case Share:
		percent := strconv.FormatFloat(value*100, 'g', -1, 64)
		if back, err := strconv.ParseFloat(percent, 64); err == nil && back/100 == value {
			return percent + "%"
		}
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

// text says the threshold as people write it.
func (t Threshold) text() string {
	var parts []string
	if t.Below != nil {
		parts = append(parts, "below "+t.Unit.write(*t.Below))
	}
	if t.Above != nil {
		parts = append(parts, "above "+t.Unit.write(*t.Above))
	}
	said := strings.Join(parts, ", ")
	if t.Outside != "" {
		said += " outside " + t.Outside
	}
	return said
}
