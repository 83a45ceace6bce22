package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// An order is what the command line asks for.
type order struct {
	json, quick bool
	only        []string // prefixes of rows; nil: all
	plot        string   // directory for charts; "" is none
	dir         string   // for stores; "" is that of temporary files
	profile     string   // file; "" is none
	from        []string // files of rows; nil: rows are measured
	page        string   // file; "" is none
}

// ordered returns what args ask for, or an error if it can't be done as they ask: measuring takes
// long. It ends the process where a flag is wrong.
func ordered(args []string) (o order, err error) {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.BoolVar(&o.json, "json", false, "print a JSON array instead of a table")
	flags.BoolVar(&o.quick, "quick", false, "measure small things for a moment: shows that all works, not how fast")
	only := flags.String("only", "", "measure rows whose names begin with one of `NAMES`, separated by commas: "+names())
	flags.StringVar(&o.plot, "plot", "", "draw charts of what was measured, as SVG files in `DIR`")
	flags.StringVar(&o.dir, "dir", "", "keep stores under `DIR` while measuring; it says which disk is measured (default: for temporary files)")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a profile of the processor, of both sides of what is measured, into `FILE`")
	from := flags.String("from", "", "measure nothing, and take the rows that an earlier -json printed into `FILES`, separated by commas")
	flags.StringVar(&o.page, "page", "", "put the rows as a table into `FILE`, which has a place for it, as ../docs/measurements.md has")
	_ = flags.Parse(args) // it ends the process instead
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q belongs to no flag: -only takes names with commas and no spaces between them, and -json prints what > puts into a file", flags.Arg(0))
	}
	given := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["from"] {
		for _, name := range []string{"only", "quick", "plot", "dir", "cpuprofile"} {
			if given[name] {
				return o, fmt.Errorf("-%s says what is measured or how, and -from that nothing is: leave out one of them", name)
			}
		}
		o.from = strings.Split(*from, ",")
	}
	if given["only"] {
		o.only = strings.Split(*only, ",")
		if slices.Contains(o.only, "") {
			return o, fmt.Errorf("-only: a name is empty in %q: every row's name begins so", *only)
		}
	}
	if o.page != "" {
		_, _, err = placeIn(o.page)
	}
	return o, err
}

// give puts rows where they are wanted, beside the error of measuring them. They are printed if the
// page has not taken them.
func (o order) give(w io.Writer, rows []row, err error) error {
	if o.page != "" && err == nil {
		if err = writePage(o.page, rows); err == nil && !o.json {
			return nil
		}
	}
	if o.json {
		return errors.Join(err, printJSON(w, rows))
	}
	return errors.Join(err, printTable(w, rows))
}
