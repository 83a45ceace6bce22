package state

import "slices"

// Merged is what the Folds of a superstep came to.
type Merged struct {
	State Delta // sets each merged Fold, to be applied to the view
	Outer Delta // to be recorded by the outer image
}

// Merge runs the Merge methods of the Fold cells into which writes merge. The writes are given in
// declaration order. view is the state as it stood when the superstep began, with the writes
// applied or not. outer, if it is not zero, is an image that records what the frame did as a whole.
// Merge changes neither. It calls the user's code, whose panics pass through. A result that can't
// be stored is an [*EncodeError].
//
// A visit's operand is in its delta. If m is the operands of all visits as one, the new value is
// that of view merged with m, and what outer has pending is merged with m. Where there is nothing
// yet, it is m.
func Merge(view, outer Image, writes []Write) (Merged, error) {
	var m Merged
	if !view.s.folds {
		return m, nil
	}
	m.State.s = view.s
	m.Outer.s = outer.s
	for k := range view.s.cells {
		c := &view.s.cells[k]
		if c.merge == nil {
			continue
		}
		if err := m.fold(view, outer, writes, k, c); err != nil {
			return Merged{}, &EncodeError{Cell: c.Name, Err: err}
		}
	}
	return m, nil
}

func (m *Merged) fold(view, outer Image, writes []Write, k int, c *cell) error {
	ps := slices.DeleteFunc(parts(writes, int32(k)), func(p written) bool { return p.op != opMerge })
	if len(ps) == 0 {
		return nil
	}
	operand := ps[0].box()
	if len(ps) > 1 {
		var err error
		if operand, err = c.merge(operand, ps[1].box(), ps[2:]); err != nil {
			return err
		}
	}
	value, err := c.onto(foldAt(view.p, c.off).cur, operand)
	if err != nil {
		return err
	}
	m.State.next(k, opSet).ref = value
	if outer.IsZero() {
		return nil
	}
	f, o := foldAt(outer.p, c.off), opMerged
	switch f.w.does() {
	case opSet:
		o = opSet
	case opNone:
		m.Outer.next(k, o).ref = operand
		return nil
	}
	pending, err := c.onto(f.pend, operand)
	if err != nil {
		return err
	}
	m.Outer.next(k, o).ref = pending
	return nil
}

// onto merges b into a, which may be nil.
func (c *cell) onto(a, b *box) (*box, error) {
	if a == nil {
		return b, nil
	}
	return c.merge(a, b, nil)
}
