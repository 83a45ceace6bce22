package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What an earlier run printed becomes a table in a page, and what stood round the table stays.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	results, page := filepath.Join(dir, "results.json"), filepath.Join(dir, "page.md")
	var printed bytes.Buffer
	if err := printJSON(&printed, []row{
		atMost("fan-100/run", series{1.5}, "ratio", 1.2, "a|b"),
		shown("machine", series{2}, "cores", "of some kind"),
	}); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(results, printed.String())
	write(page, "before\n"+beginResults+"old\n"+endResults+"after\n")
	rows, err := readRows(results)
	if err == nil {
		err = writePage(page, rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + beginResults + `
| what | value | target | reached | note |
|---|---|---|---|---|
| fan-100/run | 1.5 ratio | 1.2 | NO | at most; a\|b |
| machine | 2 cores |  |  | of some kind |

` + endResults + "after\n"
	if string(got) != want {
		t.Errorf("page\n%s\nwant\n%s", got, want)
	}

	write(page, "a page without a place")
	if err := writePage(page, rows); err == nil || !strings.Contains(err.Error(), "no place") {
		t.Errorf("writePage = %v, want that the page has no place for results", err)
	}
}

// A file without rows is no error, and not as if nothing had been begun.
func TestReadRowsOfNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	if err := os.WriteFile(path, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if rows, err := readRows(path); err != nil || rows == nil || len(rows) > 0 {
		t.Errorf("readRows = %#v, %v; want no rows", rows, err)
	}
}

// The pages of the repository say what was measured: one has the table of results.json, and what
// the other one takes from it stands there.
func TestPagesSayWhatWasMeasured(t *testing.T) {
	rows, err := readRows("results.json")
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const measurements = "../docs/measurements.md"
	again := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(again, []byte(read(measurements)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writePage(again, rows); err != nil {
		t.Fatal(err)
	}
	if read(again) != read(measurements) {
		t.Errorf("%s has another table than go run . -from results.json -page %[1]s writes", measurements)
	}

	page := read("../docs/performance.md")
	aimed, missed := 0, []string{}
	for _, r := range rows {
		if r.Target != nil {
			if aimed++; !r.OK {
				missed = append(missed, r.Name)
			}
		}
	}
	if count := fmt.Sprintf("Of %d targets %d are reached. These %d are not.", aimed, aimed-len(missed), len(missed)); !strings.Contains(page, count) {
		t.Errorf("docs/performance.md should say: %s", count)
	}
	costs := cellsOf(page, "| what | cost | beside it | row |")
	if len(costs) == 0 {
		t.Error("docs/performance.md has no table of costs")
	}
	for _, c := range costs {
		holds(t, rows, c[3], c[1]+" "+c[2])
	}
	var told []string
	for _, c := range cellsOf(page, "| row | what | value | target | floor | says | why |") {
		told = append(told, strings.Trim(c[0], "`"))
		value, floor, _ := strings.Cut(c[4], " `")
		holds(t, rows, c[0], c[2]+"; "+c[3])
		holds(t, rows, "`"+floor, value)
	}
	slices.Sort(told)
	slices.Sort(missed)
	if !slices.Equal(told, missed) {
		t.Errorf("docs/performance.md tells of the missed targets %q, want %q", told, missed)
	}
}

// cellsOf returns the cells of the lines below the head of a table.
func cellsOf(page, head string) (all [][]string) {
	_, below, _ := strings.Cut(page, head+"\n")
	for line := range strings.Lines(below) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < strings.Count(head, "|")-1 {
			break
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !strings.HasPrefix(cells[0], "---") {
			all = append(all, cells)
		}
	}
	return all
}

var (
	ticked = regexp.MustCompile("`([^`]+)`")
	gap    = regexp.MustCompile(`(\d) (\d{3})\b`)
	figure = regexp.MustCompile(`\d+(\.\d+)?(e[+-]\d+)?`)
)

// holds reports an error unless each figure in said stands in one of the rows that are named.
func holds(t *testing.T, rows []row, names, said string) {
	t.Helper()
	known := map[float64]bool{}
	for _, name := range ticked.FindAllStringSubmatch(names, -1) {
		found := false
		for _, r := range rows {
			if ok, err := path.Match(name[1], r.Name); err != nil {
				t.Fatal(err)
			} else if ok {
				found = true
				target, _ := r.verdict()
				for _, f := range figures(fmt.Sprintf("%.3g; %s; ", r.Value, target) + r.Note) {
					known[f] = true
				}
			}
		}
		if !found {
			t.Errorf("docs/performance.md names row %s, which there is not", name[1])
		}
	}
	for _, f := range figures(said) {
		if !known[f] {
			t.Errorf("docs/performance.md has %v of %s, where that is not", f, names)
		}
	}
}

// figures are the numbers in a text, whose thousands may stand apart.
func figures(text string) (all []float64) {
	for _, word := range figure.FindAllString(gap.ReplaceAllString(text, "$1$2"), -1) {
		f, err := strconv.ParseFloat(word, 64)
		if err == nil {
			all = append(all, f)
		}
	}
	return all
}
