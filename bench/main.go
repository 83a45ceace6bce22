// Command bench measures pawl against what a program would do without it, and prints each
// figure beside the target that it should reach. It says so when one is missed, and does
// not fail because of it: figures depend on the machine, ratios much less.
//
//	go run . [-json] [-quick] [-run REGEXP] [-dir DIR]
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
)

// The groups of figures, in the order in which they are measured.
var parts = []struct {
	name    string
	measure func(session) ([]row, error)
}{
	{"chain", chains},
	{"fan", fans},
	{"memory", inMemory},
	{"resume", resumes},
	{"badger", onBadger},
	{"durable", durable},
	{"lag", lagging},
	{"read", reading},
}

func main() {
	asJSON := flag.Bool("json", false, "print a JSON array instead of a table")
	quick := flag.Bool("quick", false, "measure for a moment only: shows that all works, not how fast")
	only := flag.String("run", "", "measure the groups whose names match `REGEXP`: chain, fan, memory, resume, badger, durable, lag, read")
	dir := flag.String("dir", "", "keep stores under `DIR` while measuring; it says which disk is measured (default: for temporary files)")
	flag.Parse()
	if err := bench(*asJSON, *quick, *only, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(asJSON, quick bool, only, dir string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	s, err := newSession(quick, dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	rows := []row{} // an array, even if it is empty
	for _, p := range parts {
		if !match.MatchString(p.name) {
			continue
		}
		some, err := p.measure(s)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		rows = append(rows, some...)
	}
	if asJSON {
		return printJSON(os.Stdout, rows)
	}
	return printTable(os.Stdout, rows)
}
