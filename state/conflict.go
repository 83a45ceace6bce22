package state

import (
	"math"
	"slices"
)

// A Write is what one visit of a superstep wrote.
type Write struct {
	Visit string // its path, for errors
	Delta Delta
}

// Conflicts returns the first conflict among writes, which are given in declaration order, as a
// [*ConflictError]. The first is that of the first cell in the order of the schema, then of the
// first pair of visits, then of the first key. It returns nil if all of them merge.
func Conflicts(s *Schema, writes []Write) error {
	if len(writes) < 2 {
		return nil
	}
	// Only a cell that two visits wrote to, not both by merging, is looked at closely.
	const once, twice, alone = 1, 2, 4
	var buf [32]uint8
	seen := buf[:]
	if len(s.cells) > len(buf) {
		seen = make([]uint8, len(s.cells))
	}
	for i := range writes {
		d := &writes[i].Delta
		for k := range d.n {
			p := d.part(k)
			if seen[p.cell]&once != 0 {
				seen[p.cell] |= twice
			}
			seen[p.cell] |= once
			if p.op == opKeys || p.exclusive() {
				seen[p.cell] |= alone
			}
		}
	}
	for cell := range s.cells {
		if seen[cell] != once|twice|alone {
			continue
		}
		if err := conflict(&s.cells[cell], parts(writes, int32(cell))); err != nil {
			return err
		}
	}
	return nil
}

// Apart reports whether Conflicts surely finds nothing among deltas: if two of them write to one
// cell, both do what merges whatever else is merged. It looks at no keys. For dispatchers.
func Apart(s *Schema, deltas []Delta) bool {
	const once, alone = 1, 2
	var buf [32]uint8
	seen := buf[:]
	if len(s.cells) > len(buf) {
		seen = make([]uint8, len(s.cells))
	}
	for i := range deltas {
		d := &deltas[i]
		for k := range d.n {
			p := d.part(k)
			is := uint8(once)
			if p.op == opKeys || p.exclusive() {
				is = once | alone
			}
			if was := seen[p.cell]; was != 0 && (was|is)&alone != 0 {
				return false
			}
			seen[p.cell] |= is
		}
	}
	return true
}

// exclusive reports whether p conflicts with any other write to its cell.
func (p *part) exclusive() bool {
	switch p.op {
	case opList:
		return p.list().exclusive()
	case opKeys:
		return p.keys().clear
	}
	return p.op == opSet || p.op == opClear
}

// A written is a part and the visit that wrote it.
type written struct {
	*part
	visit string
}

func parts(writes []Write, cell int32) []written {
	var ps []written
	for i := range writes {
		d := &writes[i].Delta
		for k := range d.n {
			if p := d.part(k); p.cell == cell {
				ps = append(ps, written{p, writes[i].Visit})
			}
		}
	}
	return ps
}

// conflict returns the conflict of the first pair of ps, at the first key of that. It passes each
// key once, however many visits there are.
func conflict(c *cell, ps []written) error {
	i, j, key := none, 0, ""
	whole := slices.IndexFunc(ps, func(p written) bool { return p.exclusive() })
	if c.core == coreKeyed {
		before := ps
		if whole >= 0 {
			before = ps[:whole]
		}
		i, j, key = clash(before, c.set)
	}
	if whole >= 0 && i > 0 { // it conflicts with every other one, and so with the first
		i, j, key = 0, max(whole, 1), ""
	}
	if i == none {
		return nil
	}
	return &ConflictError{Cell: c.Name, Key: key, Visits: [2]string{ps[i].visit, ps[j].visit}}
}

const none = math.MaxInt // is behind every place

// clash returns the first pair of ps that conflicts at a key, and the first such key; i is none if
// there is none.
func clash(ps []written, set bool) (i, j int, key string) {
	type writer struct {
		place int32 // in ps
		adds  bool
	}
	first := map[string]writer{}
	i = none
	for at, p := range ps {
		p.keys().keys.each(func(k string, v *box) bool {
			w, found := first[k]
			switch {
			case !found:
				first[k] = writer{int32(at), v != nil}
			case int(w.place) < i && !(set && w.adds == (v != nil)): // of one first it is the first second, and in that the first key
				i, j, key = int(w.place), at, k
			}
			return i > 0
		})
	}
	return i, j, key
}
