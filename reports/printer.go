package reports

import (
	"io"
	"strings"

	"fencepost.dev/models"
)

// printer lays out lines for a terminal. Text given to it is printable already; it wraps, aligns and paints.
type printer struct {
	w     io.Writer
	width int
	color bool
	// terminal: the width is that of a terminal, and not only one at which text reads well.
	terminal bool
}

func newPrinter(w io.Writer, o Options) *printer {
	p := &printer{w: w, width: o.Width, color: o.Color, terminal: o.Width > 0}
	if p.width == 0 {
		p.width = 100
	}
	p.width = max(p.width, 40)
	return p
}

// style is how a piece of text is painted, as the parameters of a terminal's SGR sequence.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "1;31"
	green  style = "32"
	yellow style = "33"
)

func (p *printer) paint(s style, text string) string {
	if !p.color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// line prints a line as it is. A failed write shows when the caller flushes.
func (p *printer) line(text string) { io.WriteString(p.w, strings.TrimRight(text, " ")+"\n") }

func (p *printer) blank() { p.line("") }

// section begins a part: its title and, on the same line, what there is to say in a sentence.
func (p *printer) section(title, rest string) {
	p.blank()
	if rest == "" {
		p.line(p.paint(bold, title))
		return
	}
	p.hang(p.paint(bold, title)+"  ", columns(title)+2, plain, rest)
}

// text wraps text, its first line indented by first columns and the others by indent.
func (p *printer) text(first, indent int, s style, text string) {
	for i, l := range wrap(text, p.width-max(first, indent)) {
		in := indent
		if i == 0 {
			in = first
		}
		p.line(strings.Repeat(" ", in) + p.paint(s, l))
	}
}

// hang prints text behind a lead of the given width, wrapped below itself.
func (p *printer) hang(lead string, width int, s style, text string) {
	for i, l := range wrap(text, p.width-width) {
		if i > 0 {
			lead = strings.Repeat(" ", width)
		}
		p.line(lead + p.paint(s, l))
	}
}

// cell is one cell of a table.
type cell struct {
	text  string
	style style
}

// table prints rows aligned, indented by two; columns in right are flush right. The last column wraps.
func (p *printer) table(rows [][]cell, right map[int]bool) {
	if len(rows) == 0 {
		return
	}
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(c.text))
		}
	}
	p.narrow(widths, !right[len(widths)-1])
	for _, row := range rows {
		lead, used := "  ", 2
		for i, c := range row {
			if columns(c.text) > widths[i] && (i < len(row)-1 || right[i]) {
				c.text = clean(c.text, widths[i]-1)
			}
			if i == len(row)-1 && !right[i] {
				p.hang(lead, used, c.style, c.text)
				break
			}
			pad := strings.Repeat(" ", widths[i]-columns(c.text))
			if right[i] {
				lead += pad + p.paint(c.style, c.text)
			} else {
				lead += p.paint(c.style, c.text) + pad
			}
			used += widths[i]
			if i == len(row)-1 {
				p.line(lead)
				break
			}
			lead += "  "
			used += 2
		}
	}
}

// narrow takes columns from the widest ones until a table fits. A last column that wraps needs 16.
func (p *printer) narrow(widths []int, wraps bool) {
	cut, room := widths, p.width-2*len(widths)
	if wraps {
		cut, room = widths[:len(widths)-1], room-16
	}
	for {
		total, widest := 0, 0
		for i, w := range cut {
			total += w
			if w > cut[widest] {
				widest = i
			}
		}
		if total <= room || len(cut) == 0 || cut[widest] <= 12 {
			return
		}
		cut[widest]--
	}
}

// wrap breaks text into lines of at most width columns, at spaces where there are any. It gives at least one line.
func wrap(text string, width int) []string {
	width = max(width, 16)
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := columns(word)
		for n > width { // a word longer than a line
			if used > 0 {
				lines = append(lines, line)
				line, used = "", 0
			}
			runes := []rune(word)
			lines = append(lines, string(runes[:width]))
			word = string(runes[width:])
			n = columns(word)
		}
		switch {
		case used == 0:
			line, used = word, n
		case used+1+n <= width:
			line, used = line+" "+word, used+1+n
		default:
			lines = append(lines, line)
			line, used = word, n
		}
	}
	return append(lines, line)
}

// columns is how wide text is, taking each character for one column.
func columns(text string) int { return len([]rune(text)) }

func verdictStyle(v models.Verdict) style {
	switch v {
	case models.Pass:
		return green
	case models.Violation:
		return red
	}
	return yellow
}

func standingStyle(s Standing) style {
	switch s {
	case AsExpected:
		return green
	case Contrary:
		return red
	}
	return yellow
}
