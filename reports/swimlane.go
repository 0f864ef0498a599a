package reports

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"fencepost.dev/models"
)

// picture is a tale as a swimlane, laid out in pixels; web/parts.html draws it. Clients are lanes, with what each believed
// that it held; below them the object as it was granted, and the resource with what it accepted and refused.
type picture struct {
	Class         string // for which pages
	Width, Height int
	Title         string
	Top           int // height of the axis
	Lanes         []lane
	Ticks         []tick
	Shades        []bar
	Bars          []bar
	Spans         []rule // from an operation's call to its return
	Links         []rule // from a client to what it did to the resource
	Dots          []dot
	Labels        []label
}

type lane struct {
	Name, About string
	Y, Height   int
	Class       string
}

type tick struct {
	X    float64
	Text string
}

type bar struct {
	X, Y, Width, Height float64
	Class               string
	Text                string // inside, where there is room
	TextX, TextY        float64
	Title               string
}

type rule struct {
	X1, Y1, X2, Y2 float64
	Class          string
}

type dot struct {
	X, Y   float64
	Mark   mark
	Number int
	Around bool
	Title  string
}

type label struct {
	X, Y   float64
	Anchor string
	Class  string
	Text   string
}

const (
	axisHeight = 30
	laneTop    = 29 // from a lane's edge to its first mark; labels are above that
	labelTop   = 13 // from a lane's edge to the foot of its labels
	rowHeight  = 23
	dotSpace   = 21 // marks closer than this go to different rows
	mostRows   = 4
	leastLane  = 46 // its name needs as much
	barHeight  = 18
	barSpace   = 22
)

// sketch lays a tale out.
type sketch struct {
	picture
	t        *tale
	from, to float64 // ns
}

// drawTale lays a tale out in a picture of the given width, which doesn't count the names of its lanes.
func drawTale(t *tale, class string, width int) *picture {
	s := &sketch{t: t}
	s.Class = class
	length := max(float64(t.To-t.From), 1000)
	s.from, s.to = float64(t.From)-0.05*length, float64(t.To)+0.07*length
	s.Width, s.Top, s.Height = width, axisHeight, axisHeight
	s.Title = "Timeline of " + t.subject()
	for _, client := range t.Actors {
		s.clientLane(client)
	}
	s.objectLane()
	s.resourceLane()
	s.ticks()
	s.Height += 6
	return &s.picture
}

func (s *sketch) x(at int64) float64 {
	x := 10 + (float64(at)-s.from)/(s.to-s.from)*float64(s.Width-20)
	return math.Round(min(max(x, 0), float64(s.Width))*10) / 10
}

// addLane begins a lane below the others; grow sets its height when all that is in it is known.
func (s *sketch) addLane(name, about, class string) *lane {
	s.Lanes = append(s.Lanes, lane{Name: name, About: about, Y: s.Height, Class: class})
	return &s.Lanes[len(s.Lanes)-1]
}

func (s *sketch) grow(l *lane, height int) {
	l.Height = height
	s.Height += height
}

// dots places marks of the steps in rows from y on, so that none covers another, and gives the number of rows.
func (s *sketch) dots(y float64, steps []*step) int {
	var ends [mostRows]float64
	rows := 1
	for i := range ends {
		ends[i] = -dotSpace
	}
	for _, st := range steps {
		x, row := s.x(st.At), 0
		for row < mostRows-1 && x-ends[row] < dotSpace {
			row++
		}
		ends[row] = x
		rows = max(rows, row+1)
		at := y + float64(row*rowHeight)
		s.Dots = append(s.Dots, dot{X: x, Y: at, Mark: st.Mark, Number: st.Number, Around: st.Around, Title: s.title(st)})
		if !decision(st.Op) && !st.Op.Synthetic {
			end, class := st.Op.Return, "span"
			if !answered(st.Op) { // as long as it can still take effect
				end, class = min(st.Op.Return, s.t.To), "span open"
			}
			if from, to := s.x(st.Op.Call), s.x(end); to-from > 4 {
				s.Spans = append(s.Spans, rule{from, at, to, at, class})
			}
		}
	}
	return rows
}

func (s *sketch) title(st *step) string {
	text := fmt.Sprintf("%d. %s %s %s", st.Number, clock(st.At, s.t.Decimals), st.Who, st.Text)
	if st.Note != "" {
		text += " (" + st.Note + ")"
	}
	return text
}

// onClient reports whether a step is drawn on its client's lane.
func onClient(st *step) bool { return st.Op != nil && !decision(st.Op) && !st.Op.Synthetic }

func (s *sketch) clientLane(client string) {
	worker, _, _ := strings.Cut(client, "/")
	base, _, _ := strings.Cut(worker, ".")
	l := s.addLane(client, "client", "client")
	y := float64(l.Y)
	var steps []*step
	for i := range s.t.Steps {
		if st := &s.t.Steps[i]; st.Who == client && onClient(st) {
			steps = append(steps, st)
		}
	}
	rows := 1
	if len(steps) > 0 {
		rows = s.dots(y+laneTop, steps)
	}
	height := laneTop + rows*rowHeight
	bottom := y + float64(height)
	for _, h := range s.t.Holds {
		if h.Client == client {
			s.belief(h, bottom-8)
		}
	}
	height += barHeight + 4
	s.grow(l, height)
	for _, sh := range s.t.Shades {
		if sh.Worker == worker || sh.Worker == base && sh.Worker != "" {
			s.shade(sh, l)
		}
	}
}

// belief draws what a client believed of its hold: as long as it was true, and beyond.
func (s *sketch) belief(h hold, y float64) {
	key := cleanName(s.t.Finding.Key)
	s.bar(h.From, min(h.Until, h.Believed), y, "held", "holds "+key,
		fmt.Sprintf("%s holds %s from %s on", h.Client, key, clock(h.From, s.t.Decimals)))
	if h.Believed > h.Until {
		s.bar(h.Until, h.Believed, y, "believed", "believes it holds "+key,
			fmt.Sprintf("%s still believes that it holds %s: its time was over at %s", h.Client, key, clock(h.Until, s.t.Decimals)))
	}
}

func (s *sketch) bar(from, to int64, y float64, class, text, title string) {
	to = min(to, int64(s.to))
	x := s.x(from)
	b := bar{X: x, Y: y, Width: max(s.x(to)-x, 2), Height: barHeight, Class: class, Title: title}
	if b.Width > 6.6*float64(columns(text))+10 {
		b.Text, b.TextX, b.TextY = text, x+7, y+13
	}
	s.Bars = append(s.Bars, b)
}

func (s *sketch) shade(sh shade, l *lane) {
	x, end := s.x(max(sh.From, int64(s.from))), s.x(min(sh.To, int64(s.to)))
	b := bar{X: x, Y: float64(l.Y), Width: max(end-x, 2), Height: float64(l.Height), Title: sh.Label}
	if b.Width > 6.6*float64(columns(sh.Label))+16 {
		b.Text, b.TextX, b.TextY = sh.Label, x+7, float64(l.Y)+labelTop
	}
	s.Shades = append(s.Shades, b)
}

// objectLane draws who held the object by what it had granted: each hold until it was released or its time was over.
func (s *sketch) objectLane() {
	var marks []*step
	for i := range s.t.Steps {
		if st := &s.t.Steps[i]; st.Op != nil && st.Op.Synthetic {
			marks = append(marks, st)
		}
	}
	var stores []shade
	for _, sh := range s.t.Shades {
		if sh.Worker == "" {
			stores = append(stores, sh)
		}
	}
	if len(s.t.Holds) == 0 && len(marks) == 0 && len(stores) == 0 {
		return
	}
	name := cleanName(s.t.Finding.Key)
	if name == "" {
		name = "store"
	}
	l := s.addLane(name, "as granted", "object")
	y := float64(l.Y) + 8
	var ends []int64
	for _, h := range s.t.Holds {
		row := 0
		for row < len(ends) && ends[row] > h.From {
			row++
		}
		if row == len(ends) {
			ends = append(ends, 0)
		}
		ends[row] = h.Until
		s.granted(h, y+float64(row*barSpace))
	}
	height := 8 + max(len(ends), 1)*barSpace
	s.clashes(y, float64(len(ends)*barSpace-4))
	if len(marks) > 0 {
		height += s.dots(float64(l.Y+height)+12, marks)*rowHeight + 2
	}
	s.grow(l, max(height+4, leastLane))
	for _, sh := range stores {
		s.shade(sh, l)
	}
}

func (s *sketch) granted(h hold, y float64) {
	end := "released at "
	if h.Expired {
		end = "its time is over at "
	}
	title := fmt.Sprintf("granted to %s at %s", h.Client, clock(h.From, s.t.Decimals))
	if !h.Open {
		title += ", " + end + clock(h.Until, s.t.Decimals)
	}
	text := h.Client
	if h.Token != 0 {
		text += fmt.Sprintf(", token %d", h.Token)
	}
	class := "granted"
	if h.Expired {
		class += " expired"
		if wide := text + " · ttl " + span(time.Duration(h.TTL)); s.x(min(h.Until, int64(s.to)))-s.x(h.From) > 6.6*float64(columns(wide))+10 {
			text = wide
		}
	}
	s.bar(h.From, h.Until, y, class, text, title)
}

// clashes marks the times at which two had been granted the object.
func (s *sketch) clashes(y, height float64) {
	for i, a := range s.t.Holds {
		for _, b := range s.t.Holds[i+1:] {
			from, to := max(a.From, b.From), min(a.Until, b.Until, int64(s.to))
			if from >= to {
				continue
			}
			x := s.x(from)
			s.Bars = append(s.Bars, bar{X: x, Y: y - 3, Width: max(s.x(to)-x, 3), Height: height + 4, Class: "clash",
				Title: fmt.Sprintf("granted to %s and to %s at once", a.Client, b.Client)})
		}
	}
}

// resourceLane draws what the resource decided, in a row for labels and rows of marks.
func (s *sketch) resourceLane() {
	var marks []*step
	for i := range s.t.Steps {
		if st := &s.t.Steps[i]; st.Op != nil && decision(st.Op) {
			marks = append(marks, st)
		}
	}
	if len(marks) == 0 {
		s.offenceLabel()
		return
	}
	sort.SliceStable(marks, func(i, j int) bool { return marks[i].At < marks[j].At })
	l := s.addLane("resource", "its decisions", "resource")
	first := len(s.Dots)
	rows := s.dots(float64(l.Y)+laneTop, marks)
	for i, st := range marks {
		d := &s.Dots[first+i]
		for _, c := range s.Lanes {
			if c.Class == "client" && c.Name == st.Who {
				class := "link"
				if st.Mark == markOffence {
					class = "link bad"
				}
				s.Links = append(s.Links, rule{d.X, float64(c.Y + c.Height - 12), d.X, d.Y, class})
			}
		}
	}
	s.grow(l, max(laneTop+rows*rowHeight, leastLane))
	s.offenceLabel()
}

// offenceLabel writes beside the offence what it is; in a tale of what was prevented, beside the refusal.
func (s *sketch) offenceLabel() {
	for i := range s.t.Steps {
		st := &s.t.Steps[i]
		refused := s.t.Prevented && st.Op != nil && decision(st.Op) && st.Mark == markRefused
		if st.Mark != markOffence && !refused {
			continue
		}
		text, class := s.t.Check, "bad"
		switch {
		case refused:
			text, class = "late "+st.Op.Kind+" refused", "good"
		case decision(st.Op):
			text = "stale " + st.Op.Kind + " accepted"
		case s.t.Finding.Severity == models.Availability:
			text = "refused although free"
		case s.t.Finding.Severity == models.Safety:
			text = "this " + st.Op.Kind + " is impossible"
		}
		k := slices.IndexFunc(s.Dots, func(d dot) bool { return d.Number == st.Number })
		if k < 0 {
			continue
		}
		d := s.Dots[k]
		lb := label{X: d.X, Y: s.above(d), Anchor: "middle", Class: class, Text: text}
		half := 3.6 * float64(columns(text))
		switch {
		case d.X+half > float64(s.Width):
			lb.X, lb.Anchor = float64(s.Width)-2, "end"
		case d.X < half:
			lb.X, lb.Anchor = 2, "start"
		}
		s.Labels = append(s.Labels, lb)
	}
}

// above is where a lane has room for a label of one of its marks: over the first row, wherever the mark is.
func (s *sketch) above(d dot) float64 {
	for _, l := range s.Lanes {
		if d.Y > float64(l.Y) && d.Y < float64(l.Y+l.Height) {
			return float64(l.Y) + labelTop
		}
	}
	return d.Y - 16
}

// ticks puts round milliseconds on the axis.
func (s *sketch) ticks() {
	step := niceStep((s.to - s.from) / 1e6 / max(2, float64(s.Width)/95))
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	for v := math.Ceil(s.from/1e6/step) * step; v <= s.to/1e6; v += step {
		x := s.x(int64(math.Round(v * 1e6)))
		if x < 18 || x > float64(s.Width)-18 {
			continue
		}
		s.Ticks = append(s.Ticks, tick{x, axisNumber(v, decimals)})
	}
}

// niceStep is the least 1, 2 or 5 times a power of ten that is not below v.
func niceStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= v*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

func axisNumber(v float64, decimals int) string {
	if decimals > 0 {
		return fmt.Sprintf("%.*f", min(decimals, 6), v)
	}
	return grouped(int64(math.Round(v)))
}
