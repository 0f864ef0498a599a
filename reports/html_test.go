package reports

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/models"
)

func page(t testing.TB, m Material) []byte {
	t.Helper()
	b, err := renderHTML(&m, map[string]string{"k1": "porcupine-k1.html"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func story(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "story.html")
	if err := WriteStory(path, lockPause(false), lockPause(true), "lock-pause/report.html", "lock-pause-fenced/report.html"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var styles = regexp.MustCompile(`(?s)<style>.*?</style>`)

// normal takes the style sheet out, and puts each element on a line of its own, so that a golden file shows what changed.
func normal(page []byte) []byte {
	page = styles.ReplaceAll(page, []byte("<style>…</style>"))
	return append(bytes.TrimSpace(regexp.MustCompile(`\s*\n\s*|><`).ReplaceAllFunc(page, func(m []byte) []byte {
		if string(m) == "><" {
			return []byte(">\n<")
		}
		return []byte("\n")
	})), '\n')
}

func TestHTMLGolden(t *testing.T) {
	golden(t, "lock-pause.html", normal(page(t, lockPause(false))))
	golden(t, "lock-pause-fenced.html", normal(page(t, lockPause(true))))
	golden(t, "story.html", normal(story(t)))
	s := sampleSuite().settled()
	b, err := suiteHTML(&s)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "suite.html", normal(b))
}

// TestPagesAreSelfContained: nothing in a page makes a browser ask for anything.
func TestPagesAreSelfContained(t *testing.T) {
	s := sampleSuite().settled()
	suite, err := suiteHTML(&s)
	if err != nil {
		t.Fatal(err)
	}
	asks := regexp.MustCompile(`(?i)<(script|img|link|iframe|object|embed|base|form|audio|video|image)\b|@import|url\((?:[^#)]|#[^h])|\bsrc=|\bon[a-z]+=|href="(?:[a-z]+:)?//`)
	m := lockPause(false)
	m.Result.Explains += "\n\n![a picture](https://example.invalid/x.png) <img src=https://example.invalid/y.png> <script>x()</script>\n\n<style>@import 'x'</style>\n\n[a](javascript:alert(1))"
	for name, b := range map[string][]byte{"report": page(t, m), "story": story(t), "suite": suite} {
		if found := asks.Find(b); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		if !bytes.Contains(b, []byte("default-src 'none'")) {
			t.Errorf("%s has no content security policy", name)
		}
		if bytes.Contains(b, []byte("javascript:")) {
			t.Errorf("%s has a link that runs a script", name)
		}
	}
}

// hostile is text that means something to each of the languages that reports are written in.
const hostile = "</title></style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`{{.}} ](http://evil.invalid) **b** _i_ \\*c\\* | x | $x$ @all #1 www.evil.invalid \x1b[31m\x00\x07\u202e\u2028\ufeff\r\n\xff <!-- --> ]]> &amp; &lt;"

// hostileMaterial is the run of lock-pause with hostile text wherever text comes from outside.
func hostileMaterial() Material {
	m := lockPause(false)
	in := m.Input
	in.Names.Keys[1] = hostile
	in.Names.Errors[1] = hostile
	in.Names.Workers[1].Worker = hostile
	for i := range in.Operations {
		if in.Operations[i].Outcome == history.Refused {
			in.Operations[i].Outcome, in.Operations[i].Error = history.Failed, 1
		}
	}
	r := &m.Result
	for i := range r.Checks {
		c := &r.Checks[i]
		c.Name, c.About, c.Reason = c.Name+hostile, hostile, hostile
		for j := range c.Findings {
			f := &c.Findings[j]
			f.Summary += hostile
			f.Key = strings.Replace(f.Key, "k1", hostile, 1)
			for k := range f.Operations {
				op := &f.Operations[k]
				op.Key, op.Note, op.Error = f.Key, hostile, hostile
				if op.Client == "w2/c0" {
					op.Client = hostile + "/c0"
				}
			}
		}
	}
	r.Scenario, r.Subject, r.Summary, r.Command, r.Pair, r.Run = hostile, hostile, hostile, hostile, hostile, hostile
	r.Reasons = []string{hostile}
	r.ExpectedChecks.Must = []string{r.Checks[2].Name, r.Checks[3].Name}
	r.Coverage[hostile] = Coverage{1, 2}
	r.Thresholds[0].Metric, r.Thresholds[0].Want = hostile, hostile
	r.Load.Latency[hostile] = Latency{Count: 1, P50: 1}
	for i := range r.Faults {
		f := &r.Faults[i]
		f.Detail, f.Point = hostile, hostile
	}
	r.Faults[0].Client, r.Faults[1].Fault, r.Faults[2].Target = hostile, hostile, hostile
	r.Stalls[0].Target = hostile
	e := &r.Environment
	e.Version, e.Kernel, e.Workers[0].Machine = hostile, hostile, hostile
	e.Servers["valkey"], e.Topology[hostile] = hostile, hostile
	return m
}

// tags counts the elements of a page.
func tags(page []byte) map[string]int {
	n := map[string]int{}
	for _, m := range regexp.MustCompile(`</?[a-zA-Z!][a-zA-Z0-9-]*`).FindAll(page, -1) {
		n[string(m)]++
	}
	return n
}

func TestHostileTextIsOnlyText(t *testing.T) {
	m := hostileMaterial()
	b := page(t, m)
	harmless := tags(page(t, lockPause(false)))
	for tag := range tags(b) {
		if _, known := harmless[tag]; !known {
			t.Errorf("the page has a %s> that it should not have", tag)
		}
	}
	for _, bad := range []string{"<script", "<img", "onerror=alert(1)>", "\x1b", "\x00", "\u202e", "\u2028", "\ufeff", "<!-- -->"} {
		if bytes.Contains(b, []byte(bad)) {
			t.Errorf("the page has %q", bad)
		}
	}
	text := terminal(t, m, Options{Dir: "results"})
	var told bytes.Buffer
	if err := StoryTerminal(&told, m, m, Options{}); err != nil {
		t.Fatal(err)
	}
	s := sampleSuite()
	for i := range s.Entries {
		e := &s.Entries[i]
		e.Scenario, e.Summary, e.Expected = hostile, hostile, hostile
		for j := range e.Runs {
			e.Runs[j].Reasons, e.Runs[j].Dir = []string{hostile}, hostile
		}
	}
	if err := SuiteTerminal(&told, s, Options{}); err != nil {
		t.Fatal(err)
	}
	p := NewProgress(&told, Options{})
	p.Show(Tick{Doing: hostile, Faults: []string{hostile}, Changes: []Change{{Fault: hostile}}})
	for _, bad := range []string{"\x1b", "\x00", "\x07", "\u202e", "\u2028", "\ufeff", "\r"} {
		if bytes.Contains(slices.Concat(text, told.Bytes()), []byte(bad)) {
			t.Errorf("the terminal is sent %q", bad)
		}
	}
	s = s.settled()
	b, err := suiteHTML(&s)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("<script")) || bytes.Contains(b, []byte("<img")) {
		t.Error("the suite's page has an element that it should not have")
	}
	if bytes.Contains(b, []byte(`href="http`)) || bytes.Contains(b, []byte(`href="<`)) {
		t.Error("the suite's page links away")
	}
}

// TestBigRunStaysSmall: a run of a quarter of a million operations, with more findings, longer witnesses and more faults than a page can
// tell, still makes a page that a browser takes lightly.
func TestBigRunStaysSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a long run")
	}
	r := newRun()
	grants := make([]history.Operation, 1000)
	for i := range 250_000 {
		at := int64(i) * 60_000
		op := history.Operation{Kind: history.Acquire, Worker: uint16(i % 3), Client: uint16(i % 50), Key: 1, Outcome: history.OK, Call: at, Return: at + 200_000 + int64(i%997)*300}
		op.SetGrant(history.NewGrantID(op.Worker, op.Client, uint32(i%5000)+1))
		op.SetTTL(300 * time.Millisecond)
		r.ops = append(r.ops, op)
		if i < len(grants) {
			grants[i] = op
		}
	}
	report := models.Report{Check: "linearizable", Verdict: models.Violation, More: 1 << 20}
	for i := range 10_000 {
		f := models.Finding{Severity: models.Safety, Key: "k1", At: int64(i), Summary: strings.Repeat("a long sentence ", 100), Operations: grants[:4]}
		if i < 10 {
			f.Operations = grants
		}
		report.Findings = append(report.Findings, f)
	}
	m := Material{Input: r.input()}
	m.Result = Result{Scenario: "big", Verdict: models.Violation, Expected: "pass", Explains: strings.Repeat("words ", 1000),
		Checks: Checks([]models.Report{report}, &r.names)}
	for i := range 10_000 {
		m.Result.Faults = append(m.Result.Faults, history.Event{ID: i, Kind: history.EventFault, Fault: "pause", Target: "w1", Process: 0,
			At: int64(i) * 6 * ms, End: int64(i)*6*ms + 3*ms})
	}
	for what, series := range map[string][]Series{"from the history": nil, "many and long": longSeries(40, 36_000)} {
		m.Series = series
		started := time.Now()
		b := page(t, m)
		t.Logf("series %s: %d bytes in %s", what, len(b), time.Since(started))
		if len(b) > 1<<20 {
			t.Errorf("series %s: the page has %d bytes", what, len(b))
		}
	}
}

func longSeries(kinds, points int) []Series {
	var all []Series
	for i := range kinds {
		s := Series{Kind: fmt.Sprint("kind", i)}
		for j := range points {
			s.Points = append(s.Points, Point{At: int64(j) * 100 * ms, Length: 100 * time.Millisecond, Count: 10, P50: 100, P99: float64(100 + j%1000)})
		}
		all = append(all, s)
	}
	return all
}

func TestChartsOfFewAndManyPoints(t *testing.T) {
	for _, n := range []int{0, 1, 2, 60, 121, 5000} {
		s := Series{Kind: "acquire"}
		for i := range n {
			s.Points = append(s.Points, Point{At: int64(i) * 100 * ms, Length: 100 * time.Millisecond, Count: int64(i % 7), Errors: int64(i % 2), P50: 120, P99: 900 + float64(i)})
		}
		drawn := charts([]Series{s}, []history.Event{{Kind: history.EventFault, Fault: "pause", At: 0, End: 50 * ms}})
		if n == 0 {
			if drawn != nil {
				t.Error("a chart of nothing")
			}
			continue
		}
		m := lockPause(false)
		m.Series = []Series{s}
		b := page(t, m)
		for _, bad := range []string{"NaN", "Inf", "+Inf"} {
			if bytes.Contains(b, []byte(bad)) {
				t.Errorf("%d points: the page has %s", n, bad)
			}
		}
		for _, c := range drawn {
			if len(c.XTicks) < 2 && n > 1 || len(c.YTicks) < 2 {
				t.Errorf("%d points: %s has axes without ticks", n, c.Title)
			}
			for _, l := range c.Lines {
				if points := strings.Count(l.Path, "M") + strings.Count(l.Path, "L"); points > mostPoints {
					t.Errorf("%d points: %s draws %d", n, c.Title, points)
				}
			}
			if n == 2 && c.Title == "acquire" && len(c.Lines[0].Dots) == 0 {
				t.Error("a single point is not seen")
			}
		}
	}
}

func TestSeriesOfCountsEveryOperation(t *testing.T) {
	m := lockPause(false)
	want := map[string]int64{}
	for i := range m.Input.Operations {
		want[m.Input.Operations[i].Kind.String()]++
	}
	got := map[string]int64{}
	for _, s := range SeriesOf(m.Input) {
		for _, p := range s.Points {
			got[s.Kind] += p.Count
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, recorded %v", got, want)
	}
	one := &models.Input{Names: m.Input.Names, Operations: m.Input.Operations[:1]}
	if s := SeriesOf(one); len(s) != 1 || len(s[0].Points) != 1 || s[0].Points[0].Count != 1 {
		t.Errorf("one operation: %+v", s)
	}
}
