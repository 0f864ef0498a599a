package reports

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// suiteJUnit has a suite per entry and a case per run.
func suiteJUnit(s *Suite) ([]byte, error) {
	var suites []junitSuite
	for i := range s.Entries {
		e := &s.Entries[i]
		suite := junitSuite{Name: printable(e.name()), Timestamp: s.Started.UTC().Format(time.RFC3339)}
		if e.Skipped != "" || len(e.Runs) == 0 {
			c := junitCase{Name: printable(e.name()), Class: printable(e.Scenario), Time: "0"}
			message := printable(e.Skipped)
			switch {
			case e.Skipped == "":
				c.Error = &junitResult{Message: "it was not run", Type: string(Inconclusive)}
			case s.NoSkip:
				c.Failure = &junitResult{Message: "skipped: " + message, Type: string(Skipped)}
			default:
				c.Skipped = &junitResult{Message: message}
			}
			suite.Cases = append(suite.Cases, c)
		}
		var total float64
		for _, run := range e.Runs {
			total += run.Elapsed
			suite.Cases = append(suite.Cases, repeatCase(e, &run))
		}
		suite.Time = seconds(total)
		suites = append(suites, suite)
	}
	if s.Standing() == Inconclusive && len(s.Entries) == 0 {
		suites = append(suites, junitSuite{Name: "verify", Cases: []junitCase{{Name: "verify", Class: "verify", Time: "0",
			Error: &junitResult{Message: "nothing was run", Type: string(Inconclusive)}}}})
	}
	return encodeJUnit("verify", s.Elapsed, suites)
}

func repeatCase(e *Entry, run *Repeat) junitCase {
	c := junitCase{Name: printable(e.name()), Class: printable(e.Scenario), Time: seconds(run.Elapsed)}
	if len(e.Runs) > 1 {
		c.Name += fmt.Sprintf(" %d of %d", run.Number, len(e.Runs))
	}
	text := fmt.Sprintf("%s; expected: %s", run.Verdict, printable(e.Expected))
	reasons := printable(strings.Join(run.Reasons, " "))
	if run.Dir != "" {
		c.Out = printable(path.Join(run.Dir, HTMLFile))
	}
	message := text
	if reasons != "" {
		message += ". " + reasons
	}
	switch run.Standing {
	case AsExpected:
		c.Out = strings.TrimSpace(text + "\n" + c.Out)
	case Contrary:
		c.Failure = &junitResult{Message: message, Type: string(Contrary), Text: c.Out}
	default:
		c.Error = &junitResult{Message: message, Type: string(Inconclusive), Text: c.Out}
	}
	return c
}
