package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tree is a scenario as written: YAML nodes, which know their lines, and which of them came from flags.
type tree struct {
	source string
	root   *yaml.Node            // a mapping without aliases or duplicates
	flags  map[*yaml.Node]string // nodes that an override put in, by its flag
	// provider is --provider: it goes to every store, also to those that the file doesn't name. Empty: not given.
	provider string
}

// mark is where a value was written.
type mark struct {
	line int
	flag string
}

func (t *tree) mark(n *yaml.Node) mark {
	if flag, ok := t.flags[n]; ok {
		return mark{flag: flag}
	}
	return mark{line: n.Line}
}

// most bounds a scenario file: a person writes it.
const most = 1 << 20

var yamlMessage = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// plant parses a file. Beyond YAML's own rules it refuses what would make lines and fields ambiguous: anchors and aliases,
// duplicate fields, several documents.
func plant(source string, text []byte) (*tree, Mistakes) {
	t := &tree{source: source, flags: map[*yaml.Node]string{}}
	fail := func(line int, field, format string, args ...any) Mistakes {
		return Mistakes{{Source: source, Line: line, Field: field, Problem: fmt.Sprintf(format, args...)}}
	}
	if len(text) > most {
		return nil, fail(0, "", "is larger than a scenario can be (%d bytes)", most)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, fail(0, "", "is empty; a scenario has at least name, subject, workload, load, checks and expect")
	} else if err != nil {
		line, problem := 0, err.Error()
		if m := yamlMessage.FindStringSubmatch(problem); m != nil {
			line, _ = strconv.Atoi(m[1])
			problem = m[2]
			if line > 0 && strings.HasPrefix(problem, "did not find expected") {
				line++ // yaml counts lines from 0 in what its parser says, as opposed to its scanner
			}
		}
		return nil, fail(line, "", "is not YAML: %s", problem)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fail(0, "", "has more than one YAML document; a scenario is one")
	}
	t.root = document.Content[0]
	if t.root.Kind != yaml.MappingNode {
		return nil, fail(t.root.Line, "", "expected fields (name: …), found %s", describe(t.root))
	}
	mistakes := t.tidy(t.root, "")
	if short := child(t.root, "topology"); short != nil {
		lengthen(short)
	}
	if control := child(t.root, "control"); control != nil {
		if short := child(control, "topology"); short != nil {
			lengthen(short)
		}
	}
	return t, mistakes
}

// tidy reports and removes duplicate fields, and anchors and aliases, below n.
func (t *tree) tidy(n *yaml.Node, path string) (mistakes Mistakes) {
	fail := func(n *yaml.Node, field, problem string) {
		m := t.mark(n)
		mistakes = append(mistakes, Mistake{Source: t.source, Line: m.line, Flag: m.flag, Field: field, Problem: problem})
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		fail(n, path, "anchors and aliases are not supported; write the value out")
		*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null", Line: n.Line}
		return mistakes
	}
	switch n.Kind {
	case yaml.MappingNode:
		lines := map[string]int{}
		var kept []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Kind != yaml.ScalarNode {
				fail(key, path, "the name of a field is a word, not "+describe(key))
				continue
			}
			field := join(path, key.Value)
			if line, twice := lines[key.Value]; twice {
				fail(key, field, fmt.Sprintf("is given twice; the first is on line %d", line))
				continue
			}
			lines[key.Value] = key.Line
			mistakes = append(mistakes, t.tidy(value, field)...)
			kept = append(kept, key, value)
		}
		n.Content = kept
	case yaml.SequenceNode:
		for i, item := range n.Content {
			mistakes = append(mistakes, t.tidy(item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return mistakes
}

// lengthen turns topology's short form {kind: X} into {valkey: {kind: X}}.
func lengthen(topology *yaml.Node) {
	if kind := child(topology, "kind"); kind == nil || kind.Kind != yaml.ScalarNode {
		return
	}
	store := *topology
	name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "valkey", Line: topology.Line}
	topology.Content = []*yaml.Node{name, &store}
}

// child is the value of a mapping's field; nil if n is none or has none.
func child(n *yaml.Node, name string) *yaml.Node {
	if i := index(n, name); i >= 0 {
		return n.Content[i+1]
	}
	return nil
}

// index is where in a mapping's Content the field's name is; -1: nowhere.
func index(n *yaml.Node, name string) int {
	if n == nil || n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// put sets a mapping's field, at the end if it is new.
func put(n *yaml.Node, name, value *yaml.Node) {
	if i := index(n, name.Value); i >= 0 {
		n.Content[i], n.Content[i+1] = name, value
		return
	}
	n.Content = append(n.Content, name, value)
}

// drop takes a mapping's field away.
func drop(n *yaml.Node, name string) {
	if i := index(n, name); i >= 0 {
		n.Content = append(n.Content[:i:i], n.Content[i+2:]...)
	}
}

// merged gives over laid over base: mappings are merged field by field, anything else is replaced, and so is a mapping whose
// kind changes, since the fields of the one kind mean nothing to the other. Neither is modified.
func merged(base, over *yaml.Node) *yaml.Node {
	if base == nil || base.Kind != yaml.MappingNode || over.Kind != yaml.MappingNode {
		return over
	}
	was, is := child(base, "kind"), child(over, "kind")
	if was != nil && is != nil && was.Value != is.Value {
		return over
	}
	result := *base
	result.Content = append([]*yaml.Node(nil), base.Content...)
	for i := 0; i+1 < len(over.Content); i += 2 {
		name := over.Content[i]
		put(&result, name, merged(child(base, name.Value), over.Content[i+1]))
	}
	return &result
}

// describe says in words what was found, for "expected …, found …".
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
	default:
		return "something else"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return n.Value
	case "!!int", "!!float":
		return "the number " + n.Value
	}
	return fmt.Sprintf("the text %q", clip(n.Value))
}

// clip shortens a text that is quoted in a sentence.
func clip(text string) string {
	const most = 40
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// join adds a field to a path.
func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
