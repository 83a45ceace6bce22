package state

import (
	"encoding/json"
	"iter"
)

// A List is a cell that holds a sequence. Parallel appends merge, in declaration order;
// Replace, Truncate and SetAt conflict with any other write. An index out of range
// panics, as that of a slice does. The zero List is empty.
type List[T any] struct {
	_ [0]*T
	c listCell
}

// Len returns the number of elements.
func (l *List[T]) Len() int { return l.c.len() }

// At returns element i.
func (l *List[T]) At(i int) T {
	checkIndex(i, l.c.len())
	return unpack[T](l.c.get(i))
}

// All yields the elements as they stand when the loop begins.
func (l *List[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		c := l.c
		for i := range c.len() {
			if !yield(i, unpack[T](c.get(i))) {
				return
			}
		}
	}
}

// Slice returns the elements as a slice of the caller's own.
func (l *List[T]) Slice() []T {
	s := make([]T, l.c.len())
	for i := range s {
		s[i] = unpack[T](l.c.get(i))
	}
	return s
}

// Append adds elements at the end. Without any it writes nothing.
func (l *List[T]) Append(vs ...T) {
	if len(vs) == 1 {
		b, err := pack(vs[0])
		if err != nil {
			l.c.fail(err)
			return
		}
		l.c.append(b)
		return
	}
	bs, err := packAll(vs)
	if err != nil {
		l.c.fail(err)
		return
	}
	l.c.append(bs...)
}

// Replace makes vs the elements of the list.
func (l *List[T]) Replace(vs []T) {
	bs, err := packAll(vs)
	if err != nil {
		l.c.fail(err)
		return
	}
	var v vector
	v.push(bs...)
	l.c.replace(v)
}

// Truncate leaves the first n elements, of at least as many.
func (l *List[T]) Truncate(n int) {
	_ = make([]struct{}, l.c.len())[:n] // panics as a slice does
	l.c.truncate(n)
}

// SetAt replaces element i.
func (l *List[T]) SetAt(i int, v T) {
	checkIndex(i, l.c.len())
	b, err := pack(v)
	if err != nil {
		l.c.fail(err)
		return
	}
	l.c.set(i, b)
}

// checkIndex panics as a slice of n elements does. The slice takes no memory.
func checkIndex(i, n int) { _ = make([]struct{}, n)[i] }

// MarshalJSON returns the elements as an array.
func (l List[T]) MarshalJSON() ([]byte, error) {
	dst := []byte{'['}
	for i := range l.c.len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l.c.get(i).append(dst)
	}
	return append(dst, ']'), nil
}

// UnmarshalJSON replaces the elements.
func (l *List[T]) UnmarshalJSON(b []byte) error {
	var vs []T
	if err := json.Unmarshal(b, &vs); err != nil {
		return err
	}
	l.Replace(vs)
	return nil
}
