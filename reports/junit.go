package reports

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"

	"fencepost.dev/models"
)

// junit.xml, as CI systems read it: a suite per run, a case per question that the run answered. A case fails where the run
// contradicts what was expected of it, is in error where the run proves nothing, and is skipped where the question didn't
// decide anything. A violation that is expected is no failure. The last case is the verdict as a whole, so that a file has a
// failure or an error exactly if the run's exit status isn't 0.

type junitFile struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Tests   int          `xml:"tests,attr"`
	Fails   int          `xml:"failures,attr"`
	Errors  int          `xml:"errors,attr"`
	Skipped int          `xml:"skipped,attr"`
	Time    string       `xml:"time,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Fails      int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Properties []junitProperty `xml:"properties>property,omitempty"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name    string       `xml:"name,attr"`
	Class   string       `xml:"classname,attr"`
	Time    string       `xml:"time,attr"`
	Failure *junitResult `xml:"failure"`
	Error   *junitResult `xml:"error"`
	Skipped *junitResult `xml:"skipped"`
	Out     string       `xml:"system-out,omitempty"`
}

type junitResult struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func renderJUnit(m *Material, _ map[string]string) ([]byte, error) {
	r := &m.Result
	suite := junitSuite{
		Name: printable(r.Scenario), Time: seconds(r.Elapsed), Timestamp: r.Started.UTC().Format(time.RFC3339),
		Properties: []junitProperty{
			{"subject", printable(r.Subject)},
			{"seed", strconv.FormatUint(r.Seed, 10)},
			{"command", printable(r.Command)},
		},
	}
	tales := chooseTales(m, mostTales, talesACheck)
	for i := range r.Checks {
		suite.Cases = append(suite.Cases, checkCase(r, &r.Checks[i], tales))
	}
	for _, name := range sortedKeys(r.Coverage) {
		suite.Cases = append(suite.Cases, coverageCase(r, name, r.Coverage[name]))
	}
	for _, t := range r.Thresholds {
		c := junitCase{Name: "threshold " + printable(t.Metric), Class: printable(r.Scenario), Time: "0"}
		text := fmt.Sprintf("%s: %s, wanted %s", printable(t.Metric), measured(t.Got, t.Unit), printable(t.Want))
		switch {
		case t.Undecided && r.AsExpected:
			c.Skipped = &junitResult{Message: text}
		case t.Undecided:
			c.Error = &junitResult{Message: text, Type: "inconclusive"}
		case !t.Met:
			c.Failure = &junitResult{Message: text, Type: "threshold"}
		default:
			c.Out = text
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Cases = append(suite.Cases, verdictCase(r))
	return encodeJUnit(printable(r.Scenario), r.Elapsed, []junitSuite{suite})
}

// checkCase says how one check stands to what was expected of it.
func checkCase(r *Result, c *Check, tales []*tale) junitCase {
	v := junitCase{Name: "check " + printable(c.Name), Class: printable(r.Scenario), Time: "0"}
	text := checkText(c, tales)
	message := printable(checkVerdict(c) + ": " + checkDetail(r, c))
	settled := r.AsExpected // then nothing but a threshold can fail the run
	_, amiss := remark(r, c)
	switch {
	case c.Verdict == models.Inconclusive && settled:
		v.Skipped = &junitResult{Message: message}
	case c.Verdict == models.Inconclusive:
		v.Error = &junitResult{Message: message, Type: "inconclusive"}
	case settled:
		v.Out = text
	case amiss && c.Verdict == models.Violation:
		v.Failure = &junitResult{Message: message, Type: "violation", Text: text}
	case amiss && r.Standing() == Contrary:
		v.Failure = &junitResult{Message: message, Type: "no-violation", Text: text}
	case amiss:
		v.Error = &junitResult{Message: message, Type: "inconclusive", Text: text}
	default:
		v.Out = text
	}
	return v
}

// checkText is what a check found, for whoever opens the case: its findings, and the first one as a timeline.
func checkText(c *Check, tales []*tale) string {
	var b bytes.Buffer
	if c.About != "" {
		b.WriteString(printable(c.About) + "\n")
	}
	for i := range c.Findings {
		if i == mostFindings {
			fmt.Fprintf(&b, "… and %d more\n", len(c.Findings)-i+c.More)
			break
		}
		b.WriteString(printable(c.Findings[i].Summary) + "\n")
	}
	for _, t := range tales {
		if t.Check != cleanName(c.Name) {
			continue
		}
		b.WriteString("\n")
		newPrinter(&b, Options{Width: 120}).steps(t)
		break
	}
	return b.String()
}

func coverageCase(r *Result, name string, c Coverage) junitCase {
	v := junitCase{Name: "coverage " + printable(name), Class: printable(r.Scenario), Time: "0"}
	text := fmt.Sprintf("%s: %d of at least %d", printable(name), c.Got, c.Need)
	switch {
	case c.Got >= c.Need:
		v.Out = text
	case r.AsExpected:
		v.Skipped = &junitResult{Message: text}
	default:
		v.Error = &junitResult{Message: text, Type: "inconclusive"}
	}
	return v
}

// verdictCase is the run as a whole.
func verdictCase(r *Result) junitCase {
	v := junitCase{Name: "verdict", Class: printable(r.Scenario), Time: seconds(r.Elapsed)}
	message := strings.ToUpper(r.Verdict.String()) + ". " + printable(standingSentence(r))
	var text strings.Builder
	for _, reason := range r.Reasons {
		text.WriteString(printable(reason) + "\n")
	}
	if r.Command != "" {
		text.WriteString("Again: " + printable(r.Command) + "\n")
	}
	switch r.Standing() {
	case Contrary:
		v.Failure = &junitResult{Message: message, Type: string(Contrary), Text: text.String()}
	case Inconclusive:
		v.Error = &junitResult{Message: message, Type: string(Inconclusive), Text: text.String()}
	default:
		v.Out = message + "\n" + text.String()
	}
	return v
}

func encodeJUnit(name string, elapsed float64, suites []junitSuite) ([]byte, error) {
	file := junitFile{Name: "fencepost " + name, Time: seconds(elapsed), Suites: suites}
	for i := range suites {
		s := &suites[i]
		for _, c := range s.Cases {
			s.Tests++
			switch {
			case c.Failure != nil:
				s.Fails++
			case c.Error != nil:
				s.Errors++
			case c.Skipped != nil:
				s.Skipped++
			}
		}
		file.Tests += s.Tests
		file.Fails += s.Fails
		file.Errors += s.Errors
		file.Skipped += s.Skipped
	}
	b := bytes.NewBufferString(xml.Header)
	enc := xml.NewEncoder(b)
	enc.Indent("", "  ")
	if err := enc.Encode(file); err != nil {
		return nil, fmt.Errorf("reports: encoding junit.xml: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// printable makes text fit for XML 1.0, which has no way to write most control characters, and keeps it on a line.
func printable(text string) string { return clean(text, 4*longText) }

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }
