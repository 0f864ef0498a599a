package scenarios

import (
	"fmt"
	"slices"
	"strings"
)

// unknown is the sentence about a name that is not among those there are: what was meant, perhaps, and what there is. owner
// has them.
func unknown(what, name string, among []string, owner string) string {
	sentence := fmt.Sprintf("no %s %q", what, name)
	if close, ok := nearest(name, among); ok {
		sentence += fmt.Sprintf("; did you mean %q?", close)
	}
	return sentence + listed(among, owner)
}

// listed names what there is, in brackets: all of it, since a name that is left out may be the one that is wanted.
func listed(names []string, owner string) string {
	if len(names) == 0 {
		return fmt.Sprintf(" (%s has none)", owner)
	}
	names = slices.Sorted(slices.Values(names))
	return fmt.Sprintf(" (%s has %s)", owner, strings.Join(names, ", "))
}

// nearest gives the name that was probably meant: one that contains what was written, or the one with the fewest edits, if a
// third of its letters or fewer are wrong.
func nearest(name string, among []string) (string, bool) {
	best, fewest := "", len([]rune(name))/3+1
	for _, candidate := range slices.Sorted(slices.Values(among)) {
		edits := distance(strings.ToLower(name), strings.ToLower(candidate))
		if edits < fewest {
			best, fewest = candidate, edits
		}
	}
	if best == "" && len(name) >= 4 {
		for _, candidate := range slices.Sorted(slices.Values(among)) {
			if strings.Contains(candidate, name) {
				return candidate, true
			}
		}
	}
	return best, best != ""
}

// distance counts edits: insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range t {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			wrong := 1
			if s[i-1] == t[j-1] {
				wrong = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+wrong)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(s)][len(t)]
}
