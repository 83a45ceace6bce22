package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A row is one figure and what it should be.
type row struct {
	Name   string   `json:"name"` // begins with that of its group
	Value  float64  `json:"value"`
	Unit   string   `json:"unit"`
	Target *float64 `json:"target"` // nil: it is for orientation
	OK     bool     `json:"ok"`     // the value reaches the target, if there is one
	Note   string   `json:"note"`
}

// atMost makes a row of a figure that should not be above target.
func atMost(name string, s series, unit string, target float64, note string, args ...any) row {
	v := s.median()
	return row{name, v, unit, &target, v <= target, "at most; " + fmt.Sprintf(note, args...) + s.spread()}
}

// atLeast makes a row of a figure that should not be below target.
func atLeast(name string, s series, unit string, target float64, note string, args ...any) row {
	v := s.median()
	return row{name, v, unit, &target, v >= target, "at least; " + fmt.Sprintf(note, args...) + s.spread()}
}

// shown makes a row of a figure that has no target.
func shown(name string, s series, unit string, note string, args ...any) row {
	return row{name, s.median(), unit, nil, true, fmt.Sprintf(note, args...) + s.spread()}
}

func printJSON(w io.Writer, rows []row) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(rows)
}

func printTable(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVALUE\tTARGET\tUNIT\tOK\tNOTE")
	for _, r := range rows {
		target, verdict := r.verdict()
		fmt.Fprintf(t, "%s\t%.3g\t%s\t%s\t%s\t%s\n", r.Name, r.Value, target, r.Unit, verdict, r.Note)
	}
	return t.Flush()
}

// verdict returns the target and whether the row reaches it, as a person reads them.
func (r row) verdict() (target, reached string) {
	switch {
	case r.Target == nil:
		return "", ""
	case r.OK:
		return fmt.Sprintf("%.3g", *r.Target), "yes"
	}
	return fmt.Sprintf("%.3g", *r.Target), "NO"
}

// absent is the row of a rival that could not be measured.
func absent(name, why string) row {
	return row{Name: name, Unit: "absent", OK: true, Note: strings.ReplaceAll(why, "\n", "; ")}
}
