package state

import (
	"encoding/json"
	"iter"
)

// A Set is a cell that holds different elements; two are the same if their JSON is. Parallel
// additions merge, and so do removals of other elements; Clear conflicts with any other write. The
// zero Set is empty.
//
// A program that writes its elements as other JSON does not find those that are stored. So if T is
// a struct keep the order of its fields and their options: a change of these alone does not show as
// a change of type. If T gets another field, a Migration writes the elements anew.
type Set[T comparable] struct {
	_ [0]*T
	c keyedCell
}

// member returns the box of v, and its key, which is its JSON.
func member[T any](v T) (string, *box, error) {
	b, err := pack(v)
	if err != nil {
		return "", nil, err
	}
	key := text(canonical(b.json()))
	switch {
	case b.form == unquoted: // the key is the JSON, so the box takes that as its text
		b.text, b.form = key, encoded
	case key != b.text:
		b = &box{text: key, form: encoded}
	}
	return key, b, nil
}

// Len returns the number of elements.
func (s *Set[T]) Len() int { return s.c.len() }

// Has reports whether v is an element.
func (s *Set[T]) Has(v T) bool {
	k, _, err := member(v)
	return err == nil && s.c.get(k) != nil
}

// All yields the elements as they stand when the loop begins, in the order of their JSON.
func (s *Set[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		c := s.c
		c.each(func(_ string, b *box) bool { return yield(unpack[T](b)) })
	}
}

// Add adds elements. Without any it writes nothing.
func (s *Set[T]) Add(vs ...T) { s.add(s.c, vs) }

// add makes the set what c is with vs. If one of them can't be stored it stays as it is.
func (s *Set[T]) add(c keyedCell, vs []T) {
	for _, v := range vs {
		k, b, err := member(v)
		if err != nil {
			s.c.fail(err)
			return
		}
		c.put(k, b)
	}
	s.c = c
}

// Remove removes elements. It is a write also of what is no element.
func (s *Set[T]) Remove(vs ...T) {
	c := s.c
	for _, v := range vs {
		k, _, err := member(v)
		if err != nil {
			s.c.fail(err)
			return
		}
		c.put(k, nil)
	}
	s.c = c
}

// Clear removes everything.
func (s *Set[T]) Clear() { s.c.clear() }

// MarshalJSON returns the elements as an array, in the order of their JSON.
func (s Set[T]) MarshalJSON() ([]byte, error) {
	return appendMembers(nil, true, s.c.each), nil
}

// UnmarshalJSON makes an array's elements all there is.
func (s *Set[T]) UnmarshalJSON(b []byte) error {
	var vs []T
	if err := json.Unmarshal(b, &vs); err != nil {
		return err
	}
	c := s.c
	c.clear()
	s.add(c, vs)
	return nil
}
