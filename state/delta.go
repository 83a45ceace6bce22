package state

// A Delta is exactly what one draft wrote. It is immutable. The zero Delta is nothing.
// For dispatchers.
type Delta struct {
	s    *Schema
	n    int
	one  part   // the first of n; most drafts write one cell
	more []part // the others
}

// A part is what a delta does to one cell.
type part struct {
	cell int32
	op   op
	num  uint64 // opAdd, opSet of a Sum
	// ref is a *box (opSet but of a Sum, opMerge, opMerged), *listWrites (opList) or
	// *keyedWrites (opKeys).
	ref any
}

func (p *part) box() *box          { return p.ref.(*box) }
func (p *part) list() *listWrites  { return p.ref.(*listWrites) }
func (p *part) keys() *keyedWrites { return p.ref.(*keyedWrites) }

// next returns the part after the last.
func (d *Delta) next(cell int, o op) *part {
	p := &d.one
	if d.n++; d.n > 1 {
		d.more = append(d.more, part{})
		p = &d.more[d.n-2]
	}
	p.cell, p.op = int32(cell), o
	return p
}

func (d *Delta) part(i int) *part {
	if i == 0 {
		return &d.one
	}
	return &d.more[i-1]
}

// Recorded returns d in the form in which an image records it when d is all that the image has
// recorded so far: what its Folds have merged is there as merged already, and not as operands that
// [Merge] still has to see.
func (d Delta) Recorded() Delta {
	d.more = append([]part(nil), d.more...)
	for i := range d.n {
		if p := d.part(i); p.op == opMerge {
			p.op = opMerged
		}
	}
	return d
}

// IsZero reports whether nothing was written.
func (d Delta) IsZero() bool { return d.n == 0 }

// Delta returns exactly what was written since the image was clean. The image is left as
// it is. If a value that was written can't be stored, it returns an [*EncodeError].
func (i Image) Delta() (d Delta, err error) {
	err = i.DeltaTo(&d)
	return d, err
}

// DeltaTo makes *d what Delta returns.
func (i Image) DeltaTo(d *Delta) error { return i.DeltaFrom(i, d) }

// DeltaFrom is DeltaTo of a draft of base, where the zero Image is the zero state. If a cell was
// assigned to, instead of written to with its methods, it returns an [*AssignError]: the draft
// would show a value that no delta has. Assigning what a cell holds already is no error.
func (i Image) DeltaFrom(base Image, d *Delta) error {
	if base.s != i.s || shortWords {
		if err := i.assigned(base); err != nil {
			return err
		}
		base = i
	}
	*d = Delta{s: i.s}
	differs := uintptr(0) // without a branch for each cell: this is asked of every visit
	for k, off := range i.s.offs {
		differs |= *wordAt(i.p, off+cleanOffset) ^ *wordAt(base.p, off+cleanOffset)
		if *markAt(i.p, off) == nil {
			continue
		}
		if err := d.extract(i.p, k); err != nil {
			*d = Delta{}
			return &EncodeError{Cell: i.s.cells[k].Name, Err: err}
		}
	}
	if differs == 0 {
		return nil
	}
	err := i.assigned(base)
	if err != nil {
		*d = Delta{}
	}
	return err
}

// extract adds what is pending in cell k.
func (d *Delta) extract(p addr, k int) error {
	switch c := &d.s.cells[k]; c.core {
	case coreSum:
		s := sumAt(p, c.off)
		if s.w.err != nil {
			return s.w.err
		}
		d.next(k, s.w.op).num = s.pend
	case coreValue:
		v := valueAt(p, c.off)
		if s := v.spoil(); s != nil {
			return s.err
		}
		if v.w == &cleared {
			d.next(k, opClear)
		} else {
			d.next(k, opSet).ref = v.w
		}
	case coreFold:
		f := foldAt(p, c.off)
		if f.w.err != nil {
			return f.w.err
		}
		d.next(k, f.w.op).ref = f.pend
	case coreList:
		w := listAt(p, c.off).w
		if w.err != nil {
			return w.err
		}
		d.next(k, opList).ref = w
	case coreKeyed:
		w := keyedAt(p, c.off).w
		if w.err != nil {
			return w.err
		}
		d.next(k, opKeys).ref = w
	}
	return nil
}

// Apply makes d part of what is clean. Merges of Folds are ignored: [Merge] brings their result. An
// [*ApplyError] says that d does not fit, or that a sum overflows. The image is then good for
// nothing, so a caller that goes on applies to a copy.
func (i Image) Apply(d Delta) error {
	if d.n > 0 && i.s != d.s && !i.s.agrees(d.s) {
		return ErrSchema
	}
	for k := range d.n {
		p := d.part(k)
		if err := i.apply(p); err != nil {
			return &ApplyError{Cell: i.s.cells[p.cell].Name, Err: err}
		}
	}
	return nil
}

func (i Image) apply(p *part) error {
	c := &i.s.cells[p.cell]
	switch c.core {
	case coreValue:
		if v := valueAt(i.p, c.off); p.op == opSet {
			v.cur = p.box()
		} else {
			v.cur = nil
		}
	case coreFold:
		if p.op == opSet {
			foldAt(i.p, c.off).cur = p.box()
		}
	case coreList:
		return listAt(i.p, c.off).apply(p.list())
	case coreKeyed:
		keyedAt(i.p, c.off).apply(p.keys(), c.set)
	case coreSum:
		s, ok := sumAt(i.p, c.off), true
		if p.op == opSet {
			s.cur = p.num
		} else if s.cur, ok = c.num.add(s.cur, p.num); !ok {
			return ErrOverflow
		}
	}
	return nil
}

// TryApply does what Apply does if that can't fail, and reports whether it did. Otherwise it
// changes nothing.
func (i Image) TryApply(d *Delta) bool {
	if d.n > 0 && i.s != d.s && !i.s.agrees(d.s) {
		return false
	}
	for k := range d.n {
		if !i.fits(d.part(k)) {
			return false
		}
	}
	for k := range d.n {
		_ = i.apply(d.part(k)) // it fits
	}
	return true
}

// fits reports whether apply would return no error. No two parts of a delta are of one cell.
func (i Image) fits(p *part) bool {
	c := &i.s.cells[p.cell]
	switch c.core {
	case coreList:
		w := p.list()
		return w.replaced || !w.exclusive() || w.fits(listAt(i.p, c.off).held().n)
	case coreSum:
		if p.op != opSet {
			_, ok := c.num.add(sumAt(i.p, c.off).cur, p.num)
			return ok
		}
	}
	return true
}

// Record writes d as if the image's own draft had written it, so that [Image.Delta] gives the fold
// of all that was recorded. Merges of Folds are ignored, except what [Merge] returned as Outer.
// Errors are those of Apply.
func (i Image) Record(d Delta) error {
	if d.n > 0 && i.s != d.s && !i.s.agrees(d.s) {
		return ErrSchema
	}
	for k := range d.n {
		p := d.part(k)
		if err := i.record(p); err != nil {
			return &ApplyError{Cell: i.s.cells[p.cell].Name, Err: err}
		}
	}
	return nil
}

// Recordable returns the error that Record would return for the first n deltas of at that are not
// nil, recorded one after the other, and records nothing. For deltas that i has applied that error
// is an overflow: what an image records of a sum can be too large where the sum is not. For
// dispatchers.
func (i Image) Recordable(n int, at func(int) *Delta) error {
	var few [8]sumCell
	var fewKnown [len(few)]bool
	sums, known := few[:], fewKnown[:] // by cell, what the deltas so far have made of those that are known
	if len(i.s.cells) > len(few) {
		sums, known = make([]sumCell, len(i.s.cells)), make([]bool, len(i.s.cells))
	}
	for one := range n {
		d := at(one)
		if d == nil {
			continue
		}
		for k := range d.n {
			p := d.part(k)
			c := &i.s.cells[p.cell]
			if c.core != coreSum {
				continue
			}
			s := &sums[p.cell]
			if !known[p.cell] {
				*s, known[p.cell] = *sumAt(i.p, c.off), true
			}
			if p.op == opSet {
				s.set(p.num)
			} else if !s.add(c.num, p.num) {
				return &ApplyError{Cell: c.Name, Err: ErrOverflow}
			}
		}
	}
	return nil
}

func (i Image) record(p *part) error {
	c := &i.s.cells[p.cell]
	switch c.core {
	case coreValue:
		if v := valueAt(i.p, c.off); p.op == opSet {
			v.set(p.box())
		} else {
			v.clear()
		}
	case coreFold:
		switch f := foldAt(i.p, c.off); p.op {
		case opSet:
			f.set(p.box(), opSet)
		case opMerged:
			f.set(p.box(), opMerge)
		}
	case coreList:
		return listAt(i.p, c.off).record(p.list())
	case coreKeyed:
		keyedAt(i.p, c.off).record(p.keys())
	case coreSum:
		if s := sumAt(i.p, c.off); p.op == opSet {
			s.set(p.num)
		} else if !s.add(c.num, p.num) {
			return ErrOverflow
		}
	}
	return nil
}
