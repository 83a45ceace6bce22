package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// The marks in a page between which the table of results stands.
const (
	beginResults = "<!-- results: written by bench -->\n"
	endResults   = "<!-- end of results -->\n"
)

// readRows returns the rows that an earlier -json has printed into files. They are not nil if there
// are none.
func readRows(paths ...string) ([]row, error) {
	rows := []row{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var some []row
		if err := json.Unmarshal(text, &some); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// placeIn returns what stands before the marks of a page of Markdown, and behind them.
func placeIn(path string) (before, after []byte, err error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	before, rest, begins := bytes.Cut(page, []byte(beginResults))
	_, after, ends := bytes.Cut(rest, []byte(endResults))
	if !begins || !ends {
		return nil, nil, fmt.Errorf("%s has no place for results: give it the lines %q and %q", path, beginResults, endResults)
	}
	return before, after, nil
}

// writePage puts the rows, as a table, between the marks of a page of Markdown.
func writePage(path string, rows []row) error {
	before, after, err := placeIn(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(beginResults)
	b.WriteString("\n| what | value | target | reached | note |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		target, reached := r.verdict()
		fmt.Fprintf(&b, "| %s | %.3g %s | %s | %s | %s |\n", r.Name, r.Value, r.Unit, target, reached,
			strings.ReplaceAll(r.Note, "|", `\|`))
	}
	b.WriteString("\n" + endResults)
	b.Write(after)
	return os.WriteFile(path, b.Bytes(), 0o666)
}
