package state

import "encoding/json"

// valueCell is the core of Value and Whole.
type valueCell struct {
	w   *box // what is written: the value, &cleared, or a spoiled box; nil while nothing is pending
	cur *box // nil if unset
}

// cleared is what is written by who clears a value. Like a spoiled box it has no JSON.
var cleared box

// A spoiled box is what is written once a value could not be stored.
type spoiled struct {
	box
	err  error // of the first such value
	show *box  // what readers of the draft see
}

// spoil is the spoiled box that w is, or nil.
func (c *valueCell) spoil() *spoiled {
	if c.w == nil || c.w.form != nothing || c.w == &cleared {
		return nil
	}
	return spoiledAt(c.w)
}

func (c *valueCell) see() *box {
	switch {
	case c.w == nil:
		return c.cur
	case c.w == &cleared:
		return nil
	case c.w.form == nothing:
		return spoiledAt(c.w).show
	}
	return c.w
}

func (c *valueCell) set(b *box) {
	if s := c.spoil(); s != nil {
		b = &(&spoiled{err: s.err, show: b}).box
	}
	c.w = b
}

func (c *valueCell) clear() {
	if s := c.spoil(); s != nil {
		c.set(nil)
		return
	}
	c.w = &cleared
}

func (c *valueCell) fail(err error) {
	if c.spoil() == nil {
		c.w = &(&spoiled{err: err, show: c.see()}).box
	}
}

func put[T any](c *valueCell, v T) {
	b, err := pack(v)
	if err != nil {
		c.fail(err)
		return
	}
	c.set(b)
}

// show is the JSON of what b holds, or of the zero T if b is nil, and null if that can't be said.
func show[T any](b *box) ([]byte, error) {
	if b != nil {
		return b.append(nil), nil
	}
	if raw, ok := zeroJSON[T](); ok {
		return raw, nil
	}
	return []byte("null"), nil
}

// zeroJSON is the JSON of the zero T. A marshaller of its own may refuse that, or panic: nobody has
// written it.
func zeroJSON[T any]() (raw []byte, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	var zero T
	raw, err := json.Marshal(&zero)
	return raw, err == nil
}

// unsaid reports whether raw is what show gives instead of a zero T that can't be said.
func unsaid[T any](raw []byte) bool {
	if text(raw) != "null" {
		return false
	}
	_, ok := zeroJSON[T]()
	return !ok
}

// read makes c hold the T that raw is the JSON of.
func read[T any](c *valueCell, raw []byte) error {
	if unsaid[T](raw) {
		c.clear()
		return nil
	}
	var x T
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	put(c, x)
	return nil
}

// A Value is a cell that holds one T. Two parallel writes to it are a conflict. The zero
// Value is unset.
type Value[T any] struct {
	_ [0]*T
	c valueCell
}

// Get returns the value, or the zero T if it is unset.
func (v *Value[T]) Get() T { return unpack[T](v.c.see()) }

// IsSet reports whether the value was set, and not cleared since.
func (v *Value[T]) IsSet() bool { return v.c.see() != nil }

// Set sets the value.
func (v *Value[T]) Set(x T) { put(&v.c, x) }

// Clear makes the value unset.
func (v *Value[T]) Clear() { v.c.clear() }

// Update sets the value to what f makes of it.
func (v *Value[T]) Update(f func(T) T) { v.Set(f(v.Get())) }

// MarshalJSON returns the JSON of the value, of the zero T if it is unset, or null if JSON
// can't say that.
func (v Value[T]) MarshalJSON() ([]byte, error) { return show[T](v.c.see()) }

// UnmarshalJSON sets the value.
func (v *Value[T]) UnmarshalJSON(b []byte) error { return read[T](&v.c, b) }

// A Whole makes one plain struct one cell. It may be a field of a state, or be the state
// itself: a graph over Whole[Order] needs no other cells. Two parallel writes to it are a
// conflict. The zero Whole is unset.
type Whole[T any] struct {
	_ [0]*T
	c valueCell
}

// Get returns the struct, or the zero T if it is unset.
func (w *Whole[T]) Get() T { return unpack[T](w.c.see()) }

// Set sets the struct.
func (w *Whole[T]) Set(x T) { put(&w.c, x) }

// Clear makes the struct unset.
func (w *Whole[T]) Clear() { w.c.clear() }

// Update sets the struct to what f makes of it.
func (w *Whole[T]) Update(f func(T) T) { w.Set(f(w.Get())) }

// MarshalJSON returns the JSON of the struct, of the zero T if it is unset, or null if JSON
// can't say that.
func (w Whole[T]) MarshalJSON() ([]byte, error) { return show[T](w.c.see()) }

// UnmarshalJSON sets the struct.
func (w *Whole[T]) UnmarshalJSON(b []byte) error { return read[T](&w.c, b) }
