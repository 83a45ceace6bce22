package state

// Hides reports whether then, which comes later and does not know of first, would hide or
// break what first wrote, as a [*ConflictError]: because it writes exclusively to a cell, or to
// a key or element, that first wrote to as well. What only merges hides nothing: it is merged
// into what first wrote. The error is of the first such cell in the order of the schema.
func Hides(s *Schema, first, then Write) error {
	for cell := range s.cells {
		p, q := first.Delta.of(int32(cell)), then.Delta.of(int32(cell))
		if p == nil || q == nil {
			continue
		}
		key, hidden := "", q.exclusive()
		if !hidden && q.op == opKeys {
			key, hidden = q.hides(p, s.cells[cell].set)
		}
		if hidden {
			return &ConflictError{Cell: s.cells[cell].Name, Key: key, Visits: [2]string{first.Visit, then.Visit}}
		}
	}
	return nil
}

// hides returns the first key that both parts wrote to. Of a Set they also may do the same.
func (q *part) hides(p *part, set bool) (key string, hidden bool) {
	p.keys().keys.each(func(k string, v *box) bool {
		if other := q.keys().keys.find(k); other != nil && (!set || (v == nil) != (other.val == nil)) {
			key, hidden = k, true
		}
		return !hidden
	})
	return key, hidden
}

// of returns what d does to a cell, nil if it does nothing.
func (d *Delta) of(cell int32) *part {
	for k := range d.n {
		if p := d.part(k); p.cell == cell {
			return p
		}
	}
	return nil
}
