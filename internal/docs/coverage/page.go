package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const notice = "<!-- Written by go generate ./internal/docs from internal/docs/coverage/coverage.txt: edit that. -->\n"

// page returns the page that a source is made into. A row that no test proves is an error.
func page(source string, all tests) (string, error) {
	blocks, err := parse(source)
	errs := []error{err}
	var out strings.Builder
	out.WriteString(notice)
	for _, b := range blocks {
		if b.rows == nil {
			out.WriteString(strings.Join(b.text, "\n") + "\n")
			continue
		}
		errs = append(errs, table(&out, b.rows, all))
	}
	return out.String(), errors.Join(errs...)
}

// table writes the rows of one system. Where nothing was seen to go wrong there is no column for
// it.
func table(out *strings.Builder, rows []*row, all tests) error {
	var errs []error
	seen := slices.ContainsFunc(rows, func(r *row) bool { return r.seen != "" })
	if seen {
		out.WriteString("| | capability | in pawl | seen in the original | proven by |\n|---|---|---|---|---|\n")
	} else {
		out.WriteString("| | capability | in pawl | proven by |\n|---|---|---|---|\n")
	}
	for _, r := range rows {
		links, err := r.links(all)
		errs = append(errs, err)
		cells := []string{r.id, r.what, r.pawl, r.seen, links}
		if !seen {
			cells = slices.Delete(cells, 3, 4)
		}
		out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return errors.Join(errs...)
}

// links names the tests of a row, each with a link from docs to its file.
func (r *row) links(all tests) (string, error) {
	var links []string
	var errs []error
	for name := range strings.FieldsSeq(r.tests) {
		file, err := all.file(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("coverage.txt:%d: %s: %w", r.line, r.id, err))
		}
		short := name[strings.LastIndex(name, ".")+1:]
		links = append(links, fmt.Sprintf("[%s](../%s)", short, file))
	}
	if links == nil {
		errs = append(errs, fmt.Errorf("coverage.txt:%d: no test proves %s", r.line, r.id))
	}
	return strings.Join(links, ", "), errors.Join(errs...)
}
