// Command bench measures pawl against what a program would do without it, and prints each
// figure beside the target that it should reach. It says so when one is missed, and does
// not fail because of it: figures depend on the machine, ratios much less.
//
//	go run . [-json] [-page FILE] [-only A,B] [-quick] [-plot DIR] [-dir DIR] [-cpuprofile FILE]
//	go run . -from FILES [-json] [-page FILE]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
)

// A part is figures that are measured together. Its rows' names begin with its name. Beside an
// error are the rows that were measured before it.
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
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run does what args ask for.
func run(args []string) error {
	o, err := ordered(args)
	if err != nil {
		return err
	}
	var rows []row
	if o.from != nil {
		rows, err = readRows(o.from...)
	} else {
		rows, err = profiled(o.profile, func() ([]row, error) { return bench(o) })
	}
	if rows == nil { // nothing was begun
		return err
	}
	return o.give(os.Stdout, rows, err)
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
func bench(o order) ([]row, error) {
	s, err := newSession(o.quick, o.dir)
	if err != nil {
		return nil, err
	}
	defer clearing(s.dir)()
	s.only, s.plot = o.only, o.plot
	if err := s.known(parts); err != nil {
		return nil, err
	}
	rows, err := s.measure(parts)
	if err == nil && o.plot != "" {
		err = s.charts.draw(o.plot)
	}
	return rows, err
}

// clearing returns what removes dir, and does so as well when the process is told to end, which it
// does then.
func clearing(dir string) (clear func()) {
	told, ignore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	stay := context.AfterFunc(told, func() {
		for range 100 { // stores are written to meanwhile
			if os.RemoveAll(dir) == nil {
				break
			}
		}
		fmt.Fprintln(os.Stderr, "bench:", context.Cause(told))
		os.Exit(1)
	})
	return func() {
		if !stay() {
			select {} // the process ends above, and says why: what is measured may fail since its directory is gone
		}
		_ = os.RemoveAll(dir)
		ignore()
	}
}

// measure measures what is wanted of parts. One that fails keeps none of the others from being
// measured.
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
