package reports

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

//go:embed web/*.html web/page.css
var web embed.FS

// pages are the HTML forms. Everything in them that comes from outside goes through html/template's escaping; the two
// exceptions are our own style sheet and the Markdown of a scenario, which goldmark renders without raw HTML.
var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"styles": func() (template.CSS, error) {
		css, err := web.ReadFile("web/page.css")
		return template.CSS(css), err
	},
	"clock": clock,
}).ParseFS(web, "web/*.html"))

// Most that a page shows; verdict.json has all of it.
const (
	mostTales    = 6
	talesACheck  = 3
	mostFindings = 20
	mostFaults   = 60
)

// Widths of a swimlane without the names of its lanes, in pixels: what a wide page has, and what a telephone scrolls through.
const (
	wideWidth   = 908
	narrowWidth = 440
)

// fact is a name and what it is.
type fact struct{ Name, Value string }

// row is a line of coverage or thresholds.
type row struct{ Sign, Class, Name, Got, Need string }

type reportPage struct {
	Title, Scenario, Subject, Verdict, Headline string
	Standing, StandingClass, Expectation        string
	Summary, Command, Pair, Version             string
	Reasons                                     []string
	CutShort                                    bool
	Stopped                                     string // "": the load went on to its end
	Facts, Environment                          []fact
	Tales                                       []*taleView
	Explains                                    template.HTML
	ExplainsTitle                               string
	Checks                                      []checkView
	Coverage, Thresholds                        []row
	LoadSentence, ChartNote, StallSentence      string
	LoadWarning                                 string // "": all that was due was started
	Latency                                     []latencyView
	Charts                                      []*chart
	Faults                                      []faultView
	MoreFaults                                  string
	Workers                                     []workerView
}

// taleView is a tale with its picture and its records.
type taleView struct {
	*tale
	Heading, Summary, Severity, Left, Others, Porcupine string
	Pictures                                            []*picture // the same, for wide and narrow pages
	Records                                             []recordView
	Legend                                              []legendView
	// Folded: another tale of the same check is on the page.
	Folded bool
}

type legendView struct {
	Mark mark
	Text string
}

type recordView struct{ Kind, Client, Key, Call, Return, Outcome, Fields string }

type checkView struct {
	Sign, Class, Name, About, Verdict, Detail, Count, More string
	Findings                                               []string
	Open                                                   bool
}

type latencyView struct {
	Kind   string
	Values []string
}

type faultView struct{ At, What, On, For, How string }

type workerView struct{ Name, Machine, Clock string }

// renderHTML renders report.html. linked says, by key, which Porcupine pages lie beside it.
func renderHTML(m *Material, linked map[string]string) ([]byte, error) {
	var b bytes.Buffer
	page, err := newReportPage(m, linked)
	if err != nil {
		return nil, err
	}
	if err := pages.ExecuteTemplate(&b, "report.html", page); err != nil {
		return nil, fmt.Errorf("reports: rendering report.html: %w", err)
	}
	return b.Bytes(), nil
}

func newReportPage(m *Material, linked map[string]string) (*reportPage, error) {
	r := &m.Result
	p := &reportPage{
		Title:    fmt.Sprintf("%s: %s", cleanName(r.Scenario), r.Verdict),
		Scenario: cleanName(r.Scenario), Subject: cleanName(r.Subject), Verdict: r.Verdict.String(),
		Headline: capital(r.Verdict.String()), Standing: string(r.Standing()), StandingClass: standingClass(r.Standing()),
		Expectation: standingSentence(r), ExplainsTitle: explainsTitle(r),
		Summary: cleanText(r.Summary), Command: clean(r.Command, 4*longText), Pair: cleanName(r.Pair),
		Version:       cleanName(r.Environment.Version),
		CutShort:      r.CutShort,
		LoadSentence:  loadSentence(r),
		LoadWarning:   loadWarning(r),
		StallSentence: "No stall is on record.",
	}
	if r.Stopped != nil {
		p.Stopped = r.Stopped.sentence()
	}
	for _, reason := range r.Reasons {
		p.Reasons = append(p.Reasons, cleanText(reason))
	}
	p.Facts = facts(r)
	p.Environment = environment(&r.Environment)
	if len(r.Stalls) > 0 {
		p.StallSentence = capital(stallSentence(r)) + "."
	}
	for i, t := range chooseTales(m, mostTales, talesACheck) {
		heading := "What happened"
		if i > 0 {
			heading = "And"
		}
		v := newTaleView(t, heading, linked)
		v.Folded = slices.ContainsFunc(p.Tales, func(told *taleView) bool { return told.Check == t.Check })
		p.Tales = append(p.Tales, v)
	}
	if t := nearMiss(m); t != nil && len(p.Tales) == 0 {
		p.Tales = append(p.Tales, newTaleView(t, "What was prevented", linked))
	}
	var err error
	if p.Explains, err = markdown(r.Explains); err != nil {
		return nil, err
	}
	p.Checks = checkViews(r, p.Tales)
	p.Coverage, p.Thresholds = coverageRows(r), thresholdRows(r)
	for _, kind := range sortedKeys(r.Load.Latency) {
		l := r.Load.Latency[kind]
		v := latencyView{Kind: cleanName(kind), Values: []string{grouped(l.Count)}}
		for _, us := range []float64{l.P50, l.P90, l.P99, l.P999, l.Max} {
			v.Values = append(v.Values, microseconds(us))
		}
		p.Latency = append(p.Latency, v)
	}
	series := m.Series
	p.ChartNote = "latency from when each operation was due, on a logarithmic scale"
	if series == nil {
		series = SeriesOf(m.Input)
		p.ChartNote = "latency from call to answer, on a logarithmic scale"
	}
	p.Charts = charts(series, r.Faults)
	p.Faults, p.MoreFaults = faultViews(r)
	for i := range r.Environment.Workers {
		p.Workers = append(p.Workers, newWorkerView(&r.Environment.Workers[i]))
	}
	return p, nil
}

func standingClass(s Standing) string {
	switch s {
	case AsExpected:
		return "good"
	case Contrary:
		return "bad"
	}
	return "warn"
}

func verdictClass(v models.Verdict) string {
	switch v {
	case models.Pass:
		return "good"
	case models.Violation:
		return "bad"
	}
	return "warn"
}

func facts(r *Result) []fact {
	all := []fact{
		{"started", r.Started.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"took", elapsed(r.Elapsed)},
		{"operations", grouped(r.Load.Operations)},
		{"faults", faultCounts(r.Faults)},
		{"seed", fmt.Sprint(r.Seed)},
		{"run", cleanName(r.Run)},
	}
	return nonEmpty(all)
}

func environment(e *Environment) []fact {
	all := []fact{
		{"system", strings.TrimSpace(strings.Join([]string{cleanName(e.OS), cleanName(e.Arch), cleanName(e.Kernel)}, " "))},
		{"CPUs", grouped(int64(e.CPUs))},
		{"Go", cleanName(e.Go)},
		{"Fencepost", cleanName(e.Version)},
	}
	for _, store := range sortedKeys(e.Topology) {
		text := cleanName(e.Topology[store])
		if s := e.Servers[store]; s != "" {
			text += ", " + cleanName(s)
		}
		if p := e.Provider[store]; p != "" {
			text += ", provider " + cleanName(p)
		}
		all = append(all, fact{cleanName(store), text})
	}
	return nonEmpty(all)
}

func nonEmpty(all []fact) []fact {
	kept := all[:0]
	for _, f := range all {
		if f.Value != "" {
			kept = append(kept, f)
		}
	}
	return kept
}

func newTaleView(t *tale, heading string, linked map[string]string) *taleView {
	v := &taleView{tale: t, Heading: heading, Summary: cleanText(t.Finding.Summary), Severity: string(t.Finding.Severity),
		Pictures: []*picture{drawTale(t, "wide", wideWidth), drawTale(t, "narrow", narrowWidth)}, Porcupine: linked[t.Finding.Key], Others: t.between()}
	if key := cleanName(t.Finding.Key); key != "" {
		v.Heading += map[bool]string{false: " to ", true: " on "}[t.Prevented] + key
	}
	if t.Left > 0 {
		v.Left = count(int64(t.Left), "operation") + " of the witness"
	}
	for i, op := range t.Finding.Operations {
		if i == 2*mostWitness {
			break
		}
		v.Records = append(v.Records, newRecordView(&op))
	}
	used := map[mark]bool{}
	for _, s := range t.Steps {
		used[s.Mark] = true
	}
	for _, l := range []legendView{{markOK, "done"}, {markRefused, "refused"}, {markFailed, "failed"}, {markUnknown, "no answer"},
		{markCall, "asked"}, {markExpiry, "expired"}, {markOffence, "what proves it wrong"}} {
		if used[l.Mark] {
			v.Legend = append(v.Legend, l)
		}
	}
	return v
}

// Believed reports whether a client believed in a hold for longer than it was in force, Clash whether two were at once.
func (v *taleView) Believed() bool { return v.has("believed") }
func (v *taleView) Clash() bool    { return v.has("clash") }

func (v *taleView) has(class string) bool {
	return slices.ContainsFunc(v.Pictures[0].Bars, func(b bar) bool { return b.Class == class })
}

func newRecordView(op *Operation) recordView {
	v := recordView{Kind: cleanName(op.Primitive + " " + op.Kind), Client: cleanName(op.Client), Key: cleanName(op.Key),
		Call: clock(op.Call, 6), Return: clock(op.Return, 6), Outcome: cleanName(op.Outcome)}
	if op.Return == models.Unbounded {
		v.Return = "never"
	}
	if op.Error != "" {
		v.Outcome += ": " + cleanText(op.Error)
	}
	var fields []string
	for _, name := range sortedKeys(op.Fields) {
		value := fmt.Sprint(op.Fields[name])
		if base, ok := strings.CutSuffix(name, "_ns"); ok {
			name, value = base, strings.ReplaceAll(span(time.Duration(op.Fields[name])), " ", "\u00a0")
		}
		fields = append(fields, name+"="+value)
	}
	v.Fields = strings.Join(fields, " ")
	return v
}

func checkViews(r *Result, told []*taleView) []checkView {
	shown := map[*Finding]bool{}
	for _, t := range told {
		shown[t.Finding] = true
	}
	var views []checkView
	for i := range r.Checks {
		c := &r.Checks[i]
		v := checkView{Sign: verdictSign(drawnAs(r, c)), Class: verdictClass(drawnAs(r, c)), Name: cleanName(c.Name), About: cleanText(c.About),
			Verdict: checkVerdict(c), Detail: capital(checkDetail(r, c))}
		left := c.More
		for j := range c.Findings {
			if len(v.Findings) == mostFindings {
				left += len(c.Findings) - j
				break
			}
			v.Findings = append(v.Findings, cleanText(c.Findings[j].Summary))
		}
		v.Open = len(v.Findings) <= 3
		v.Count = count(int64(len(c.Findings)+c.More), "finding")
		if left > 0 {
			v.More = fmt.Sprintf("%s more.", grouped(int64(left)))
		}
		views = append(views, v)
	}
	return views
}

func coverageRows(r *Result) []row {
	var rows []row
	for _, name := range sortedKeys(r.Coverage) {
		c := r.Coverage[name]
		v := row{"✓", "good", cleanName(name), grouped(c.Got), grouped(c.Need)}
		if c.Got < c.Need {
			v.Sign, v.Class = "?", "warn"
		}
		rows = append(rows, v)
	}
	return rows
}

func thresholdRows(r *Result) []row {
	var rows []row
	for _, t := range r.Thresholds {
		v := row{"✓", "good", cleanName(t.Metric), measured(t.Got, t.Unit), cleanName(t.Want)}
		switch {
		case t.Undecided:
			v.Sign, v.Class = "?", "warn"
		case !t.Met:
			v.Sign, v.Class = "✗", "bad"
		}
		rows = append(rows, v)
	}
	return rows
}

func faultViews(r *Result) (views []faultView, more string) {
	left := 0
	for i := range r.Faults {
		e := &r.Faults[i]
		phrase, _ := eventPhrase(e)
		if phrase == "" {
			continue
		}
		if len(views) == mostFaults {
			left++
			continue
		}
		v := faultView{At: clock(e.At, 3), What: phrase, On: cleanName(e.Target)}
		if e.Kind == history.EventFault {
			v.What = cleanName(e.Fault)
		}
		if e.End != 0 {
			v.For = span(time.Duration(e.End - e.At))
		}
		var how []string
		if e.Point != "" {
			how = append(how, aim(e))
		}
		if e.Kind == history.EventFault && !e.Confirmed {
			how = append(how, "not confirmed")
		}
		if e.Detail != "" {
			how = append(how, cleanText(e.Detail))
		}
		v.How = strings.Join(how, "; ")
		views = append(views, v)
	}
	if left > 0 {
		more = grouped(int64(left)) + " more are in faults.jsonl."
	}
	return views, more
}

func newWorkerView(w *Worker) workerView {
	v := workerView{Name: history.Process{Worker: cleanName(w.Name), Incarnation: w.Incarnation}.String(), Machine: cleanName(w.Machine)}
	v.Clock = "within " + span(time.Duration(w.ClockError)) + " of the coordinator's"
	if w.SameClock {
		v.Clock = "the coordinator's own"
	}
	if w.Died {
		v.Clock += "; it died"
	}
	return v
}

// Where a chart's parts are.

func (c *chart) Right() float64   { return c.Left + c.PlotWidth }
func (c *chart) Bottom() float64  { return c.Top + c.PlotHeight }
func (c *chart) TickEnd() float64 { return c.Bottom() + 4 }
func (c *chart) LabelX() float64  { return c.Left - 6 }
func (c *chart) LabelY() float64  { return c.Bottom() + 16 }
