package reports

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"strings"
)

type suitePage struct {
	Title, Standing, Class, Sign, Summary, Version, Command string
	CutShort                                                bool
	Facts                                                   []fact
	Entries                                                 []entryView
}

type entryView struct {
	Sign, Class, Name, Summary, Expected, Verdict, Share, Time, Note, Standing string
	Runs                                                                       []runView
}

type runView struct{ Number, Class, Title, Link, Sign string }

func suiteHTML(s *Suite) ([]byte, error) {
	standing := s.Standing()
	p := suitePage{Title: "Fencepost: " + s.summary(), Standing: string(standing), Class: standingClass(standing),
		Sign:    map[Standing]string{AsExpected: "pass", Contrary: "violation", Inconclusive: "inconclusive"}[standing],
		Summary: capital(s.summary()) + ".", Version: cleanName(s.Version), Command: clean(s.Command, 4*longText), CutShort: s.CutShort,
		Facts: nonEmpty([]fact{{"started", s.Started.UTC().Format("2006-01-02 15:04:05 UTC")}, {"took", elapsed(s.Elapsed)}})}
	for i := range s.Entries {
		e := &s.Entries[i]
		st := e.Stand()
		v := entryView{Sign: standingSign(st), Class: standingClass(st), Name: cleanName(e.name()), Summary: cleanText(e.Summary),
			Expected: cleanText(e.Expected), Verdict: e.verdicts(), Note: cleanText(e.note()), Standing: string(st)}
		if st == Skipped {
			v.Verdict = "skipped"
		} else {
			v.Share, v.Time = fmt.Sprintf("%d/%d", e.asExpected(), len(e.Runs)), elapsed(e.slowest())
		}
		for j := range e.Runs {
			run := &e.Runs[j]
			rv := runView{Number: fmt.Sprint(run.Number), Class: standingClass(run.Standing), Sign: standingSign(run.Standing),
				Title: fmt.Sprintf("%s, %s, %s", run.Verdict, run.Standing, elapsed(run.Elapsed))}
			if run.Dir != "" {
				rv.Link = relativeLink(path.Join(run.Dir, HTMLFile))
			}
			v.Runs = append(v.Runs, rv)
		}
		p.Entries = append(p.Entries, v)
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, "suite.html", p); err != nil {
		return nil, fmt.Errorf("reports: rendering %s: %w", IndexFile, err)
	}
	return b.Bytes(), nil
}

// relativeLink makes a link of a path beside a page. No part of it is taken for a scheme, a query or a fragment.
func relativeLink(p string) string {
	link := url.URL{Path: p}
	return "./" + strings.TrimPrefix(link.EscapedPath(), "./")
}
