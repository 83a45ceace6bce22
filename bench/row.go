package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// A row is one figure and what it should be.
type row struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Target float64 `json:"target"`
	OK     bool    `json:"ok"` // the value reaches the target
	Note   string  `json:"note"`
}

// atMost makes a row of a figure that should not be above target.
func atMost(name string, s series, unit string, target float64, note string, args ...any) row {
	v := s.median()
	return row{name, v, unit, target, v <= target, "at most; " + fmt.Sprintf(note, args...) + "; " + s.spread()}
}

// atLeast makes a row of a figure that should not be below target.
func atLeast(name string, s series, unit string, target float64, note string, args ...any) row {
	v := s.median()
	return row{name, v, unit, target, v >= target, "at least; " + fmt.Sprintf(note, args...) + "; " + s.spread()}
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
		verdict := "yes"
		if !r.OK {
			verdict = "NO"
		}
		fmt.Fprintf(t, "%s\t%.3g\t%.3g\t%s\t%s\t%s\n", r.Name, r.Value, r.Target, r.Unit, verdict, r.Note)
	}
	return t.Flush()
}
