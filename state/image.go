package state

import (
	"bytes"
	"fmt"
)

// An Image is one state in memory. What is clean is what deltas made of it; what is pending is what
// was written since. An Image is a reference; [Image.Draft] makes another one. The zero Image is
// none. For dispatchers.
type Image struct {
	p addr
	s *Schema
}

// New returns the zero state.
func (s *Schema) New() Image {
	p, _ := s.block(1)
	return Image{p, s}
}

// IsZero reports whether i is no image.
func (i Image) IsZero() bool { return i.s == nil }

// Value returns the *S behind the image, through which typed code reads and writes. It is
// nil if the schema was parsed.
func (i Image) Value() any { return i.s.value(i.p) }

// Draft returns a new image of what is clean in i, with nothing pending. It costs one
// allocation and the copy of the struct, whatever the cells hold.
func (i Image) Draft() Image {
	d := Image{i.s.clone(i.p), i.s}
	d.clean()
	return d
}

// Copy returns a new image of all that is in i, what is pending included: writes to one are not
// seen in the other. It costs what Draft does.
func (i Image) Copy() Image { return Image{i.s.clone(i.p), i.s} }

// CopyFrom makes i what src.Draft would return, in place. Both are of one schema.
func (i Image) CopyFrom(src Image) {
	if i.s != src.s && !i.s.agrees(src.s) {
		panic(ErrSchema)
	}
	i.s.copy(i.p, src.p)
	i.clean()
}

// clean forgets what is pending.
func (i Image) clean() {
	for k, off := range i.s.offs {
		if m := markAt(i.p, off); *m != nil {
			*m = nil
			if i.s.cells[k].core == coreFold {
				foldAt(i.p, off).pend = nil
			}
		}
	}
}

// assigned is the error of DeltaFrom for the first cell that was assigned to.
func (i Image) assigned(base Image) error {
	if base.s != nil && base.s != i.s && !i.s.agrees(base.s) {
		panic(ErrSchema)
	}
	for _, off := range i.s.clean {
		var was uintptr
		if base.p != nil {
			was = *wordAt(base.p, off)
		}
		if *wordAt(i.p, off) != was && !i.alike(base, i.s.around(off)) {
			return &AssignError{Cell: i.s.around(off).Name}
		}
	}
	return nil
}

// alike reports whether what is clean in the cell is the same in both, from whatever log each was
// read.
func (i Image) alike(base Image, c *cell) bool {
	if base.IsZero() || base.empty(c) || i.empty(c) {
		return i.empty(c) && (base.IsZero() || base.empty(c))
	}
	return bytes.Equal(i.appendCell(nil, c), base.appendCell(nil, c))
}

// around is the cell at that offset, or around it.
func (s *Schema) around(off uintptr) *cell {
	k := len(s.cells) - 1
	for s.offs[k] > off {
		k--
	}
	return &s.cells[k]
}

// Check calls the state's own Check() error, if it has one. It refuses a Check that writes, since
// what it wrote would be in no delta. A panic passes through.
func (i Image) Check() error {
	if !i.s.checks {
		return nil
	}
	own := i.Copy()
	if err := i.s.check(own.p); err != nil {
		return err
	}
	for k := range i.s.cells {
		if c := &i.s.cells[k]; !bytes.Equal(memory(own.p, c), memory(i.p, c)) {
			return fmt.Errorf("state: Check has written to cell %q: it may only read", c.Name)
		}
	}
	return nil
}

// AppendJSON appends what is clean as an object of the cells that are not zero, in the
// order of the schema: equal states give equal bytes.
func (i Image) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	start := len(dst)
	for k := range i.s.cells {
		c := &i.s.cells[k]
		if i.empty(c) {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = i.appendCell(append(dst, c.label...), c)
	}
	return append(dst, '}')
}

// empty reports whether the cell is zero.
func (i Image) empty(c *cell) bool {
	switch c.core {
	case coreList:
		return listAt(i.p, c.off).held().n == 0
	case coreKeyed:
		return keyedAt(i.p, c.off).cur == nil
	case coreSum:
		return sumAt(i.p, c.off).cur == 0
	}
	return i.held(c) == nil
}

// held returns the box of a cell that holds one.
func (i Image) held(c *cell) *box {
	if c.core == coreFold {
		return foldAt(i.p, c.off).cur
	}
	return valueAt(i.p, c.off).cur
}

func (i Image) appendCell(dst []byte, c *cell) []byte {
	switch c.core {
	case coreList:
		return listAt(i.p, c.off).held().appendJSON(dst)
	case coreKeyed:
		return keyedAt(i.p, c.off).appendJSON(dst, c.set)
	case coreSum:
		return c.num.append(dst, sumAt(i.p, c.off).cur)
	}
	return i.held(c).append(dst)
}

// Size is the length of what AppendJSON appends, in a time that depends on the number of
// cells alone.
func (i Image) Size() int {
	size, members := 2, 0
	for k := range i.s.cells {
		c := &i.s.cells[k]
		if !i.empty(c) {
			size += len(c.label) + i.cellSize(c)
			members++
		}
	}
	return size + max(members-1, 0)
}

func (i Image) cellSize(c *cell) int {
	switch c.core {
	case coreList:
		return listAt(i.p, c.off).held().size()
	case coreKeyed:
		return keyedAt(i.p, c.off).size()
	case coreSum:
		return c.num.size(sumAt(i.p, c.off).cur)
	}
	return i.held(c).size()
}
