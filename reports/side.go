package reports

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
)

// The story that `bench demo` tells: one cause, two outcomes. These paragraphs are for people who have never heard of a
// fencing token.
var (
	storyTitle = "Why a lock needs a fencing token"
	storyIntro = []string{
		"A lock that is kept in a shared store has a time-to-live, or a holder that crashed would keep it for ever. So the store " +
			"may give it to somebody else while the first holder still believes that it has it. All that it takes is a pause " +
			"longer than the time-to-live: a garbage collection, a swapped-out page, a frozen virtual machine. The process can't " +
			"notice; it isn't running. When it runs again it goes on where it was, and writes.",
		"Looking at the clock before each write narrows the gap and does not close it: the pause can come between the look and " +
			"the write. The store can't help either; it is not asked again.",
		"A fencing token closes it. Each grant comes with a number higher than the last; whatever the holder then asks of the " +
			"resource carries that number; and the resource refuses a number lower than one it has seen. The late writer is " +
			"refused, whatever it believes.",
	}
	storySides = [2]string{"Without a token", "With a token"}
)

// storySide is one of the two runs.
type storySide struct {
	m     *Material
	title string
	link  string
	tale  *tale // nil: there is nothing to tell
}

func newSides(broken, fixed *Material, links [2]string) [2]storySide {
	sides := [2]storySide{{m: broken, title: storySides[0], link: links[0]}, {m: fixed, title: storySides[1], link: links[1]}}
	for i := range sides {
		s := &sides[i]
		if tales := chooseTales(s.m, 1, 1); len(tales) > 0 {
			s.tale = tales[0]
		} else {
			s.tale = nearMiss(s.m)
		}
	}
	return sides
}

// nothing says why a side has no tale.
func (s *storySide) nothing() string {
	if s.m.Result.Standing() == AsExpected {
		return "Nothing went wrong, and no late write came to be refused."
	}
	return "This run did not show it: " + standingSentence(&s.m.Result)
}

// StoryTerminal tells two runs to a person: broken, and its pair that holds.
func StoryTerminal(w io.Writer, broken, fixed Material, o Options) error {
	if o.Quiet {
		return nil
	}
	b := bufio.NewWriter(w)
	p := newPrinter(b, o)
	p.line(p.paint(bold, storyTitle))
	for _, paragraph := range storyIntro {
		p.blank()
		p.text(2, 2, plain, paragraph)
	}
	for _, s := range newSides(&broken, &fixed, [2]string{}) {
		r := &s.m.Result
		p.blank()
		p.blank()
		p.line(p.paint(bold, s.title) + "  " + p.paint(verdictStyle(r.Verdict), verdictSign(r.Verdict)+" "+r.Verdict.String()) +
			p.paint(dim, "  "+cleanName(r.Scenario)+", "+cleanName(r.Subject)))
		if s.tale == nil {
			p.text(2, 2, plain, s.nothing())
			continue
		}
		p.text(2, 2, plain, cleanText(s.tale.Finding.Summary))
		p.blank()
		p.steps(s.tale)
	}
	p.section("The same checks on both", "")
	rows := [][]cell{{{"", dim}, {storySides[0], dim}, {storySides[1], dim}}}
	for _, c := range compareChecks(&broken.Result, &fixed.Result) {
		rows = append(rows, []cell{{c.name, plain}, {c.text[0], c.style[0]}, {c.text[1], c.style[1]}})
	}
	p.table(rows, nil)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("reports: writing to the terminal: %w", err)
	}
	return nil
}

// checkPair is one check's answers to both runs.
type checkPair struct {
	name        string
	text, class [2]string
	style       [2]style
}

func compareChecks(a, b *Result) []checkPair {
	var pairs []checkPair
	at := map[string]int{}
	for side, r := range []*Result{a, b} {
		for i := range r.Checks {
			c := &r.Checks[i]
			k, known := at[c.Name]
			if !known {
				k = len(pairs)
				at[c.Name] = k
				pairs = append(pairs, checkPair{name: cleanName(c.Name), text: [2]string{"–", "–"}})
			}
			text := verdictSign(c.Verdict) + " " + checkVerdict(c)
			if n := len(c.Findings) + c.More; n > 0 {
				text += ", " + count(int64(n), "finding")
			}
			pairs[k].text[side], pairs[k].style[side], pairs[k].class[side] = text, verdictStyle(c.Verdict), verdictClass(c.Verdict)
		}
	}
	return pairs
}

type storyPage struct {
	Title, Version string
	Intro          []string
	Sides          []sideView
	Checks         []sidesRow
}

type sideView struct {
	Title, Verdict, Scenario, Subject, Summary, Link, Nothing string
	Tale                                                      *taleView
	Picture                                                   *picture
}

type sidesRow struct {
	Name        string
	Text, Class [2]string
}

// storyWidth is what a swimlane has, in pixels, where two stand side by side.
const storyWidth = 474

// WriteStory writes the page that tells two runs side by side: broken, and its pair that holds. The links lead to their
// reports, as paths relative to the page; "": there is none.
func WriteStory(path string, broken, fixed Material, brokenLink, fixedLink string) error {
	page := storyPage{Title: storyTitle, Intro: storyIntro, Version: cleanName(broken.Result.Environment.Version)}
	for _, s := range newSides(&broken, &fixed, [2]string{brokenLink, fixedLink}) {
		r := &s.m.Result
		v := sideView{Title: s.title, Verdict: r.Verdict.String(), Scenario: cleanName(r.Scenario), Subject: cleanName(r.Subject)}
		if s.link != "" {
			v.Link = relativeLink(filepath.ToSlash(s.link))
		}
		if s.tale == nil {
			v.Nothing = s.nothing()
		} else {
			v.Summary = cleanText(s.tale.Finding.Summary)
			v.Tale = newTaleView(s.tale, s.title, nil)
			v.Picture = drawTale(s.tale, "", storyWidth)
		}
		page.Sides = append(page.Sides, v)
	}
	for _, c := range compareChecks(&broken.Result, &fixed.Result) {
		page.Checks = append(page.Checks, sidesRow{c.name, c.text, c.class})
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, "story.html", page); err != nil {
		return fmt.Errorf("reports: rendering the story: %w", err)
	}
	return writeFile(filepath.Dir(path), filepath.Base(path), b.Bytes())
}
