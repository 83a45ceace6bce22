package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

var (
	errUnknown = errors.New("the schema has no such cell")
	errTwice   = errors.New("it stands there twice")
	errIndex   = errors.New("no index of a list")
)

// A reader reads images and deltas. What it gives out shares the memory of its own copy of the
// input.
type reader struct {
	scanner
	s      *Schema
	owned  bool         // the scanner reads the copy
	ahead  int          // the cell behind the one that was seen last
	seen   uint64       // a bit for each of the first 64 cells
	rest   map[int]bool // others
	shared bool         // slabs are those of several readers
	Slabs
}

func newReader(s *Schema, b []byte) reader {
	return reader{scanner: scanner{b: b}, s: s}
}

// own makes the copy of the input, before something is read that shares its memory. What is said of
// Sums doesn't.
func (r *reader) own() {
	if !r.owned {
		b := make([]byte, len(r.b)) // not bytes.Clone, which clears the room that it leaves
		copy(b, r.b)
		r.b, r.owned = b, true
	}
}

// sees reports whether cell i was not seen before.
func (r *reader) sees(i int) bool {
	if i < 64 {
		bit := uint64(1) << i
		first := r.seen&bit == 0
		r.seen |= bit
		return first
	}
	if r.rest == nil {
		r.rest = map[int]bool{}
	}
	first := !r.rest[i]
	r.rest[i] = true
	return first
}

// cellKey takes a member's name, which is that of a cell not yet seen; else it is -1.
func (r *reader) cellKey() int {
	i := r.cellAhead()
	if i < 0 {
		if i = r.cellNamed(r.key()); i < 0 {
			return -1
		}
	}
	if !r.sees(i) {
		r.fail(fmt.Errorf("%q: %w", r.s.cells[i].Name, errTwice))
		return -1
	}
	r.ahead = i + 1
	return i
}

// cellAhead is cellKey for cells in the order of the schema, in which they are written. It takes
// nothing if it is -1.
func (r *reader) cellAhead() int {
	for i := r.ahead; i < len(r.s.cells); i++ {
		if r.label(text(r.s.cells[i].label)) {
			return i
		}
	}
	return -1
}

func (r *reader) cellNamed(name string) int {
	if r.err != nil {
		return -1
	}
	for i := range r.s.cells {
		if r.s.cells[i].Name == name {
			return i
		}
	}
	r.fail(fmt.Errorf("%w: %q", errUnknown, name))
	return -1
}

// problem is what went wrong, with cell k if k is one.
func (r *reader) problem(k int) error {
	e := &ParseError{Offset: r.i, Err: r.err}
	if k >= 0 {
		e.Cell = r.s.cells[k].Name
	}
	return e
}

func (r *reader) box() *box {
	if len(r.boxes) == 0 {
		r.most = min(max(1, 4*r.most), chunkSize)
		if r.shared {
			r.most = min(r.most, slabItems)
		}
		r.boxes = make([]box, r.most)
	}
	b := &r.boxes[0]
	r.boxes = r.boxes[1:]
	b.text, b.form = text(r.raw()), encoded
	return b
}

func (r *reader) number(c *cell) uint64 {
	raw := r.raw()
	if r.err != nil {
		return 0
	}
	n, err := c.num.parse(raw)
	if err != nil {
		r.fail(c.num.fault(err))
	}
	return n
}

// vector takes an array. Its first elements are put into room, if that is given and not yet used.
func (r *reader) vector(room *chunk) vector {
	v := vector{last: room}
	var few [4]*box
	batch := few[:0]
	for r.open('['); r.more(']'); {
		if batch = append(batch, r.box()); len(batch) == chunkSize {
			v.push(batch...)
			batch = batch[:0]
		}
	}
	if r.err == nil {
		v.push(batch...)
	}
	if v.n == 0 {
		return vector{}
	}
	return v
}

// members takes an object, or the array of a set, as leaves in the order of the input.
func (r *reader) members(set bool) []*node[string] {
	var ns []*node[string]
	if set {
		for r.open('['); r.more(']'); {
			b := r.box()
			b.text = text(canonical(b.json()))
			ns = append(ns, leaf(b.text, b))
		}
		return ns
	}
	for r.open('{'); r.more('}'); {
		k := r.key()
		ns = append(ns, leaf(k, r.box()))
	}
	return ns
}

// tree makes leaves a tree; a key that stands twice is refused.
func (r *reader) tree(ns []*node[string]) *node[string] {
	if r.err != nil {
		return nil
	}
	byKey := func(a, b *node[string]) int { return cmp.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(ns, byKey) {
		slices.SortFunc(ns, byKey)
	}
	for i := 1; i < len(ns); i++ {
		if ns[i].key == ns[i-1].key {
			r.fail(fmt.Errorf("key %q: %w", ns[i].key, errTwice))
			return nil
		}
	}
	return grow(ns)
}

// Parse returns the image that [Image.AppendJSON] wrote. It does not look into values: one
// that does not fit its Go type is found when it is read. The error is a [*ParseError].
func (s *Schema) Parse(json []byte) (Image, error) {
	r := newReader(s, json)
	img := s.New()
	for r.open('{'); r.more('}'); {
		k := r.cellKey()
		if r.err == nil {
			r.cell(img, &s.cells[k])
		}
		if r.err != nil {
			return Image{}, r.problem(k)
		}
	}
	if r.end(); r.err != nil {
		return Image{}, r.problem(-1)
	}
	return img, nil
}

func (r *reader) cell(img Image, c *cell) {
	if c.core != coreSum {
		r.own()
	}
	switch c.core {
	case coreValue:
		valueAt(img.p, c.off).cur = r.box()
	case coreFold:
		foldAt(img.p, c.off).cur = r.box()
	case coreList:
		v := r.vector(nil)
		listAt(img.p, c.off).cur = &v
	case coreKeyed:
		keyedAt(img.p, c.off).load(r.tree(r.members(c.set)), c.set)
	case coreSum:
		sumAt(img.p, c.off).cur = r.number(c)
	}
}
