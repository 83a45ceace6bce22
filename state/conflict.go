package state

// A Write is what one visit of a superstep wrote.
type Write struct {
	Visit string // its path, for errors
	Delta Delta
}

// Conflicts returns the first conflict among writes, which are given in declaration
// order, as a [*ConflictError]: the first cell in the order of the schema, in it the first
// pair of visits, for it the first key. It returns nil if all of them merge.
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

// Apart reports whether Conflicts surely finds nothing among deltas: no cell is written to by two of
// them but by what merges whatever else is merged. It looks at no keys. For dispatchers.
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

func conflict(c *cell, ps []written) error {
	if c.core == coreKeyed && disjoint(ps, c.set) {
		return nil
	}
	for i, p := range ps {
		for _, q := range ps[i+1:] {
			if key, ok := clash(p.part, q.part, c.set); ok {
				return &ConflictError{Cell: c.Name, Key: key, Visits: [2]string{p.visit, q.visit}}
			}
		}
	}
	return nil
}

// disjoint reports whether no two of ps clash, in one pass over their keys.
func disjoint(ps []written, set bool) bool {
	added := map[string]bool{}
	for _, p := range ps {
		if p.keys().clear {
			return false
		}
		ok := p.keys().keys.each(func(k string, v *box) bool {
			was, found := added[k]
			added[k] = v != nil
			return !found || set && was == (v != nil)
		})
		if !ok {
			return false
		}
	}
	return true
}

// clash reports whether p and q conflict, and at which key if not as a whole.
func clash(p, q *part, set bool) (key string, ok bool) {
	if p.exclusive() || q.exclusive() {
		return "", true
	}
	if p.op != opKeys {
		return "", false
	}
	p.keys().keys.each(func(k string, v *box) bool {
		if other := q.keys().keys.find(k); other != nil {
			key, ok = k, !set || (v == nil) != (other.val == nil)
		}
		return !ok
	})
	if !ok {
		key = ""
	}
	return key, ok
}
