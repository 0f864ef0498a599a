package reports

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"pgregory.net/rapid"

	"fencepost.dev/models"
)

func junit(t testing.TB, m Material) []byte {
	t.Helper()
	b, err := renderJUnit(&m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parseJUnit reads a file as a CI system does.
func parseJUnit(t testing.TB, b []byte) (file junitFile) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&file); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if _, err := dec.Token(); err != io.EOF && err != nil {
		t.Fatalf("after the end: %v", err)
	}
	return file
}

func TestJUnitGolden(t *testing.T) {
	golden(t, "lock-pause.junit.xml", junit(t, lockPause(false)))
	m := lockPause(false)
	m.Result.Expected, m.Result.ExpectedChecks, m.Result.AsExpected = "pass", ExpectedChecks{}, false
	m.Result.Reasons = []string{"fencing and lost-update were violated, which the scenario does not expect."}
	golden(t, "lock-pause-unexpected.junit.xml", junit(t, m))
	s := sampleSuite().settled()
	b, err := suiteJUnit(&s)
	if err != nil {
		t.Fatal(err)
	}
	parseJUnit(t, b)
	golden(t, "suite.junit.xml", b)
}

func TestJUnitOfHostileTextParses(t *testing.T) {
	b := junit(t, hostileMaterial())
	parseJUnit(t, b)
	for _, r := range string(b) {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			t.Fatalf("the file has %q, which XML has not", r)
		}
	}
}

// TestJUnitFailsExactlyIfTheRunDoes: whatever a run comes to, its file has a failure if its exit status is 1, an error and no
// failure if it is 3, and neither if it is 0.
func TestJUnitFailsExactlyIfTheRunDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyResult(rt)
		file := parseJUnit(t, junit(t, Material{Result: *r}))
		var fails, errors int
		for _, s := range file.Suites {
			for _, c := range s.Cases {
				if c.Failure != nil {
					fails++
				}
				if c.Error != nil {
					errors++
				}
			}
		}
		if fails != file.Fails || errors != file.Errors {
			rt.Fatalf("it counts %d failures and %d errors, and has %d and %d", file.Fails, file.Errors, fails, errors)
		}
		switch exit := exit[r.Standing()]; {
		case exit == 0 && fails+errors > 0, exit == 1 && fails == 0, exit == 3 && errors == 0:
			rt.Fatalf("exit status %d, %d failures, %d errors", exit, fails, errors)
		}
	})
}

// exit is the exit status that bench gives for a standing.
var exit = map[Standing]int{AsExpected: 0, Contrary: 1, Inconclusive: 3}

// TestJUnitCases: what each case of a file comes to, in a run that was to pass and proves nothing.
func TestJUnitCases(t *testing.T) {
	found := []Finding{{Summary: "it"}}
	r := Result{Expected: "pass", Verdict: models.Violation, Unproven: true, ExpectedChecks: ExpectedChecks{May: []string{"free"}},
		Checks: []Check{
			{Name: "good", Verdict: models.Pass},
			{Name: "open", Verdict: models.Inconclusive, Reason: "no time"},
			{Name: "free", Verdict: models.Violation, Findings: found},
		},
		Coverage: map[string]Coverage{"enough": {1, 1}, "thin": {2, 1}},
	}
	outcomes := func(r Result) map[string]string {
		got := map[string]string{}
		for _, c := range parseJUnit(t, junit(t, Material{Result: r})).Suites[0].Cases {
			switch {
			case c.Failure != nil:
				got[c.Name] = "failure"
			case c.Error != nil:
				got[c.Name] = "error"
			case c.Skipped != nil:
				got[c.Name] = "skipped"
			default:
				got[c.Name] = "ok"
			}
		}
		return got
	}
	want := map[string]string{"check good": "ok", "check open": "error", "check free": "ok", "coverage enough": "ok", "coverage thin": "error", "verdict": "error"}
	if got := outcomes(r); !maps.Equal(got, want) {
		t.Errorf("unproven: %v, want %v", got, want)
	}
	r.AsExpected = true
	want["check open"], want["coverage thin"], want["verdict"] = "skipped", "skipped", "ok"
	if got := outcomes(r); !maps.Equal(got, want) {
		t.Errorf("as expected: %v, want %v", got, want)
	}
	r.AsExpected, r.Unproven, r.Expected = false, false, "violation"
	r.ExpectedChecks = ExpectedChecks{Must: []string{"good", "open"}}
	want = map[string]string{"check good": "failure", "check open": "error", "check free": "failure", "coverage enough": "ok", "coverage thin": "error", "verdict": "failure"}
	if got := outcomes(r); !maps.Equal(got, want) {
		t.Errorf("contrary: %v, want %v", got, want)
	}
}

func TestStanding(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Result
		want Standing
	}{
		{"as expected", Result{AsExpected: true, Verdict: models.Violation}, AsExpected},
		{"as expected, a threshold missed", Result{AsExpected: true, Thresholds: []Threshold{{Met: false}}}, Contrary},
		{"unexpected violation", Result{Verdict: models.Violation}, Contrary},
		{"unexpected pass", Result{Verdict: models.Pass}, Contrary},
		{"thin", Result{Verdict: models.Inconclusive, Unproven: true}, Inconclusive},
		{"a violation that may be, thin coverage", Result{Verdict: models.Violation, Unproven: true}, Inconclusive},
		{"an open check, and a violation that is missing", Result{Verdict: models.Inconclusive}, Contrary},
	} {
		if got := c.r.Standing(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestSuiteStanding(t *testing.T) {
	run := func(s Standing) Entry { return Entry{Runs: []Repeat{{Standing: AsExpected}, {Standing: s}}} }
	skip := Entry{Skipped: "no docker"}
	for _, c := range []struct {
		name    string
		entries []Entry
		noSkip  bool
		exit    int
	}{
		{"nothing", nil, false, 3},
		{"all as expected", []Entry{run(AsExpected)}, false, 0},
		{"one contrary, one inconclusive", []Entry{run(Inconclusive), run(Contrary)}, false, 1},
		{"one inconclusive", []Entry{run(Inconclusive), run(AsExpected)}, false, 3},
		{"some skipped", []Entry{run(AsExpected), skip}, false, 0},
		{"all skipped", []Entry{skip}, false, 3},
		{"some skipped, none may be", []Entry{run(AsExpected), skip}, true, 1},
		{"one that never ran", []Entry{run(AsExpected), {}}, false, 3},
	} {
		s := Suite{Entries: c.entries, NoSkip: c.noSkip}
		if got := exit[s.Standing()]; got != c.exit {
			t.Errorf("%s: exit %d, want %d", c.name, got, c.exit)
		}
		s = s.settled()
		b, err := suiteJUnit(&s)
		if err != nil {
			t.Fatal(err)
		}
		file := parseJUnit(t, b)
		switch {
		case c.exit == 0 && file.Fails+file.Errors > 0, c.exit == 1 && file.Fails == 0:
			t.Errorf("%s: exit %d, junit.xml has %d failures, %d errors", c.name, c.exit, file.Fails, file.Errors)
		}
	}
}

func md(t testing.TB, m Material) []byte {
	t.Helper()
	b, err := renderMarkdown(&m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSuiteExplainsAControlThatFails: a violation and a tick in one line want a word.
func TestSuiteExplainsAControlThatFails(t *testing.T) {
	entry := func(control bool, v models.Verdict) *Entry {
		return &Entry{Scenario: "lock-pause", Control: control, Runs: []Repeat{{Verdict: models.Pass, Standing: AsExpected}, {Verdict: v, Standing: AsExpected}}}
	}
	for _, c := range []struct {
		entry *Entry
		want  bool
	}{
		{entry(true, models.Violation), true},
		{entry(true, models.Pass), false},
		{entry(false, models.Violation), false},
	} {
		if got := c.entry.note(); (got != "") != c.want {
			t.Errorf("control %v, %s: %q", c.entry.Control, c.entry.Runs[1].Verdict, got)
		}
	}
}

func TestMarkdownGolden(t *testing.T) {
	golden(t, "lock-pause.md", md(t, lockPause(false)))
	golden(t, "lock-pause-fenced.md", md(t, lockPause(true)))
}

// TestMarkdownOfHostileTextIsOnlyText renders the file as GitHub does: there are no elements in it but those of the same
// report with harmless text, and no links at all.
func TestMarkdownOfHostileTextIsOnlyText(t *testing.T) {
	render := func(m Material) []byte {
		m.Result.Explains = "" // the scenario's own Markdown
		var b bytes.Buffer
		if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe())).Convert(md(t, m), &b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	b := render(hostileMaterial())
	known := tags(render(lockPause(false)))
	for tag, n := range tags(b) {
		if known[tag] == 0 {
			t.Errorf("the report has %d %s> that it should not have:\n%s", n, tag, b)
		}
	}
	b = regexp.MustCompile(`(?s)<code>.*?</code>`).ReplaceAll(b, nil) // GitHub makes no links in code
	for _, bad := range []string{"<a", "@all", " #1", "\x1b"} {
		if bytes.Contains(b, []byte(bad)) {
			t.Errorf("the report has %q", bad)
		}
	}
}

func TestMarkdownExplanationCannotCloseWhatIsAroundIt(t *testing.T) {
	got := withoutHTML("a < b </details> <b>\n```\n<kept>\n~~~ <kept>\n```\n<i> `x<y`\n~~~\n<kept>")
	want := "a < b &lt;/details> &lt;b>\n```\n<kept>\n~~~ <kept>\n```\n&lt;i> `x&lt;y`\n~~~\n<kept>\n~~~"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSuiteTerminalGolden(t *testing.T) {
	var b bytes.Buffer
	if err := SuiteTerminal(&b, sampleSuite(), Options{Dir: "results"}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&b, "\n80 columns:")
	if err := SuiteTerminal(&b, sampleSuite(), Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	golden(t, "suite.txt", b.Bytes())
}

func TestWriteAndRenderAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	m := lockPause(false)
	m.Pages = map[string][]byte{"k1": []byte("<p>Porcupine")}
	if err := Write(dir, m); err != nil {
		t.Fatal(err)
	}
	first := read(t, dir)
	for _, name := range []string{VerdictFile, HTMLFile, MarkdownFile, JUnitFile, "porcupine-k1.html"} {
		if len(first[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if len(first) != 5 {
		t.Errorf("more than was asked for: %d files", len(first))
	}
	if !strings.Contains(first[HTMLFile], `href="porcupine-k1.html"`) {
		t.Error("Porcupine's page is not linked")
	}
	// Again, from what is on disk and the history.
	r, err := ReadResult(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, Material{Result: *r, Input: m.Input}); err != nil {
		t.Fatal(err)
	}
	for name, text := range read(t, dir) {
		if text != first[name] {
			t.Errorf("%s is not the same when it is rendered again", name)
		}
	}
	// And without the history: less, but no error.
	if err := Write(dir, Material{Result: *r}); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

func TestWriteSaysWhatCannotBeWritten(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, lockPause(true)); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file for a directory: %v", err)
	}
	if err := WriteSuite(file, sampleSuite()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file for a suite's directory: %v", err)
	}
	dir := filepath.Join(base, "dir")
	if err := os.MkdirAll(filepath.Join(dir, HTMLFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, lockPause(true)); err == nil || !strings.Contains(err.Error(), HTMLFile) {
		t.Errorf("a page that can't be replaced: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s is left behind", e.Name())
		}
	}
}

func TestPageFileIsOneNameAKey(t *testing.T) {
	seen := map[string]string{}
	for _, key := range []string{"", "k1", "K1 ", "../../etc/passwd", "a/b", "a_b", "a b", strings.Repeat("x", 300), strings.Repeat("x", 301), hostile} {
		name := PageFile(key)
		if filepath.Base(name) != name || len(name) > 120 || strings.ContainsAny(name, "<>\"' \x00") {
			t.Errorf("%q makes %q", key, name)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q share %q", key, other, name)
		}
		seen[name] = key
	}
}

func TestRelativeLinkIsAPathOnly(t *testing.T) {
	for path, want := range map[string]string{
		"lock-pause/1/report.html": "./lock-pause/1/report.html",
		"a:b#c?d%/report.html":     "./a:b%23c%3Fd%25/report.html",
		"./a/report.html":          "./a/report.html",
	} {
		if got := relativeLink(path); got != want {
			t.Errorf("%s makes %s, want %s", path, got, want)
		}
	}
}

func TestWriteSuiteFiles(t *testing.T) {
	dir := t.TempDir()
	if err := WriteSuite(dir, sampleSuite()); err != nil {
		t.Fatal(err)
	}
	files := read(t, dir)
	golden(t, "suite.json", []byte(files[SuiteFile]))
	if !strings.Contains(files[IndexFile], `href="./s/1/report.html"`) || files[JUnitFile] == "" {
		t.Error("the suite's page does not link its reports")
	}
}

func TestProgress(t *testing.T) {
	ticks := []Tick{
		{At: 100 * time.Millisecond, Total: 6 * time.Second, Rate: 803, P50: 231 * time.Microsecond, P99: 1204 * time.Microsecond, Count: 80},
		{At: 600 * time.Millisecond, Total: 6 * time.Second, Rate: 812, P50: 229 * time.Microsecond, P99: 1199 * time.Microsecond, Count: 480},
		{At: 1300 * time.Millisecond, Total: 6 * time.Second, Rate: 431, P50: 233 * time.Microsecond, P99: 702 * time.Millisecond, Count: 800, Errors: 1, Faults: []string{"pause w1"},
			Changes: []Change{
				{At: 1030 * time.Millisecond, Fault: "kill w2"}, {At: 1050 * time.Millisecond, Fault: "kill w2", Ended: true, Lasted: 20 * time.Millisecond},
				{At: 1290 * time.Millisecond, Fault: "pause w1"}}},
		{At: 6100 * time.Millisecond, Doing: "settling", Errors: 2},
	}
	var b bytes.Buffer
	for _, o := range []Options{{}, {Width: 60}, {Color: true}, {Live: true}, {Live: true, Quiet: true}} {
		fmt.Fprintf(&b, "%+v\n", o)
		p := NewProgress(&b, o)
		for _, t := range ticks {
			p.Show(t)
		}
		p.Done()
		fmt.Fprintln(&b)
	}
	golden(t, "progress.txt", bytes.ReplaceAll(b.Bytes(), []byte("\r"), []byte("␍\n")))
	for _, line := range strings.Split(b.String(), "\n") {
		if strings.Contains(line, "Width:60") || strings.Contains(line, "\x1b") || strings.HasPrefix(line, "{") {
			continue
		}
		if columns(line) > 99 {
			t.Errorf("%d columns: %s", columns(line), line)
		}
	}
}

// TestProgressTellsEachFaultOnce, also between two lines of a file's, and not for ever.
func TestProgressTellsEachFaultOnce(t *testing.T) {
	for _, o := range []Options{{}, {Live: true}} {
		var b bytes.Buffer
		p := NewProgress(&b, o)
		for i := range 100 {
			at := time.Duration(i) * 20 * time.Millisecond
			p.Show(Tick{At: at, Total: time.Minute, Changes: []Change{{At: at, Fault: fmt.Sprintf("pause w%d", i)}}})
		}
		for i := range 100 {
			if got, want := strings.Count(b.String(), fmt.Sprintf("▒ pause w%d\n", i)), map[bool]int{true: 1, false: 0}[i < mostChanges]; got != want {
				t.Errorf("%+v: fault %d was told %d times, want %d", o, i, got, want)
			}
		}
		if n := strings.Count(b.String(), "faults.jsonl"); n != 1 {
			t.Errorf("%+v: told %d times where the others are", o, n)
		}
	}
}

// TestTerminalKeepsToItsWidth, whatever it is told.
func TestTerminalKeepsToItsWidth(t *testing.T) {
	for _, m := range []Material{lockPause(false), lockPause(true), hostileMaterial()} {
		m.Result.Command = "" // never wrapped: people copy it
		for _, width := range []int{60, 80, 100, 140} {
			for _, line := range strings.Split(string(terminal(t, m, Options{Width: width})), "\n") {
				if columns(line) > width && width >= 80 && !strings.Contains(line, "alert") {
					t.Errorf("width %d, %d columns: %s", width, columns(line), line)
				}
			}
		}
	}
	if text := terminal(t, lockPause(false), Options{Quiet: true}); len(text) > 0 {
		t.Errorf("quiet: %s", text)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestTerminalTellsOfAFailedWrite(t *testing.T) {
	if err := Terminal(full{}, lockPause(false), Options{}); err == nil {
		t.Error("a write failed, and nobody was told")
	}
}
