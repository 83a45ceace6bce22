package state

import "encoding/json"

// A Merger says how two values become one. Merge must be associative; it may change its
// receiver and argument, which are copies, and must not depend on anything else.
type Merger[T any] interface {
	Merge(T) T
}

// foldCell is the core of Fold.
type foldCell struct {
	w    *mark
	cur  *box // nil if unset
	pend *box // opSet: the value, opMerge: the operand
}

func (c *foldCell) set(b *box, o op) { c.pend, c.w = b, c.w.with(o) }
func (c *foldCell) fail(err error)   { c.w = c.w.failed(err) }

// A Fold is a cell that merges by its values' own Merge: parallel merges are merged in
// declaration order, Set conflicts with any other write. The zero Fold is unset; what is
// merged into it first becomes its value.
type Fold[T Merger[T]] struct {
	_ [0]*T
	c foldCell
}

// Get returns the value, or the zero T if it is unset.
func (f *Fold[T]) Get() T {
	switch f.c.w.does() {
	case opSet:
		return unpack[T](f.c.pend)
	case opMerge:
		if f.c.cur == nil {
			return unpack[T](f.c.pend)
		}
		return unpack[T](f.c.cur).Merge(unpack[T](f.c.pend))
	}
	return unpack[T](f.c.cur)
}

// IsSet reports whether anything was set or merged.
func (f *Fold[T]) IsSet() bool { return f.c.cur != nil || f.c.w.does() != opNone }

// Merge merges v into the value.
func (f *Fold[T]) Merge(v T) {
	b, err := pack(v)
	o := f.c.w.does()
	if o == opNone {
		o = opMerge
	} else if err == nil {
		b, err = mergeBoxes[T](f.c.pend, b, nil)
	}
	if err != nil {
		f.c.fail(err)
		return
	}
	f.c.set(b, o)
}

// Set sets the value.
func (f *Fold[T]) Set(v T) {
	b, err := pack(v)
	if err != nil {
		f.c.fail(err)
		return
	}
	f.c.set(b, opSet)
}

// MarshalJSON returns the JSON of the value, of the zero T if it is unset, or null if JSON
// can't say that.
func (f Fold[T]) MarshalJSON() ([]byte, error) {
	if !f.IsSet() {
		return show[T](nil)
	}
	v := f.Get()
	return json.Marshal(&v)
}

// UnmarshalJSON sets the value.
func (f *Fold[T]) UnmarshalJSON(b []byte) error {
	if unsaid[T](b) && !f.IsSet() {
		return nil
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	f.Set(v)
	return nil
}

// mergeBoxes merges b into a, and then each of more. Only the result is encoded.
func mergeBoxes[T Merger[T]](a, b *box, more []written) (*box, error) {
	v := unpack[T](a).Merge(unpack[T](b))
	for _, p := range more {
		v = v.Merge(unpack[T](p.box()))
	}
	return pack(v)
}
