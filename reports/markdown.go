package reports

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"fencepost.dev/models"
)

// renderMarkdown renders report.md: the report for a pull request, in GitHub's Markdown.
func renderMarkdown(m *Material, _ map[string]string) ([]byte, error) {
	r := &m.Result
	w := &mdWriter{}
	w.line("## %s %s: %s", verdictSign(r.Verdict), mdText(r.Scenario), r.Verdict)
	w.line("**%s** %s", mdText(standingSentence(r)), mdText(r.Summary))
	for _, reason := range r.Reasons {
		w.item("%s", mdText(reason))
	}
	w.endList()
	if r.Stopped != nil {
		w.line("%s", mdText(r.Stopped.sentence()))
	}
	if r.CutShort {
		w.line("*Cut short: this is what there was until then.*")
	}
	tales := chooseTales(m, 2, 1)
	for i, t := range tales {
		w.tale(t, []string{"What happened", "And"}[i])
	}
	if t := nearMiss(m); t != nil && len(tales) == 0 {
		w.tale(t, "What was prevented")
	}
	w.checks(r)
	w.numbers(r)
	if r.Explains != "" {
		w.line("<details><summary>%s</summary>", explainsTitle(r))
		w.line("%s", strings.TrimSpace(withoutHTML(cleanLines(r.Explains))))
		w.line("</details>")
	}
	w.line("%s, seed %d, %s. Again: %s", mdCode(r.Subject), r.Seed, elapsed(r.Elapsed), mdCode(clean(r.Command, 4*longText)))
	return w.Bytes(), nil
}

// mdWriter writes blocks of Markdown, one empty line between them.
type mdWriter struct{ bytes.Buffer }

func (w *mdWriter) line(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	w.WriteString(text + "\n\n")
}

func (w *mdWriter) item(format string, args ...any) { fmt.Fprintf(w, "- "+format+"\n", args...) }

// endList ends a list, if there is one.
func (w *mdWriter) endList() {
	if !bytes.HasSuffix(w.Bytes(), []byte("\n\n")) {
		w.WriteString("\n")
	}
}

// table writes a table; its cells are Markdown already.
func (w *mdWriter) table(head, align []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	for _, row := range append([][]string{head, align}, rows...) {
		w.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	w.WriteString("\n")
}

func (w *mdWriter) tale(t *tale, title string) {
	between := ""
	if t.Check != "" {
		between = ":"
	}
	w.line("### %s%s %s", title, between, mdText(t.subject()))
	w.line("%s", mdText(t.Finding.Summary))
	var rows [][]string
	for i := range t.Steps {
		s := &t.Steps[i]
		text := mdText(s.Text)
		if s.Mark == markOffence {
			text = "**" + text + "**"
		}
		if s.Note != "" {
			text += "<br><sub>" + mdText(s.Note) + "</sub>"
		}
		rows = append(rows, []string{clock(s.At, t.Decimals), markSigns[s.Mark], mdText(s.Who), text})
	}
	w.table([]string{"at", "", "who", "what happened"}, []string{"--:", "---", "---", "---"}, rows)
	if t.Left > 0 {
		w.line("%s of the witness left out; verdict.json has them all.", count(int64(t.Left), "operation"))
	}
	if text := t.between(); text != "" {
		w.line("%s", mdText(text))
	}
}

func (w *mdWriter) checks(r *Result) {
	w.line("### Checks")
	var rows [][]string
	for i := range r.Checks {
		c := &r.Checks[i]
		rows = append(rows, []string{verdictSign(drawnAs(r, c)), mdText(c.Name), mdText(checkVerdict(c)), mdText(checkDetail(r, c))})
	}
	w.table([]string{"", "check", "verdict", ""}, []string{"---", "---", "---", "---"}, rows)
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Verdict != models.Violation {
			continue
		}
		for j := range c.Findings {
			if j == 5 {
				w.item("%s: %s more", mdText(c.Name), grouped(int64(len(c.Findings)-j+c.More)))
				break
			}
			w.item("%s: %s", mdText(c.Name), mdText(c.Findings[j].Summary))
		}
	}
	w.endList()
}

// numbers are coverage, thresholds, load and stalls.
func (w *mdWriter) numbers(r *Result) {
	var rows [][]string
	for _, v := range coverageRows(r) {
		rows = append(rows, []string{v.Sign, mdText(v.Name), v.Got, v.Need})
	}
	w.table([]string{"", "coverage", "happened", "at least"}, []string{"---", "---", "--:", "--:"}, rows)
	rows = nil
	for _, v := range thresholdRows(r) {
		rows = append(rows, []string{v.Sign, mdText(v.Name), v.Got, mdText(v.Need)})
	}
	w.table([]string{"", "threshold", "measured", "wanted"}, []string{"---", "---", "--:", "--:"}, rows)
	w.line("### Load")
	w.line("%s.", loadSentence(r))
	if text := loadWarning(r); text != "" {
		w.line("**Warning:** %s", mdText(text))
	}
	rows = nil
	for _, kind := range sortedKeys(r.Load.Latency) {
		l := r.Load.Latency[kind]
		rows = append(rows, []string{mdText(kind), grouped(l.Count), microseconds(l.P50), microseconds(l.P90), microseconds(l.P99),
			microseconds(l.P999), microseconds(l.Max)})
	}
	w.table([]string{"latency", "count", "p50", "p90", "p99", "p99.9", "max"},
		[]string{"---", "--:", "--:", "--:", "--:", "--:", "--:"}, rows)
	if f := faultCounts(r.Faults); f != "" {
		w.line("Faults: %s.", mdText(f))
	}
	if len(r.Stalls) > 0 {
		w.line("%s.", mdText(capital(stallSentence(r))))
	}
}

// mdEscapes takes from characters what meaning they have in GitHub's Markdown: emphasis, code, links, HTML, tables, mathematics,
// and the links that it makes by itself of addresses, mentions and issue numbers.
var mdEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "|", `\|`, "~", `\~`,
	"$", `\$`, "!", `\!`, "@", "@\u200b", "#", "#\u200b", "://", ":\u200b//", "www.", "www\u200b.",
)

// mdText is text from outside as text in Markdown.
func mdText(text string) string { return mdEscapes.Replace(cleanText(text)) }

// mdCode is text from outside as a code span.
func mdCode(text string) string {
	text = strings.ReplaceAll(clean(text, 4*longText), "|", "\u2502")
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if text == "" {
		return ""
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

var tagStart = regexp.MustCompile(`<([A-Za-z/!?])`)

// withoutHTML takes raw HTML out of a scenario's own Markdown, outside of fenced code: a tag could close what is around it.
func withoutHTML(source string) string {
	lines := strings.Split(source, "\n")
	fence := ""
	for i, line := range lines {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
		default:
			lines[i] = tagStart.ReplaceAllString(line, "&lt;$1")
		}
	}
	if fence != "" { // it would run on into what follows
		lines = append(lines, fence)
	}
	return strings.Join(lines, "\n")
}
