package state

import (
	"sync/atomic"
	"unsafe"
)

// This file holds all that the package does beyond Go's type system, for two reasons.
//
// Speed without reflection: the untyped side reaches the core of a cell by its offset in
// the struct. Invariant: an offset comes from reflect for that very struct type, and at it
// stands a cell whose first sized field is the core (a cell begins with a [0]*T, which has
// no size). Every core begins with its mark, a pointer that is nil while nothing is pending.
// Behind it stands what is clean: a pointer to what never changes, or the bits of a number.
//
// What can't be stored: a box that a valueCell has written, and that has no JSON and is not
// &cleared, is the first field of a spoiled. Invariant: boxes of values have JSON.
//
// One allocation per value: a box remembers the typed value it was made of, whose type it
// does not name. Invariant: boxes never pass between cells of different types; schemas
// that don't agree refuse each other's deltas.

// addr is where a state struct stands in memory.
type addr = unsafe.Pointer

func markAt(p addr, off uintptr) *addr       { return (*addr)(unsafe.Add(p, off)) }
func valueAt(p addr, off uintptr) *valueCell { return (*valueCell)(unsafe.Add(p, off)) }
func listAt(p addr, off uintptr) *listCell   { return (*listCell)(unsafe.Add(p, off)) }
func keyedAt(p addr, off uintptr) *keyedCell { return (*keyedCell)(unsafe.Add(p, off)) }
func sumAt(p addr, off uintptr) *sumCell     { return (*sumCell)(unsafe.Add(p, off)) }
func foldAt(p addr, off uintptr) *foldCell   { return (*foldCell)(unsafe.Add(p, off)) }
func wordAt(p addr, off uintptr) *uintptr    { return (*uintptr)(unsafe.Add(p, off)) }
func spoiledAt(b *box) *spoiled              { return (*spoiled)(addr(b)) }
func cached[T any](b *box) *T                { return (*T)(atomic.LoadPointer(&b.val)) }
func publish[T any](b *box, v *T)            { atomic.StorePointer(&b.val, addr(v)) }
func (b *tbox[T]) cache()                    { b.val = addr(&b.v) }
func at[S any](p addr) *S                    { return (*S)(p) }
func first[S any](s []S) addr                { return addr(unsafe.SliceData(s)) }
func after(p addr, size uintptr) addr        { return unsafe.Add(p, size) }
func addrOf[S any](s *S) addr                { return addr(s) }

// text reads bytes that nobody changes any more as a string.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf is for reading only.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

const (
	// cleanOffset is where in a cell what is clean begins: in all of them, or, where words are
	// short, in all but numbers.
	cleanOffset = unsafe.Offsetof(valueCell{}.cur)
	shortWords  = unsafe.Sizeof(uintptr(0)) < unsafe.Sizeof(sumCell{}.cur)
)

// cleanWords are the offsets of the words that hold what is clean in c: one, or two of a number
// where words are short.
func cleanWords(c *cell) (words []uintptr) {
	off, size := unsafe.Offsetof(valueCell{}.cur), unsafe.Sizeof(valueCell{}.cur)
	if c.core == coreSum {
		off, size = unsafe.Offsetof(sumCell{}.cur), unsafe.Sizeof(sumCell{}.cur)
	}
	for at := c.off + off; at < c.off+off+size; at += unsafe.Sizeof(at) {
		words = append(words, at)
	}
	return words
}

// memory is the core of c, for reading only.
func memory(p addr, c *cell) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(p, c.off)), coreTypes[c.core].Size())
}
