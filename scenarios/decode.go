package scenarios

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder turns a tree into values, strictly, and goes on after a mistake so that all are found at once.
type decoder struct {
	tree
	vocabulary Vocabulary
	mistakes   Mistakes
	marks      map[string]mark // where each value that was read stands, by path
	meant      map[string]bool // fields that unknown ones were probably meant to be
	prefix     string          // what fields of mistakes begin with: "control."
}

// fail records a mistake of the field at path. A field is accused once: a value of the wrong type is not also too small, and
// what was misspelt is not also missing.
func (d *decoder) fail(path, format string, args ...any) {
	if d.meant[path] {
		return
	}
	for _, m := range d.mistakes {
		field := strings.TrimPrefix(m.Field, d.prefix)
		if field == path || strings.HasPrefix(path, field) && strings.ContainsAny(path[len(field):][:1], ".[") {
			return
		}
	}
	d.failAt(d.nearby(path), path, fmt.Sprintf(format, args...))
}

func (d *decoder) failAt(m mark, path, problem string) {
	field := path
	if d.prefix != "" {
		field = d.prefix + path
	}
	d.mistakes = append(d.mistakes, Mistake{Source: d.source, Line: m.line, Flag: m.flag, Field: field, Problem: problem})
}

// nearby is where the value at path stands, or the closest that encloses it.
func (d *decoder) nearby(path string) mark {
	for {
		if m, ok := d.marks[path]; ok {
			return m
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return mark{}
		}
		path = path[:cut]
	}
}

// given reports whether the file, or a flag, has a value at path.
func (d *decoder) given(path string) bool {
	_, ok := d.marks[path]
	return ok
}

var durationType = reflect.TypeFor[time.Duration]()

// value decodes a node into v, which is settable.
func (d *decoder) value(n *yaml.Node, path string, v reflect.Value) {
	switch target := v.Addr().Interface().(type) {
	case *Workload:
		d.workload(n, path, target)
		return
	case *Load:
		d.load(n, path, target)
		return
	case *Fault:
		d.fault(n, path, target)
		return
	case *Expect:
		d.expect(n, path, target)
		return
	case *map[string]Threshold:
		d.thresholds(n, path, target)
		return
	case encoding.TextUnmarshaler:
		if n.Kind != yaml.ScalarNode {
			d.fail(path, "expected a word, found %s", describe(n))
		} else if err := target.UnmarshalText([]byte(n.Value)); err != nil {
			d.fail(path, "%s", err)
		}
		return
	}
	if v.Type() == durationType {
		v.SetInt(int64(d.duration(n, path)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.fields(n, path, "", v)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, path, v.Elem())
	case reflect.Slice:
		d.list(n, path, v)
	case reflect.Map:
		d.mapping(n, path, v)
	case reflect.Interface:
		if plain := d.plain(n, path); plain != nil {
			v.Set(reflect.ValueOf(plain))
		}
	default:
		d.scalar(n, path, v)
	}
}

func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value) {
	tag := ""
	if n.Kind == yaml.ScalarNode {
		tag = n.ShortTag()
	}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		switch tag {
		case "!!str", "!!timestamp":
			v.SetString(n.Value)
		case "!!int", "!!float", "!!bool":
			d.fail(path, "expected a text, found %s; quote it if it is meant as text", describe(n))
		default:
			d.fail(path, "expected a text, found %s", describe(n))
		}
	case kind == reflect.Bool:
		if tag != "!!bool" {
			d.fail(path, "expected true or false, found %s", describe(n))
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case v.CanInt():
		var i int64
		if tag != "!!int" || n.Decode(&i) != nil || v.OverflowInt(i) {
			d.fail(path, "expected a whole number, found %s", describe(n))
			return
		}
		v.SetInt(i)
	case v.CanUint():
		var u uint64
		if tag != "!!int" || n.Decode(&u) != nil || v.OverflowUint(u) {
			d.fail(path, "expected a whole number that is not negative, found %s", describe(n))
			return
		}
		v.SetUint(u)
	case v.CanFloat():
		if f, ok := number(n); ok {
			v.SetFloat(f)
		} else {
			d.fail(path, "expected a number, found %s", describe(n))
		}
	default:
		d.fail(path, "cannot be written in a scenario")
	}
}

// number is a scalar's finite value.
func number(n *yaml.Node) (float64, bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
		return 0, false
	}
	var f float64
	err := n.Decode(&f)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

func (d *decoder) duration(n *yaml.Node, path string) time.Duration {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.fail(path, "expected a duration such as 300ms or 2s, found %s", describe(n))
		return 0
	}
	length, err := time.ParseDuration(n.Value)
	if err == nil {
		return length
	}
	if _, err := strconv.ParseFloat(n.Value, 64); err == nil {
		d.fail(path, "%s has no unit; write %sms or %ss", n.Value, n.Value, n.Value)
		return 0
	}
	d.fail(path, "%q is not a duration; write one such as 300ms, 2s or 1m30s", clip(n.Value))
	return 0
}

func (d *decoder) list(n *yaml.Node, path string, v reflect.Value) {
	v.SetZero()
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.fail(path, "expected a list ([…]), found %s", describe(n))
		return
	}
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.marks[at] = d.mark(item)
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(item, at, element)
		v.Set(reflect.Append(v, element))
	}
}

func (d *decoder) mapping(n *yaml.Node, path string, v reflect.Value) {
	v.SetZero()
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fail(path, "expected fields (name: …), found %s", describe(n))
		return
	}
	if len(n.Content) > 0 {
		v.Set(reflect.MakeMap(v.Type()))
	}
	d.each(n, path, func(name, at string, value *yaml.Node) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(value, at, element)
		v.SetMapIndex(reflect.ValueOf(name), element)
	})
}

// each visits the fields of a mapping and marks where they stand.
func (d *decoder) each(n *yaml.Node, path string, visit func(name, at string, value *yaml.Node)) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		d.marks[at] = d.mark(key)
		if flag, ok := d.flags[value]; ok {
			d.marks[at] = mark{flag: flag}
		}
		visit(key.Value, at, value)
	}
}

// plain is a value whose type nobody has declared: nil, bool, int, float64, string, []any or map[string]any.
func (d *decoder) plain(n *yaml.Node, path string) any {
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			d.marks[at] = d.mark(item)
			list[i] = d.plain(item, at)
		}
		return list
	case yaml.MappingNode:
		fields := map[string]any{}
		d.each(n, path, func(name, at string, value *yaml.Node) { fields[name] = d.plain(value, at) })
		return fields
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int":
		var i int
		if n.Decode(&i) != nil {
			d.fail(path, "%s is too large a number", n.Value)
		}
		return i
	case "!!float":
		f, ok := number(n)
		if !ok {
			d.fail(path, "expected a number, found %s", n.Value)
		}
		return f
	case "!!str", "!!timestamp":
		return n.Value
	}
	d.fail(path, "has a tag that means nothing in a scenario: %s", n.Tag)
	return nil
}

// fields decodes a mapping into the fields of structs, of which the first that has a name gets it. owner is how a sentence
// calls what has these fields; "": the path. It reports whether all was well.
func (d *decoder) fields(n *yaml.Node, path, owner string, structs ...reflect.Value) bool {
	before := len(d.mistakes)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return true
	}
	if n.Kind != yaml.MappingNode {
		d.fail(path, "expected fields (name: …), found %s", describe(n))
		return false
	}
	var names []string
	targets := map[string]reflect.Value{}
	for _, s := range structs {
		for _, f := range fieldsOf(s) {
			if _, taken := targets[f.name]; !taken {
				targets[f.name] = f.value
				names = append(names, f.name)
			}
		}
	}
	if owner == "" {
		owner = path
	}
	if owner == "" {
		owner = "a scenario"
	}
	d.each(n, path, func(name, at string, value *yaml.Node) {
		target, ok := targets[name]
		if !ok {
			sentence := "unknown field"
			if close, ok := nearest(name, names); ok {
				sentence += fmt.Sprintf("; did you mean %q?", close)
				d.meant[join(path, close)] = true
			}
			// All of them, in the order of their declaration: unlike names of a catalogue they are few.
			d.failAt(d.marks[at], at, fmt.Sprintf("%s (%s has %s)", sentence, owner, strings.Join(names, ", ")))
			return
		}
		d.value(value, at, target)
	})
	return len(d.mistakes) == before
}

// field is one field of a struct that a scenario can set.
type field struct {
	name  string
	value reflect.Value
}

// fieldsOf lists them by their yaml tags. Embedded structs tagged inline count as the struct's own.
func fieldsOf(s reflect.Value) (fields []field) {
	s = reflect.Indirect(s)
	for i := range s.NumField() {
		tag := s.Type().Field(i).Tag.Get("yaml")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case slices.Contains(strings.Split(options, ","), "inline"):
			fields = append(fields, fieldsOf(s.Field(i))...)
		case name != "" && name != "-":
			fields = append(fields, field{name, s.Field(i)})
		}
	}
	return fields
}

// validate lets a struct of parameters judge itself. A complaint that begins with a field's name is told at that field's
// line.
func (d *decoder) validate(path string, parameters any) {
	judge, ok := parameters.(interface{ Validate() error })
	if !ok {
		return
	}
	err := judge.Validate()
	if err == nil {
		return
	}
	complaints := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		complaints = joined.Unwrap()
	}
	known := fieldsOf(reflect.ValueOf(parameters))
	for _, complaint := range complaints {
		at, problem := path, complaint.Error()
		if name, rest, ok := strings.Cut(problem, ": "); ok && slices.ContainsFunc(known, func(f field) bool { return f.name == name }) {
			at, problem = join(path, name), rest
		}
		d.fail(at, "%s", problem)
	}
}
