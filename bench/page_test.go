package main

import (
	"bytes"
	"os"
	"path/filepath"
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
