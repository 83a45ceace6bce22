package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// A row is one figure and what it should be.
type row struct {
	Name   string   `json:"name"` // begins with that of its group
	Value  float64  `json:"value"`
	Unit   string   `json:"unit"`
	Target *float64 `json:"target"` // nil: it is for orientation
	OK     bool     `json:"ok"`     // the value is a figure and reaches the target, if there is one
	Note   string   `json:"note"`
}

// atMost makes a row of a figure that should not be above target.
func atMost(name string, s series, unit string, target float64, note string, args ...any) row {
	r := shown(name, s, unit, "at most; "+note, args...)
	return r.aimed(target, r.Value <= target)
}

// atLeast makes a row of a figure that should not be below target.
func atLeast(name string, s series, unit string, target float64, note string, args ...any) row {
	r := shown(name, s, unit, "at least; "+note, args...)
	return r.aimed(target, r.Value >= target)
}

// shown makes a row of a figure that has no target. Nothing that is measured is less than nothing,
// and what is no number JSON can't say.
func shown(name string, s series, unit string, note string, args ...any) row {
	r := row{Name: name, Unit: unit, Note: fmt.Sprintf(note, args...) + s.spread()}
	v := s.median()
	if slices.ContainsFunc(s, math.IsNaN) { // a median passes over it
		v = math.NaN()
	}
	if !finite(v) {
		r.Note = fmt.Sprintf("no figure: %v; ", v) + r.Note
		return r
	}
	r.Value, r.OK = v, v >= 0
	return r
}

// aimed gives r its target. A figure of 0 is one: who counts and may have had nothing to count says
// so himself.
func (r row) aimed(target float64, reached bool) row {
	if !finite(target) {
		r.OK, r.Note = false, fmt.Sprintf("no target: %v; ", target)+r.Note
		return r
	}
	r.Target, r.OK = &target, r.OK && reached
	return r
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

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
	case r.Target == nil && r.OK:
		return "", ""
	case r.Target == nil:
		return "", "NO"
	case r.OK:
		return fmt.Sprintf("%.3g", *r.Target), "yes"
	}
	return fmt.Sprintf("%.3g", *r.Target), "NO"
}

// unitAbsent is the unit of rows that have no figure.
const unitAbsent = "absent"

// absent is the row of a rival that is not there to be measured.
func absent(name, why string) row {
	return row{Name: name, Unit: unitAbsent, OK: true, Note: strings.ReplaceAll(why, "\n", "; ")}
}
