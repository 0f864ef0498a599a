package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one thing wrong with a scenario: where it is, and in one sentence what it is and what was expected.
type Mistake struct {
	Source  string // the file, as it was named
	Line    int    // in the file, from 1; 0: the mistake is of the whole file, or of a flag
	Flag    string // the command line flag that brought it in; empty: the file
	Field   string // such as "faults[0].when"; empty: the whole
	Problem string
}

func (m Mistake) Error() string {
	var b strings.Builder
	switch {
	case m.Flag != "":
		b.WriteString(m.Flag)
	case m.Line > 0:
		fmt.Fprintf(&b, "%s:%d", m.Source, m.Line)
	default:
		b.WriteString(m.Source)
	}
	if m.Field != "" {
		b.WriteString(": " + m.Field)
	}
	return b.String() + ": " + m.Problem
}

// Mistakes are all that were found in one scenario, those of flags first, then by line and field. It is the error that loading returns.
type Mistakes []Mistake

// Error is one sentence a line.
func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a Mistake.
func (ms Mistakes) Unwrap() []error {
	errs := make([]error, len(ms))
	for i, m := range ms {
		errs[i] = m
	}
	return errs
}

// err is the mistakes as an error, sorted; nil if there are none.
func (ms Mistakes) err() error {
	if len(ms) == 0 {
		return nil
	}
	slices.SortStableFunc(ms, func(a, b Mistake) int {
		if (a.Flag != "") != (b.Flag != "") {
			if a.Flag != "" {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field))
	})
	return ms
}
