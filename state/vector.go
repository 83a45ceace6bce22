package state

import "sync/atomic"

const chunkSize = 256

// A chunk holds up to chunkSize elements, and may be shared by any number of vectors.
// Invariant: the first used elements never change; a vector reads only elements below its
// own end, which is at most used.
type chunk struct {
	used atomic.Int32
	el   []*box // its length is what the chunk has room for
}

// newChunk returns a chunk with room for at least n elements, at most chunkSize.
func newChunk(n int) *chunk {
	if n <= 4 {
		c := new(struct {
			chunk
			room [4]*box
		})
		c.el = c.room[:]
		return &c.chunk
	}
	room := 16
	for room+room/2 < n {
		room *= 2
	}
	if room < n {
		room += room / 2
	}
	return &chunk{el: make([]*box, min(room, chunkSize))}
}

// A vector is a persistent list of boxes: a copy of it is another list, and what happens
// to one is not seen by the other. Appending copies no elements, unless another vector
// that shares the last chunk went on from the same place.
type vector struct {
	full  []*chunk // chunkSize elements each
	last  *chunk   // the others; nil only if n == 0. Invariant: 1 to chunkSize of them
	n     int
	bytes int // sum of the sizes of the elements
}

// tail is how many elements of last belong to v.
func (v *vector) tail() int { return v.n - len(v.full)*chunkSize }

func (v *vector) get(i int) *box {
	if k := i / chunkSize; k < len(v.full) {
		return v.full[k].el[i%chunkSize]
	}
	return v.last.el[i-len(v.full)*chunkSize]
}

// push appends bs to v.
func (v *vector) push(bs ...*box) {
	for len(bs) > 0 {
		end := v.tail()
		if end == chunkSize {
			// The clip makes append copy: the spare room of full may be shared.
			v.full = append(v.full[:len(v.full):len(v.full)], v.last)
			v.last, end = nil, 0
		}
		if v.last == nil {
			v.last = newChunk(len(bs))
		}
		k := min(len(bs), len(v.last.el)-end)
		if k == 0 || !v.last.used.CompareAndSwap(int32(end), int32(end+k)) {
			v.last = v.last.copy(end, end+len(bs))
			continue
		}
		copy(v.last.el[end:], bs[:k])
		for _, b := range bs[:k] {
			v.bytes += b.size()
		}
		v.n += k
		bs = bs[k:]
	}
}

// copy returns a chunk with the first end elements of c and room for want.
func (c *chunk) copy(end, want int) *chunk {
	d := newChunk(want)
	copy(d.el, c.el[:end])
	d.used.Store(int32(end))
	return d
}

// concat appends the elements of w to v.
func (v *vector) concat(w *vector) {
	if v.n == 0 {
		*v = *w
		return
	}
	for _, c := range w.full {
		v.push(c.el...)
	}
	if w.last != nil {
		v.push(w.last.el[:w.tail()]...)
	}
}

// set replaces element i by b in a copy of its chunk.
func (v *vector) set(i int, b *box) {
	v.bytes += b.size() - v.get(i).size()
	k := i / chunkSize
	if k == len(v.full) {
		v.last = v.last.copy(v.tail(), v.tail())
		v.last.el[i%chunkSize] = b
		return
	}
	v.full = append([]*chunk(nil), v.full...)
	v.full[k] = v.full[k].copy(chunkSize, chunkSize)
	v.full[k].el[i%chunkSize] = b
}

// cut leaves the first n elements.
func (v *vector) cut(n int) {
	if n == 0 {
		*v = vector{}
		return
	}
	if n == v.n {
		return
	}
	if n > v.n/2 {
		v.each(n, v.n, func(_ int, b *box) bool { v.bytes -= b.size(); return true })
	} else {
		sum := 0
		v.each(0, n, func(_ int, b *box) bool { sum += b.size(); return true })
		v.bytes = sum
	}
	if k := (n - 1) / chunkSize; k < len(v.full) {
		v.last = v.full[k]
		v.full = v.full[:k]
	}
	v.n = n
}

// each yields the elements from..to-1; it returns false if yield did.
func (v *vector) each(from, to int, yield func(int, *box) bool) bool {
	for i := from; i < to; i++ {
		if !yield(i, v.get(i)) {
			return false
		}
	}
	return true
}

// size is the length of appendJSON's output.
func (v *vector) size() int { return 2 + v.bytes + max(v.n-1, 0) }

func (v *vector) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	v.each(0, v.n, func(i int, b *box) bool {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = b.append(dst)
		return true
	})
	return append(dst, ']')
}
