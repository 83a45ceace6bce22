package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A row is a capability of a system.
//
//	A1 What it is.
//	  pawl: What pawl has for it.
//	  seen: What went wrong with it in the original. Optional.
//	  tests: TestsThatProveIt checkpoint/memory.TestOfAPackage
//
// Lines that are indented deeper go on with the line before.
type row struct {
	id, what, pawl, seen string
	tests                string
	line                 int // of the source, for errors
}

// A block is a part of the page: lines that stand as they are, or the rows of one table.
type block struct {
	text []string
	rows []*row
}

var (
	rowBegins   = regexp.MustCompile(`^([A-Z]\d+) (.+)$`)
	fieldBegins = regexp.MustCompile(`^  ([a-z]+): (.+)$`)
	fieldGoesOn = regexp.MustCompile(`^    (.+)$`)
)

// A parser reads the source line by line.
type parser struct {
	blocks []*block
	row    *row    // the last one, or nil if text stands behind it
	field  *string // of row, the one that goes on
	line   int
	errs   []error
}

// parse returns the blocks of a source. All that is wrong with it is in the error.
func parse(source string) ([]*block, error) {
	var p parser
	for line := range strings.Lines(source) {
		p.line++
		p.read(strings.TrimRight(line, "\n"))
	}
	p.checkRows()
	return p.blocks, errors.Join(p.errs...)
}

func (p *parser) errorf(line int, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("coverage.txt:%d: %w", line, fmt.Errorf(format, args...)))
}

func (p *parser) read(line string) {
	if m := rowBegins.FindStringSubmatch(line); m != nil {
		p.begin(m[1], m[2])
		return
	}
	switch m, on := fieldBegins.FindStringSubmatch(line), fieldGoesOn.FindStringSubmatch(line); {
	case p.row == nil:
		p.copy(line)
	case line == "": // between rows
	case m != nil:
		p.begun(m[1], m[2])
	case on != nil:
		*p.field += " " + on[1]
	default:
		p.row = nil
		p.copy("")
		p.copy(line)
	}
}

// begin begins a row, and a table with it if text stands before.
func (p *parser) begin(id, what string) {
	if p.row == nil {
		p.blocks = append(p.blocks, &block{})
	}
	last := p.blocks[len(p.blocks)-1]
	p.row = &row{id: id, what: what, line: p.line}
	p.field = &p.row.what
	last.rows = append(last.rows, p.row)
}

func (p *parser) begun(name, text string) {
	fields := map[string]*string{"pawl": &p.row.pawl, "seen": &p.row.seen, "tests": &p.row.tests}
	field := fields[name]
	switch {
	case field == nil:
		p.errorf(p.line, "%s has a field %q; there are pawl, seen and tests", p.row.id, name)
		field = new(string)
	case *field != "":
		p.errorf(p.line, "%s has %s twice", p.row.id, name)
	}
	*field, p.field = text, field
}

func (p *parser) copy(line string) {
	if len(p.blocks) == 0 || p.blocks[len(p.blocks)-1].rows != nil {
		p.blocks = append(p.blocks, &block{})
	}
	last := p.blocks[len(p.blocks)-1]
	last.text = append(last.text, line)
}

// checkRows checks that each row says what pawl has, and that those of a letter are counted from 1.
func (p *parser) checkRows() {
	counted := map[byte]int{}
	for _, b := range p.blocks {
		for _, r := range b.rows {
			counted[r.id[0]]++
			if want := r.id[:1] + strconv.Itoa(counted[r.id[0]]); r.id != want {
				p.errorf(r.line, "row %s stands where %s is expected", r.id, want)
			}
			if r.pawl == "" {
				p.errorf(r.line, "%s does not say what pawl has", r.id)
			}
		}
	}
}
