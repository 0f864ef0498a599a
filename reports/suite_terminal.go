package reports

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
)

// SuiteTerminal prints the table of a suite: an entry a line, then how it went as a whole.
func SuiteTerminal(w io.Writer, s Suite, o Options) error {
	if o.Quiet {
		return nil
	}
	b := bufio.NewWriter(w)
	p := newPrinter(b, o)
	rows := [][]cell{{{"", dim}, {"scenario", dim}, {"expected", dim}, {"verdict", dim}, {"as expected", dim}, {"time", dim}, {"", dim}}}
	for i := range s.Entries {
		e := &s.Entries[i]
		standing := e.Stand()
		row := []cell{{standingSign(standing), standingStyle(standing)}, {cleanName(e.name()), plain}, {cleanText(e.Expected), dim}}
		if standing == Skipped {
			row = append(row, cell{"skipped", yellow}, cell{"", plain}, cell{"", plain})
		} else {
			row = append(row, cell{e.verdicts(), standingStyle(standing)},
				cell{fmt.Sprintf("%d/%d", e.asExpected(), len(e.Runs)), plain}, cell{elapsed(e.slowest()), plain})
		}
		rows = append(rows, append(row, cell{cleanText(e.note()), plain}))
	}
	p.suiteTable(rows)
	p.blank()
	standing := s.Standing()
	p.text(0, 2, standingStyle(standing), standingSign(standing)+" "+capital(s.summary())+", in "+elapsed(s.Elapsed)+".")
	if s.CutShort {
		p.text(2, 2, yellow, "Cut short: what is missing was not run.")
	}
	if o.Dir != "" {
		p.line("  " + path.Join(o.Dir, IndexFile))
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("reports: writing to the terminal: %w", err)
	}
	return nil
}

// suiteTable prints the rows without their notes in a table, and each note in the line below its row.
func (p *printer) suiteTable(rows [][]cell) {
	notes := make([]string, len(rows))
	for i, row := range rows {
		notes[i] = row[len(row)-1].text
		rows[i] = row[:len(row)-1]
	}
	others := 2*len(rows[0]) - 2 // what the other columns take
	for i := range rows[0] {
		widest := 0
		for _, row := range rows {
			if i < len(row) {
				widest = max(widest, columns(row[i].text))
			}
		}
		if i != 2 {
			others += widest
		}
	}
	for _, row := range rows { // what is expected yields first to a narrow terminal; what is no terminal has room for it
		if p.terminal {
			row[2].text = clean(row[2].text, max(11, p.width-2-others-1))
		}
	}
	var b bytes.Buffer
	inner := &printer{w: &b, width: p.width, color: p.color}
	if !p.terminal {
		inner.width = math.MaxInt32
	}
	inner.table(rows, map[int]bool{4: true, 5: true})
	for i, line := range strings.SplitAfter(b.String(), "\n") {
		io.WriteString(p.w, line)
		if i < len(notes) && notes[i] != "" {
			p.text(5, 5, dim, notes[i])
		}
	}
}

func standingSign(s Standing) string {
	switch s {
	case AsExpected:
		return "✓"
	case Contrary:
		return "✗"
	case Skipped:
		return "–"
	}
	return "?"
}
