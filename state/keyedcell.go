package state

// keyedWrites is what a draft did to a Map or Set. Like [listWrites] it is immutable.
type keyedWrites struct {
	err   error // the first value that could not be stored
	clear bool  // nothing of the base remains; then keys holds no nil values
	keys  *node[string]
	// n is how many keys the draft shows over the base of.
	n  int
	of *node[string]
}

func (w *keyedWrites) written() bool { return w.clear || w.keys != nil }

// keyedCell is the core of Map and Set. Keys are encoded: of a Map the name of an object's
// member, of a Set the JSON of the element.
type keyedCell struct {
	w     *keyedWrites
	cur   *node[string]
	bytes int // of the members of cur, see memberSize
}

// base is what of cur can be seen.
func (c *keyedCell) base() *node[string] {
	if c.w != nil && c.w.clear {
		return nil
	}
	return c.cur
}

func (c *keyedCell) get(k string) *box {
	if c.w != nil {
		if found := c.w.keys.find(k); found != nil {
			return found.val
		}
	}
	if found := c.base().find(k); found != nil {
		return found.val
	}
	return nil
}

func (c *keyedCell) len() int {
	if c.w == nil {
		return c.cur.len()
	}
	if c.w.of == c.base() {
		return c.w.n
	}
	return c.count()
}

// count is len, if the base changed after the writes.
func (c *keyedCell) count() int {
	base := c.base()
	n := base.len()
	c.w.keys.each(func(k string, v *box) bool {
		was := base.find(k) != nil
		if was && v == nil {
			n--
		} else if !was && v != nil {
			n++
		}
		return true
	})
	return n
}

// each yields keys in order.
func (c *keyedCell) each(yield func(string, *box) bool) {
	if c.w == nil {
		c.cur.each(yield)
		return
	}
	overlay(c.base(), c.w.keys, yield)
}

func (c *keyedCell) writes() keyedWrites {
	if c.w == nil {
		return keyedWrites{of: c.cur, n: c.cur.len()}
	}
	return *c.w
}

func (c *keyedCell) fail(err error) {
	w := c.writes()
	if w.err == nil {
		w.err = err
	}
	c.w = &w
}

// put writes v at k; a nil v deletes k.
func (c *keyedCell) put(k string, v *box) {
	n := c.len()
	if c.get(k) != nil {
		n--
	}
	if v != nil {
		n++
	}
	w := c.writes()
	if v == nil && w.clear {
		w.keys = w.keys.del(k)
	} else {
		w.keys = w.keys.put(k, v)
	}
	w.n, w.of = n, c.base()
	c.w = &w
}

func (c *keyedCell) clear() {
	w := c.writes()
	c.w = &keyedWrites{err: w.err, clear: true}
}

// replace makes keys all there is.
func (c *keyedCell) replace(keys *node[string]) {
	w := c.writes()
	c.w = &keyedWrites{err: w.err, clear: true, keys: keys, n: keys.len()}
}

// record writes d as if this draft had.
func (c *keyedCell) record(d *keyedWrites) {
	if d.clear {
		c.replace(d.keys)
		return
	}
	d.keys.each(func(k string, v *box) bool { c.put(k, v); return true })
}

// apply makes d part of cur.
func (c *keyedCell) apply(d *keyedWrites, set bool) {
	if d.clear {
		c.load(d.keys, set)
		return
	}
	d.keys.each(func(k string, v *box) bool {
		if was := c.cur.find(k); was != nil {
			c.bytes -= memberSize(k, was.val, set)
		}
		if v == nil {
			c.cur = c.cur.del(k)
			return true
		}
		c.bytes += memberSize(k, v, set)
		c.cur = c.cur.put(k, v)
		return true
	})
}

// load makes keys, which holds no nil values, all there is.
func (c *keyedCell) load(keys *node[string], set bool) {
	c.cur, c.bytes = keys, 0
	keys.each(func(k string, v *box) bool {
		c.bytes += memberSize(k, v, set)
		return true
	})
}

// size is the length of appendJSON's output.
func (c *keyedCell) size() int { return 2 + c.bytes + max(c.cur.len()-1, 0) }

func (c *keyedCell) appendJSON(dst []byte, set bool) []byte {
	return appendMembers(dst, set, c.cur.each2)
}

// memberSize is the size of one member of an object, or of one element of a set.
func memberSize(k string, v *box, set bool) int {
	if set {
		return len(k)
	}
	return stringSize(k) + 1 + v.size()
}

// each2 is each as a plain iterator.
func (t *node[K]) each2(yield func(K, *box) bool) { t.each(yield) }

// appendMembers appends an object, or the array of a set.
func appendMembers(dst []byte, set bool, all func(func(string, *box) bool)) []byte {
	brackets := "{}"
	if set {
		brackets = "[]"
	}
	dst = append(dst, brackets[0])
	first := true
	all(func(k string, v *box) bool {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if set {
			dst = append(dst, k...)
			return true
		}
		dst = v.append(append(appendString(dst, k), ':'))
		return true
	})
	return append(dst, brackets[1])
}
