package reports

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

// Options say how text for people is laid out.
type Options struct {
	Color bool
	Width int  // columns; 0: 100
	Quiet bool // write nothing
	// Live: the output is a terminal whose last line can be rewritten. Progress only.
	Live bool
	// Dir is where the pages are, to tell their paths; "": say nothing of them.
	Dir string
}

// Terminal tells a run to a person: the verdict first, then what proves it, then the rest.
func Terminal(w io.Writer, m Material, o Options) error {
	if o.Quiet {
		return nil
	}
	b := bufio.NewWriter(w)
	p := newPrinter(b, o)
	r := &m.Result
	p.headline(r)
	tales := chooseTales(&m, 2, 1)
	for i, t := range tales {
		p.tale(t, []string{"How it happened", "And"}[i])
	}
	if t := nearMiss(&m); t != nil && len(tales) == 0 {
		p.tale(t, "What was prevented")
	}
	p.checks(r, tales)
	p.coverage(r)
	p.thresholds(r)
	p.load(r)
	p.stalls(r)
	p.pages(o.Dir)
	p.reproduce(r)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("reports: writing to the terminal: %w", err)
	}
	return nil
}

func (p *printer) headline(r *Result) {
	word := strings.ToUpper(r.Verdict.String())
	p.line(p.paint(verdictStyle(r.Verdict), verdictSign(r.Verdict)+" "+word) + p.paint(bold, "  "+cleanName(r.Scenario)) +
		p.paint(dim, "  "+cleanName(r.Subject)))
	p.text(2, 2, standingStyle(r.Standing()), standingSentence(r))
	if r.Summary != "" {
		p.text(2, 2, plain, cleanText(r.Summary))
	}
	for _, reason := range r.Reasons {
		p.text(2, 4, plain, "· "+cleanText(reason))
	}
	if r.Stopped != nil {
		p.text(2, 2, plain, r.Stopped.sentence())
	}
	if r.CutShort {
		p.text(2, 2, yellow, "Cut short: this is what there was until then.")
	}
}

// tale prints one finding as a timeline.
func (p *printer) tale(t *tale, title string) {
	p.section(title, t.subject())
	p.text(2, 2, plain, cleanText(t.Finding.Summary))
	p.blank()
	p.steps(t)
}

// steps prints a timeline, a line an event.
func (p *printer) steps(t *tale) {
	who := 0
	for _, s := range t.Steps {
		who = max(who, columns(s.Who))
	}
	who = min(who, 24)
	for i := range t.Steps {
		p.step(t, &t.Steps[i], who)
	}
	if t.Left > 0 {
		p.text(2, 2, dim, fmt.Sprintf("%s of the witness left out; verdict.json has them all.", count(int64(t.Left), "operation")))
	}
	if text := t.between(); text != "" {
		p.text(2, 2, dim, text)
	}
}

func (p *printer) step(t *tale, s *step, who int) {
	at := fmt.Sprintf("%9s", clock(s.At, t.Decimals))
	style, sign := plain, markSigns[s.Mark]
	switch {
	case s.Mark == markOffence:
		style = red
	case s.Mark == markFault:
		style = yellow
	case s.Around || s.Mark == markExpiry:
		style = dim
	case s.Mark == markRefused || s.Mark == markFailed:
		style = plain
	}
	name := clean(s.Who, 23)
	name += strings.Repeat(" ", max(0, who-len([]rune(name))))
	lead := fmt.Sprintf("  %s  %s  %s  ", at, sign, name)
	p.hang(p.paint(dim, "  "+at+"  ")+p.paint(style, sign+"  "+name+"  "), len([]rune(lead)), style, s.Text)
	if s.Note != "" {
		p.text(len([]rune(lead)), len([]rune(lead)), dim, s.Note)
	}
}

// markSigns are one column wide each.
var markSigns = map[mark]string{
	markOK: "·", markRefused: "○", markFailed: "×", markUnknown: "?", markOffence: "◆", markFault: "▒", markExpiry: "⧗", markCall: "→",
}

func (p *printer) checks(r *Result, told []*tale) {
	if len(r.Checks) == 0 {
		return
	}
	p.section("Checks", "")
	rows := make([][]cell, 0, len(r.Checks))
	for i := range r.Checks {
		c := &r.Checks[i]
		rows = append(rows, []cell{
			{verdictSign(drawnAs(r, c)), verdictStyle(drawnAs(r, c))},
			{cleanName(c.Name), plain},
			{checkVerdict(c), verdictStyle(drawnAs(r, c))},
			{checkDetail(r, c), dim},
		})
	}
	p.table(rows, nil)
	for i := range r.Checks {
		c := &r.Checks[i]
		for j := range c.Findings {
			f := &c.Findings[j]
			if slices.ContainsFunc(told, func(t *tale) bool { return t.Finding == f }) {
				continue
			}
			if j >= 3 {
				p.text(4, 6, dim, fmt.Sprintf("… and %s more of %s", grouped(int64(len(c.Findings)-j+c.More)), cleanName(c.Name)))
				break
			}
			p.text(4, 6, plain, fmt.Sprintf("%s: %s", cleanName(c.Name), cleanText(f.Summary)))
		}
	}
}

func (p *printer) coverage(r *Result) {
	if len(r.Coverage) == 0 {
		return
	}
	p.section("Coverage", "")
	var rows [][]cell
	for _, name := range sortedKeys(r.Coverage) {
		c := r.Coverage[name]
		sign, style := "✓", green
		if c.Got < c.Need {
			sign, style = "?", yellow
		}
		rows = append(rows, []cell{{sign, style}, {cleanName(name), plain}, {grouped(c.Got), plain},
			{"of at least " + grouped(c.Need), dim}})
	}
	p.table(rows, map[int]bool{2: true})
}

func (p *printer) thresholds(r *Result) {
	if len(r.Thresholds) == 0 {
		return
	}
	p.section("Thresholds", "")
	var rows [][]cell
	for _, t := range r.Thresholds {
		sign, style := "✓", green
		switch {
		case t.Undecided:
			sign, style = "?", yellow
		case !t.Met:
			sign, style = "✗", red
		}
		rows = append(rows, []cell{{sign, style}, {cleanName(t.Metric), plain}, {measured(t.Got, t.Unit), plain},
			{"wanted " + cleanName(t.Want), dim}})
	}
	p.table(rows, map[int]bool{2: true})
}

func (p *printer) load(r *Result) {
	p.section("Load", loadSentence(r))
	if text := loadWarning(r); text != "" {
		p.text(2, 2, yellow, text)
	}
	if len(r.Load.Latency) == 0 {
		return
	}
	rows := [][]cell{{{"", dim}, {"count", dim}, {"p50", dim}, {"p90", dim}, {"p99", dim}, {"p99.9", dim}, {"max", dim}}}
	for _, kind := range sortedKeys(r.Load.Latency) {
		l := r.Load.Latency[kind]
		rows = append(rows, []cell{{cleanName(kind), plain}, {grouped(l.Count), plain}, {microseconds(l.P50), plain},
			{microseconds(l.P90), plain}, {microseconds(l.P99), plain}, {microseconds(l.P999), plain}, {microseconds(l.Max), plain}})
	}
	p.table(rows, map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true})
}

func (p *printer) stalls(r *Result) {
	if len(r.Stalls) == 0 {
		return
	}
	p.section("Stalls", stallSentence(r))
}

func (p *printer) pages(dir string) {
	if dir == "" {
		return
	}
	p.section("Pages", "")
	p.line("  " + filepath.Join(dir, HTMLFile)) // never wrapped: people copy it
}

func (p *printer) reproduce(r *Result) {
	if r.Command == "" {
		return
	}
	p.section("Again", "")
	p.line("  " + clean(r.Command, 4*longText))
}

// Sentences and words that the forms share.

func verdictSign(v models.Verdict) string {
	switch v {
	case models.Pass:
		return "✓"
	case models.Violation:
		return "✗"
	}
	return "?"
}

func checkVerdict(c *Check) string {
	if c.Severity != "" {
		return c.Verdict.String() + " (" + string(c.Severity) + ")"
	}
	return c.Verdict.String()
}

// checkDetail says what is behind a check's verdict.
func checkDetail(r *Result, c *Check) string {
	var parts []string
	if n := len(c.Findings) + c.More; n > 0 {
		parts = append(parts, count(int64(n), "finding"))
	}
	if text, _ := remark(r, c); text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, count(int64(c.Decided), "operation")+" judged")
	if c.Missed > 0 {
		parts = append(parts, count(int64(c.Missed), "object")+" of them only by porcupine")
	}
	if c.Reason != "" {
		parts = append(parts, cleanText(c.Reason))
	}
	return strings.Join(parts, ", ")
}

func loadSentence(r *Result) string {
	l := &r.Load
	text := fmt.Sprintf("%s, %s", count(l.Operations, "operation"), count(l.Errors, "error"))
	if l.Offered > 0 {
		text += fmt.Sprintf("; %s turns/s offered", significant(l.Offered))
	}
	if l.Achieved > 0 {
		text += fmt.Sprintf("; %s turns/s achieved", significant(l.Achieved))
	}
	for i := range r.Faults {
		if e := &r.Faults[i]; e.Kind == history.EventLoadStarted {
			text += "; load began at " + clock(e.At, 3)
		}
	}
	return text
}

// loadWarning says that not all that was due was done; "" if it was.
func loadWarning(r *Result) string {
	text := r.Load.Warning()
	if text == "" {
		return ""
	}
	return text + ": they still waited for a free client when load ended, and are in no latency and no rate."
}

// stallSentence says how many stalls there were that weren't a fault's own doing.
func stallSentence(r *Result) string {
	var longest *history.Event
	n, faults := int64(0), int64(0)
	for i := range r.Stalls {
		e := &r.Stalls[i]
		if underFault(e, r.Faults) {
			faults++
			continue
		}
		n++
		if longest == nil || e.Delay > longest.Delay {
			longest = e
		}
	}
	var text string
	switch {
	case n == 0 && faults > 0:
		return fmt.Sprintf("no stall, besides the %s that the faults made", grouped(faults))
	case n == 0:
		text = "no stall"
	case n == 1:
		text = fmt.Sprintf("1 stall: %s on %s at %s", span(longest.Delay), cleanName(longest.Target), clock(longest.At, 3))
	default:
		text = fmt.Sprintf("%s; the longest: %s on %s at %s", count(n, "stall"), span(longest.Delay), cleanName(longest.Target), clock(longest.At, 3))
	}
	if faults > 0 {
		text += fmt.Sprintf("; %s more by the faults themselves", grouped(faults))
	}
	return text
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func elapsed(seconds float64) string { return span(time.Duration(seconds * float64(time.Second))) }

// faultCounts says which faults there were: "3 × pause".
func faultCounts(events []history.Event) string {
	n := map[string]int64{}
	for i := range events {
		if events[i].Kind == history.EventFault {
			n[events[i].Fault]++
		}
	}
	var parts []string
	for _, name := range sortedKeys(n) {
		parts = append(parts, grouped(n[name])+" × "+cleanName(name))
	}
	return strings.Join(parts, ", ")
}
