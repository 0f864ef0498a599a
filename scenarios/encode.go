package scenarios

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// YAML writes the scenario as a file which, loaded with the same Vocabulary, gives an equal one.
func (s *Scenario) YAML() ([]byte, error) {
	root, err := encodeFields(reflect.ValueOf(s), true)
	if err != nil {
		return nil, fmt.Errorf("scenarios: %s can't be written: %w", s.Name, err)
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("scenarios: %s can't be written: %w", s.Name, err)
	}
	return text.Bytes(), encoder.Close()
}

// encodeFields writes structs as one mapping. sparse leaves out what is zero, which is right where absence means zero.
func encodeFields(s reflect.Value, sparse bool) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(s) {
		if sparse && empty(f.value) || f.value.Kind() == reflect.Pointer && f.value.IsNil() {
			continue
		}
		value, err := encode(f.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		n.Content = append(n.Content, text(f.name), value)
	}
	return n, nil
}

// empty reports whether a value needs no writing.
func empty(v reflect.Value) bool {
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

// encode is the inverse of decoder.value.
func encode(v reflect.Value) (*yaml.Node, error) {
	switch value := v.Interface().(type) {
	case Workload:
		return value.node()
	case Load:
		return value.node()
	case Arrival:
		return value.node()
	case Fault:
		return value.node()
	case Store:
		return encodeFields(v, true)
	case Expect:
		return value.node()
	case Threshold:
		return value.node(), nil
	case time.Duration:
		return scalar("!!str", value.String()), nil
	case encoding.TextMarshaler:
		written, err := value.MarshalText()
		return text(string(written)), err
	}
	switch v.Kind() {
	case reflect.String:
		return text(v.String()), nil
	case reflect.Bool:
		return scalar("!!bool", strconv.FormatBool(v.Bool())), nil
	case reflect.Struct:
		return encodeFields(v, false)
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return scalar("!!null", "null"), nil
		}
		if v.Elem().Kind() == reflect.Float64 {
			return float(v.Elem().Float()), nil
		}
		return encode(v.Elem())
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if v.Len() == 0 || simple(v.Index(0)) {
			n.Style = yaml.FlowStyle
		}
		for i := range v.Len() {
			item, err := encode(v.Index(i))
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		return n, nil
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if v.Len() == 0 {
			n.Style = yaml.FlowStyle
		}
		if v.Type().Key().Kind() != reflect.String {
			return nil, fmt.Errorf("keys of type %s have no place in a scenario", v.Type().Key())
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			value, err := encode(v.MapIndex(key))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			n.Content = append(n.Content, text(key.String()), value)
		}
		return n, nil
	}
	switch {
	case v.CanInt():
		return scalar("!!int", strconv.FormatInt(v.Int(), 10)), nil
	case v.CanUint():
		return scalar("!!int", strconv.FormatUint(v.Uint(), 10)), nil
	case v.CanFloat():
		return scalar("", strconv.FormatFloat(v.Float(), 'g', -1, 64)), nil
	}
	return nil, fmt.Errorf("values of type %s have no place in a scenario", v.Type())
}

// simple values make a list that reads well on one line.
func simple(v reflect.Value) bool {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v.Kind() != reflect.Struct && v.Kind() != reflect.Map && v.Kind() != reflect.Slice
}

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// text is a string, as a block where it has several lines that a person wrote. Others are quoted: a block that has a tab
// where YAML expects none isn't read back as it was.
func text(s string) *yaml.Node {
	n := scalar("!!str", s)
	switch {
	case !strings.Contains(s, "\n"):
	case strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }):
		n.Style = yaml.DoubleQuotedStyle
	default:
		n.Style = yaml.LiteralStyle
	}
	return n
}

// float writes a number whose type nobody has declared, so that it is read as a float again without a tag (!!float 2).
func float(f float64) *yaml.Node {
	written := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(written, ".eIN") {
		written += ".0"
	}
	return scalar("!!float", written)
}

func (w Workload) node() (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if w.Parameters != nil {
		parameters, err := encodeFields(reflect.ValueOf(w.Parameters), false)
		if err != nil {
			return nil, err
		}
		n = parameters
	}
	n.Content = append([]*yaml.Node{text("kind"), text(w.Kind)}, n.Content...)
	return n, nil
}

func (l Load) node() (*yaml.Node, error) {
	type bare Load
	loop := bare(l)
	if l.Closed {
		loop.Arrival = Arrival{}
	}
	n, err := encodeFields(reflect.ValueOf(loop), true)
	if err != nil {
		return nil, err
	}
	if l.Closed {
		put(n, text("for"), scalar("!!str", l.Arrival.For.String()))
	}
	// Absence would mean the default, so what is zero is written too.
	put(n, text("settle"), scalar("!!str", l.Settle.String()))
	return n, nil
}

func (a Arrival) node() (*yaml.Node, error) {
	type bare Arrival
	n, err := encodeFields(reflect.ValueOf(bare(a)), false)
	if err == nil && a.To == 0 {
		drop(n, "to")
	}
	return n, err
}

func (f Fault) node() (*yaml.Node, error) {
	type bare Fault
	n, err := encodeFields(reflect.ValueOf(bare(f)), true)
	if err != nil || f.Options == nil {
		return n, err
	}
	options, err := encodeFields(reflect.ValueOf(f.Options), false)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(options.Content); i += 2 {
		if !slices.ContainsFunc(fieldsOf(reflect.ValueOf(bare(f))), func(own field) bool { return own.name == options.Content[i].Value }) {
			n.Content = append(n.Content, options.Content[i], options.Content[i+1])
		}
	}
	return n, nil
}

func (e Expect) node() (*yaml.Node, error) {
	switch {
	case e.Pass:
		return text("pass"), nil
	case e.Loose:
		return text("violation"), nil
	}
	names := struct {
		Violation []string `yaml:"violation"`
		May       []string `yaml:"may"`
		Not       []string `yaml:"not"`
	}{e.Violation, e.May, e.Not}
	return encodeFields(reflect.ValueOf(names), true)
}

func (t Threshold) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if t.Below != nil {
		put(n, text("below"), scalar("", t.Unit.write(*t.Below)))
	}
	if t.Above != nil {
		put(n, text("above"), scalar("", t.Unit.write(*t.Above)))
	}
	if t.Outside != "" {
		put(n, text("outside"), text(t.Outside))
	}
	return n
}
