package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Override puts a value in place of what the file says, as a flag of the command line does. Set and Flag make them.
type Override struct {
	flag  string // what mistakes call it: "--rate"
	name  string // a flag with a name of its own: "rate"; empty: path says it all
	path  string // "faults[0].for"
	value string
}

// Set is --set path=value: a path such as faults[0].for, and a YAML value.
func Set(assignment string) (Override, error) {
	path, value, ok := strings.Cut(assignment, "=")
	if !ok || strings.TrimSpace(path) == "" {
		return Override{}, fmt.Errorf("--set %s: expected path=value, such as workload.ttl=2s or faults=[]", assignment)
	}
	return Override{flag: "--set " + assignment, path: strings.TrimSpace(path), value: value}, nil
}

// flagPaths are the flags that have a name of their own, and the field each is short for.
var flagPaths = map[string]string{
	"rate":     "load.arrival.rate",
	"for":      "load.arrival.for",
	"workers":  "load.workers",
	"clients":  "load.clients",
	"subject":  "subject",
	"topology": "topology.valkey.kind",
	"provider": "", // of every store
	"seed":     "seed",
	"expect":   "expect",
}

// Flag is an override that has a flag of its own: rate, for, workers, clients, subject, topology, provider, seed or expect.
// A rate and a time go to a constant arrival; a closed loop has no rate, and stages have many of both: there they are errors
// of loading.
func Flag(name, value string) (Override, error) {
	path, ok := flagPaths[name]
	if !ok {
		return Override{}, fmt.Errorf("scenarios: no flag is called --%s", name)
	}
	return Override{flag: "--" + name, name: name, path: path, value: value}, nil
}

// apply changes the tree as the override says.
func (t *tree) apply(o Override) Mistakes {
	fail := func(format string, args ...any) Mistakes {
		return Mistakes{{Source: t.source, Flag: o.flag, Problem: fmt.Sprintf(format, args...)}}
	}
	load := child(t.root, "load")
	switch o.name {
	case "rate", "for":
		closed := child(load, "closed")
		switch {
		case child(load, "stages") != nil:
			return fail("this scenario's load has stages; change one with --set load.stages[0].%s=%s", o.name, o.value)
		case closed != nil && closed.Value == "true" && o.name == "rate":
			return fail("this scenario's load is a closed loop, which has no rate; more --clients make more load")
		case closed != nil && closed.Value == "true":
			o.path = "load.for"
		}
	case "provider":
		t.provider = o.value
		return nil
	case "expect":
		if o.value != "pass" && o.value != "violation" {
			return fail("expected pass or violation, found %q", o.value)
		}
	}

	value, err := o.node()
	if err != nil {
		return fail("the value is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	steps, err := parsePath(o.path)
	if err != nil {
		return fail("%s", err)
	}
	t.own(value, o.flag)
	if err := t.set(t.root, steps, value, o.flag); err != nil {
		return fail("%s", err)
	}
	if topology := child(t.root, "topology"); topology != nil {
		lengthen(topology)
	}
	return t.tidy(value, o.path)
}

// node is the override's value: YAML, but for the flags whose value is a name.
func (o Override) node() (*yaml.Node, error) {
	switch o.name {
	case "subject", "topology", "expect":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: o.value}, nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(o.value), &document); err != nil {
		return nil, err
	}
	if document.Kind == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
	return document.Content[0], nil
}

// own marks all nodes of a value as the flag's.
func (t *tree) own(n *yaml.Node, flag string) {
	t.flags[n] = flag
	for _, c := range n.Content {
		t.own(c, flag)
	}
}

// step is a field's name, or a place in a list.
type step struct {
	name  string
	index int // -1: name
}

func (s step) String() string {
	if s.index >= 0 {
		return fmt.Sprintf("[%d]", s.index)
	}
	return s.name
}

// parsePath reads "faults[0].for".
func parsePath(path string) (steps []step, err error) {
	for _, part := range strings.Split(path, ".") {
		name, rest, _ := strings.Cut(part, "[")
		if name == "" {
			return nil, fmt.Errorf("%q is not a path; write one such as faults[0].for", path)
		}
		steps = append(steps, step{name: name, index: -1})
		if len(part) == len(name) {
			continue
		}
		for _, digits := range strings.Split(rest, "[") {
			i, err := strconv.ParseUint(strings.TrimSuffix(digits, "]"), 10, 16)
			if err != nil || !strings.HasSuffix(digits, "]") {
				return nil, fmt.Errorf("%q is not a path; write one such as faults[0].for", path)
			}
			steps = append(steps, step{index: int(i)})
		}
	}
	return steps, nil
}

// set puts value where the steps lead from n, making the mappings that aren't there yet. A list grows by one at most.
func (t *tree) set(n *yaml.Node, steps []step, value *yaml.Node, flag string) error {
	s, last := steps[0], len(steps) == 1
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		n.Kind, n.Tag, n.Value = yaml.MappingNode, "!!map", ""
		if s.index >= 0 {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
	}
	if s.index >= 0 {
		if n.Kind != yaml.SequenceNode {
			return fmt.Errorf("there is no list to take %s of; found %s", s, describe(n))
		}
		if s.index > len(n.Content) {
			return fmt.Errorf("%s is past the end of a list of %d", s, len(n.Content))
		}
		if s.index == len(n.Content) {
			n.Content = append(slices.Clip(n.Content), t.blank(flag))
		}
		if last {
			n.Content[s.index] = value
			return nil
		}
		return t.set(n.Content[s.index], steps[1:], value, flag)
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("there is no field %s in %s", s, describe(n))
	}
	next := child(n, s.name)
	if last || next == nil {
		name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.name}
		t.flags[name] = flag
		if last {
			next = value
		} else {
			next = t.blank(flag)
		}
		put(n, name, next)
	}
	if last {
		return nil
	}
	return t.set(next, steps[1:], value, flag)
}

// blank is a value that set will turn into what it needs.
func (t *tree) blank(flag string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	t.flags[n] = flag
	return n
}
