// Command bench measures pawl against what a program would do without it, and prints each
// figure beside the target that it should reach. It says so when one is missed, and does
// not fail because of it: figures depend on the machine, ratios much less.
//
//	go run . [-json] [-only A,B] [-quick] [-plot DIR] [-dir DIR] [-cpuprofile FILE]
//	go run . -from FILES [-json] [-page FILE]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
)

// A part is figures that are measured together. Its rows' names begin with its name. Beside an error are the
// rows that were measured before it.
type part struct {
	name    string
	measure func(session) ([]row, error)
}

// The parts, in the order in which they are measured.
var parts = []part{
	{"machine", machine},
	{"chain", chains},
	{"fan", fans},
	{"memory", inMemory},
	{"resume", resumes},
	{"badger", onBadger},
	{"durable", durable},
	{"sustained", sustained},
	{"lag", lagging},
	{"read", reading},
	{"tail", tails},
	{"list", lists},
	{"stored", storing},
	{"open", opening},
	{"suspended", suspended},
	{"killed", killed},
	{"twice", twice},
	{"heap", heaps},
	{"floor", floors},
	{"scale", scaling},
	{"rivals", rivals},
}

func main() {
	child() // does not return if this process was started by another one of ours
	asJSON := flag.Bool("json", false, "print a JSON array instead of a table")
	quick := flag.Bool("quick", false, "measure small things for a moment: shows that all works, not how fast")
	only := flag.String("only", "", "measure rows whose names begin with one of `NAMES`, separated by commas: "+names())
	plot := flag.String("plot", "", "draw charts of what was measured, as SVG files in `DIR`")
	dir := flag.String("dir", "", "keep stores under `DIR` while measuring; it says which disk is measured (default: for temporary files)")
	profile := flag.String("cpuprofile", "", "write a profile of the processor, of both sides of what is measured, into `FILE`")
	from := flag.String("from", "", "measure nothing, and take the rows that an earlier -json printed into `FILES`, separated by commas")
	page := flag.String("page", "", "put the rows as a table into `FILE`, which has a place for it, as ../docs/performance.md has")
	flag.Parse()
	var rows []row
	var err error
	if *from != "" {
		rows, err = readRows(strings.Split(*from, ",")...)
	} else {
		rows, err = profiled(*profile, func() ([]row, error) { return bench(*quick, *only, *plot, *dir) })
	}
	switch {
	case rows == nil: // nothing was begun
	case *page != "" && err == nil:
		err = writePage(*page, rows)
	case *asJSON:
		err = errors.Join(err, printJSON(os.Stdout, rows))
	default:
		err = errors.Join(err, printTable(os.Stdout, rows))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// profiled calls do while a profile is written, if path says where.
func profiled(path string, do func() ([]row, error)) ([]row, error) {
	if path == "" {
		return do()
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	rows, err := do()
	pprof.StopCPUProfile()
	return rows, errors.Join(err, f.Close())
}

func names() string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = p.name
	}
	return strings.Join(all, ", ")
}

// bench measures. Beside the errors of parts are all rows that there are.
func bench(quick bool, only, plot, dir string) ([]row, error) {
	s, err := newSession(quick, dir)
	if err != nil {
		return nil, err
	}
	s.plot = plot
	defer os.RemoveAll(s.dir)
	if only != "" {
		s.only = strings.Split(only, ",")
	}
	if err := s.known(parts); err != nil {
		return nil, err
	}
	rows, err := s.measure(parts)
	if err == nil && plot != "" {
		err = s.charts.draw(plot)
	}
	return rows, err
}

// measure measures what is wanted of parts. One that fails keeps none of the others from being measured.
func (s session) measure(parts []part) ([]row, error) {
	rows := []row{} // an array of JSON, even if it is empty
	var errs []error
	for _, p := range parts {
		if !s.wants(p.name) {
			continue
		}
		if !s.quick {
			fmt.Fprintln(os.Stderr, "bench: measuring", p.name) // it takes minutes
		}
		some, err := p.measure(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
		for _, r := range some {
			switch {
			case !strings.HasPrefix(r.Name, p.name):
				errs = append(errs, fmt.Errorf("%s: the name of row %q should begin so", p.name, r.Name))
			case s.prints(r):
				rows = append(rows, r)
			}
		}
	}
	if errs == nil { // who failed may have had the rows that are not found
		return rows, s.found(rows)
	}
	return rows, errors.Join(errs...)
}
