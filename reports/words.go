package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes text from outside fit to show on one line: whatever doesn't print (a terminal's escapes, bidirectional
// overrides, line ends, broken UTF-8) is spelled out, and what is longer than most characters is cut.
func clean(text string, most int) string {
	var b strings.Builder
	n := 0
	for i, r := range text {
		if n++; n > most {
			b.WriteString("…")
			break
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// Plain makes a text of many lines from outside fit for a terminal: what doesn't print is spelled out.
func Plain(text string) string { return cleanLines(text) }

// cleanLines does the same to a text of many lines, and keeps them.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = clean(strings.ReplaceAll(strings.TrimSuffix(l, "\r"), "\t", "    "), len(l)+1)
	}
	return strings.Join(lines, "\n")
}

// Longest texts from outside that reports show; verdict.json has them whole.
const (
	longName = 60
	longText = 400
)

func cleanName(s string) string { return clean(s, longName) }
func cleanText(s string) string { return clean(s, longText) }

// clock says an instant of the run in seconds. decimals is chosen per tale, so that its instants can be told apart.
func clock(at int64, decimals int) string {
	return strconv.FormatFloat(float64(at)/1e9, 'f', decimals, 64) + " s"
}

// decimalsFor is how finely instants within a span have to be told.
func decimalsFor(span int64) int {
	switch {
	case span >= int64(100*time.Millisecond):
		return 3
	case span >= int64(10*time.Millisecond):
		return 4
	case span >= int64(time.Millisecond):
		return 5
	}
	return 6
}

// span says a duration with three significant digits: "300 ms", "1.21 s", "850 µs".
func span(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}}
	if d < 0 {
		return "-" + span(-max(d, math.MinInt64+1)) // which has no negative
	}
	for _, u := range units {
		if d >= u.size-u.size/2000 { // 999.6 µs round to a millisecond
			return significant(float64(d)/float64(u.size)) + " " + u.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}

// microseconds says a latency of the load table.
func microseconds(us float64) string {
	if us == 0 {
		return "–"
	}
	return span(time.Duration(us * 1e3))
}

// significant rounds to three digits and drops what is zero behind the point.
func significant(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	if digits <= 0 {
		return grouped(int64(math.Round(v)))
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// grouped writes a whole number with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// count says "1 finding", "2,000 findings".
func count(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + one + "s"
}

// and joins names as a sentence does.
func and(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// measured says a threshold's figure in its unit.
func measured(v float64, unit string) string {
	switch unit {
	case "s":
		return span(time.Duration(v * 1e9))
	case "share":
		return significant(v*100) + "%"
	case "per_s":
		return significant(v) + "/s"
	}
	return strings.TrimSpace(significant(v) + " " + unit)
}

// capital makes a sentence of a phrase.
func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[size:]
}
