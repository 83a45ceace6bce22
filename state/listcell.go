package state

import "errors"

var errShort = errors.New("the list has not that many elements")

// listWrites is what a draft did to a list. It is immutable: a write makes another one,
// so a struct copy of a cell is another cell, and a delta is the writes as they are.
type listWrites struct {
	err      error // the first value that could not be stored
	replaced bool  // nothing of the list remains
	cut      bool  // keep elements of it remain; else all
	keep     int
	at       *node[int] // replaced among those that remain
	tail     vector     // what follows them
}

// exclusive writes don't merge with others.
func (w *listWrites) exclusive() bool { return w.replaced || w.cut || w.at != nil }

func (w *listWrites) written() bool { return w.exclusive() || w.tail.n > 0 }

// listCell is the core of List. Every draft has one of its own, so it is small.
type listCell struct {
	w   *listWrites
	cur *vector // it never changes; nil is an empty one
}

// noElements is the vector of empty lists. It is never written to.
var noElements vector

// held is cur, to be read.
func (c *listCell) held() *vector {
	if c.cur == nil {
		return &noElements
	}
	return c.cur
}

// writes returns a copy of what is pending, to be changed and stored by the caller.
func (c *listCell) writes() listWrites {
	if c.w == nil {
		return listWrites{}
	}
	return *c.w
}

// kept is how many elements of cur remain.
func (c *listCell) kept() int {
	switch {
	case c.w == nil:
	case c.w.replaced:
		return 0
	case c.w.cut:
		return c.w.keep
	}
	return c.held().n
}

func (c *listCell) len() int {
	if c.w == nil {
		return c.held().n
	}
	return c.kept() + c.w.tail.n
}

// get returns element i, which is there.
func (c *listCell) get(i int) *box {
	if c.w == nil {
		return c.cur.get(i)
	}
	if k := c.kept(); i >= k {
		return c.w.tail.get(i - k)
	}
	if found := c.w.at.find(i); found != nil {
		return found.val
	}
	return c.cur.get(i)
}

func (c *listCell) fail(err error) {
	w := c.writes()
	if w.err == nil {
		w.err = err
	}
	c.w = &w
}

func (c *listCell) append(bs ...*box) {
	if len(bs) == 0 {
		return
	}
	w := c.writes()
	w.tail.push(bs...)
	c.w = &w
}

func (c *listCell) replace(v vector) {
	w := c.writes()
	c.w = &listWrites{err: w.err, replaced: true, tail: v}
}

// pin makes w exclusive, whatever it holds.
func (w *listWrites) pin(keep int) {
	if !w.replaced {
		w.cut, w.keep = true, keep
	}
}

// set replaces element i, which is there.
func (c *listCell) set(i int, b *box) {
	w, k := c.writes(), c.kept()
	if i < k {
		w.at = w.at.put(i, b)
	} else {
		w.pin(k)
		w.tail.set(i-k, b)
	}
	c.w = &w
}

// truncate leaves n elements, of at least as many.
func (c *listCell) truncate(n int) {
	w, k := c.writes(), c.kept()
	if n >= k {
		w.pin(k)
		w.tail.cut(n - k)
	} else {
		w.pin(n)
		w.tail = vector{}
		w.at, _ = w.at.split(n)
	}
	c.w = &w
}

// record writes d as if this draft had.
func (c *listCell) record(d *listWrites) error {
	if d.replaced {
		c.replace(d.tail)
		return nil
	}
	if !d.fits(c.len()) {
		return errShort
	}
	if d.cut {
		c.truncate(d.keep)
	}
	d.at.each(func(i int, b *box) bool { c.set(i, b); return true })
	if d.tail.n > 0 {
		w := c.writes()
		w.tail.concat(&d.tail)
		c.w = &w
	}
	return nil
}

// fits reports whether d can be done to a list of n elements. What it replaces stands among those
// that it keeps.
func (w *listWrites) fits(n int) bool {
	if w.cut && w.keep > n {
		return false
	}
	last := w.at
	for last != nil && last.right != nil {
		last = last.right
	}
	return last == nil || last.key < n
}

// apply makes d part of cur.
func (c *listCell) apply(d *listWrites) error {
	if d.replaced || c.cur == nil && !d.exclusive() {
		c.cur = &d.tail
		return nil
	}
	if !d.fits(c.held().n) {
		return errShort
	}
	v := *c.held()
	if d.cut {
		v.cut(d.keep)
	}
	d.at.each(func(i int, b *box) bool { v.set(i, b); return true })
	v.concat(&d.tail)
	c.cur = &v
	return nil
}
