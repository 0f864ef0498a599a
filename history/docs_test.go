package history

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xitongsys/parquet-go/reader"
)

// columnsOnDisk are the names and order of a real part's columns, as a library reads them that is not ours.
func columnsOnDisk(t *testing.T) []string {
	t.Helper()
	_, inside := resultsDir(t)
	r, err := NewRecorder(inside, "w1.1", RecorderOptions{Process: Process{Worker: "w1", Incarnation: 1}})
	must(t, err)
	op := Operation{Call: 1, Return: 2, Kind: Acquire, Outcome: OK}
	r.End(r.Begin(&op), &op)
	must(t, r.Close())
	f, err := os.Open(partPath(inside, "w1.1", 1))
	must(t, err)
	defer f.Close()
	p, err := reader.NewParquetColumnReader(&openFile{f}, 1)
	must(t, err)
	defer p.ReadStop()
	var names []string
	for i := 1; i < len(p.SchemaHandler.SchemaElements); i++ { // the first is the row
		names = append(names, p.SchemaHandler.GetExName(i))
	}
	return names
}

// fences gives the fenced code of a page, by language.
func fences(page string) map[string]string {
	code := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(page, -1) {
		code[m[1]] += m[2]
	}
	return code
}

// TestDocsNameWhatIsThere: the table of columns in docs/history.md is that of a real file, and its examples name nothing else.
func TestDocsNameWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../docs/history.md")
	must(t, err)
	columns := columnsOnDisk(t)

	_, table, _ := strings.Cut(string(text), "| column | type |")
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for line := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(first, -1) {
			told = append(told, m[1])
		}
	}
	if !slices.Equal(told, columns) {
		t.Errorf("the table has %q, a file %q", told, columns)
	}

	code := fences(string(text))
	if langs := slices.Sorted(maps.Keys(code)); !slices.Equal(langs, []string{"python", "sql"}) {
		t.Fatalf("examples in %q: this test knows sql and python", langs)
	}
	known := func(names ...string) func(string) bool {
		return func(name string) bool {
			return slices.Contains(columns, name) || slices.Contains(names, name) || slices.Contains(KindNames(), name)
		}
	}
	files := []string{"history/*.parquet", "resource.parquet"}

	// SQL: whatever is not a keyword, in capitals here, or named by AS.
	sql := code["sql"]
	isKnown := known(append(named(sql, `AS ([a-z_]+)`), files...)...)
	for _, name := range append(named(sql, `\b([a-z][a-z_]*)\b`), named(sql, `'([^']+)'`)...) {
		if isKnown(name) || slices.ContainsFunc(files, func(file string) bool { return strings.Contains(file, name) }) {
			continue
		}
		t.Errorf("the SQL example names %q, which no file has", name)
	}

	// Python: what is in quotes, but for the names that rename gives, and what log is asked for.
	python := code["python"]
	isKnown = known(append(named(python, `"[a-z]+": "([a-z]+)"`), files...)...)
	for _, name := range append(named(python, `"([^"]+)"`), named(python, `log\.([a-z_]+)`)...) {
		if !isKnown(name) {
			t.Errorf("the pandas example names %q, which no file has", name)
		}
	}
}

// named are the first groups of all matches.
func named(text, expression string) (names []string) {
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}
