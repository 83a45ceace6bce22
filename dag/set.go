package dag

import (
	"math/bits"
	"slices"
)

// A set holds possibilities of one variable, as bits. Sets of one variable have the same
// length. They are not changed once they stand in a guard.
type set []uint64

func newSet(domain int) set { return make(set, (domain+63)/64) }

func (s set) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s set) count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

func (s set) meets(t set) bool {
	for i := range s {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

func (s set) and(t set) set {
	u := slices.Clone(s)
	for i := range u {
		u[i] &= t[i]
	}
	return u
}

func (s set) or(t set) set {
	u := slices.Clone(s)
	for i := range u {
		u[i] |= t[i]
	}
	return u
}
