package scenarios

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed *.yaml
var catalogue embed.FS

// Names lists the catalogue.
func Names() (names []string) {
	files, _ := fs.Glob(catalogue, "*.yaml") // the pattern is well formed, and nothing else can fail
	for _, file := range files {
		names = append(names, strings.TrimSuffix(file, ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Open reads and judges a scenario: one of the catalogue by its name, or a file, which is what ends in .yaml or .yml or
// contains a slash. Overrides go over the file, in order. What is wrong inside it comes back as Mistakes.
func Open(nameOrPath string, v Vocabulary, overrides ...Override) (*Scenario, error) {
	extension := filepath.Ext(nameOrPath)
	if extension == ".yaml" || extension == ".yml" || strings.ContainsAny(nameOrPath, `/`+string(filepath.Separator)) {
		text, err := os.ReadFile(nameOrPath)
		if err != nil {
			var cause *fs.PathError
			if errors.As(err, &cause) {
				err = cause.Err
			}
			return nil, fmt.Errorf("cannot read the scenario %s: %w", nameOrPath, err)
		}
		return Parse(nameOrPath, text, v, overrides...)
	}
	text, err := catalogue.ReadFile(nameOrPath + ".yaml")
	if err != nil {
		sentence := fmt.Sprintf("no scenario is called %q", nameOrPath)
		if close, ok := nearest(nameOrPath, Names()); ok {
			sentence += fmt.Sprintf("; did you mean %q?", close)
		}
		return nil, errors.New(sentence + " (bench list shows them; a file's path ends in .yaml or contains a slash)")
	}
	return Parse(nameOrPath+".yaml", text, v, overrides...)
}

// Parse is Open for text that is already there; source is what mistakes call it.
func Parse(source string, text []byte, v Vocabulary, overrides ...Override) (*Scenario, error) {
	t, mistakes := plant(source, text)
	if t == nil {
		return nil, mistakes.err()
	}
	for _, o := range overrides {
		mistakes = append(mistakes, t.apply(o)...)
	}
	s, wrong := t.scenario(v, "")
	mistakes = append(mistakes, wrong...)
	if len(mistakes) > 0 {
		return nil, mistakes.err()
	}
	// A control is run as often as its scenario: its mistakes belong to the file's.
	if s.Control != nil {
		for _, field := range notForControls {
			if value := child(child(t.root, "control"), field); value != nil {
				m := t.mark(value)
				mistakes = append(mistakes, Mistake{Source: source, Line: m.line, Flag: m.flag, Field: "control." + field,
					Problem: "a control is the same scenario without its cause, so it doesn't change this"})
			}
		}
		if len(mistakes) > 0 {
			return nil, mistakes.err()
		}
		if _, wrong := t.control(s).scenario(v, "control."); len(wrong) > 0 {
			return nil, wrong.err()
		}
	}
	return s, nil
}

// scenario decodes and judges the tree.
func (t *tree) scenario(v Vocabulary, prefix string) (*Scenario, Mistakes) {
	d := &decoder{tree: *t, vocabulary: v, marks: map[string]mark{}, meant: map[string]bool{}, prefix: prefix}
	s := new(Scenario)
	d.fields(t.root, "", "", reflect.ValueOf(s))
	d.judge(s)
	if len(s.Options) == 0 {
		s.Options = nil
	}
	if len(s.Control) == 0 {
		s.Control = nil
	}
	return s, d.mistakes
}

// notForControls are fields that a control doesn't change: it is the same scenario, and what it expects follows from that.
var notForControls = []string{"name", "expect", "control", "pair"}

// control gives the tree of the scenario's control.
func (t *tree) control(s *Scenario) *tree {
	over := child(t.root, "control")
	result := *t
	result.root = merged(t.root, over)
	drop(result.root, "control")
	drop(result.root, "pair")
	drop(result.root, "coverage")
	if own := child(over, "coverage"); own != nil {
		put(result.root, text("coverage"), own)
	}
	put(result.root, text("name"), text(s.Name+"-control"))
	if child(over, "summary") == nil {
		what := "the same run"
		if said := changes(over, ""); len(said) > 0 {
			what += " with " + strings.Join(said, ", ") + ", and nothing else changed"
		}
		put(result.root, text("summary"), text(fmt.Sprintf("The control of %s: %s.", s.Name, what)))
	}
	expect := s.Expect
	if !expect.Pass {
		expect = Expect{Not: s.Expect.Violation}
		if s.Expect.Loose {
			expect.Not = s.Checks
		}
	}
	node, _ := expect.node() // names only: nothing in it can fail
	put(result.root, text("expect"), node)
	return &result
}

// changes says in words what a control's fields change, but for what it must cover.
func changes(over *yaml.Node, path string) []string {
	var said []string
	for i := 0; over != nil && i+1 < len(over.Content); i += 2 {
		name, value := join(path, over.Content[i].Value), over.Content[i+1]
		switch {
		case name == "coverage":
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			said = append(said, changes(value, name)...)
		case value.Kind == yaml.ScalarNode && value.Tag != "!!null":
			said = append(said, name+" "+value.Value)
		case len(value.Content) == 0:
			said = append(said, "no "+name)
		default:
			said = append(said, "other "+name)
		}
	}
	return said
}

// Control gives the control of a violation scenario: the same with its Control merged over it (maps merged, lists replaced),
// and as its expectation that none of the named checks finds anything. What the scenario must cover to show its cause need
// not happen without it, so a control's coverage is its own. Its name is the scenario's with -control at the end, and its
// summary, unless it has one, says what was changed.
func Control(s *Scenario, v Vocabulary) (*Scenario, error) {
	if s.Control == nil || s.Expect.Pass {
		return nil, fmt.Errorf("the scenario %s has no control", s.Name)
	}
	written, err := s.YAML()
	if err != nil {
		return nil, err
	}
	t, mistakes := plant(s.Name+" (control)", written)
	if t == nil {
		return nil, mistakes.err()
	}
	controlled, wrong := t.control(s).scenario(v, "")
	if err := append(mistakes, wrong...).err(); err != nil {
		return nil, err
	}
	return controlled, nil
}
