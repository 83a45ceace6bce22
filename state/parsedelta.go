package state

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

var (
	errNoOp  = errors.New("no such operation")
	errTrue  = errors.New("want true")
	errApart = errors.New("these operations don't go together")
)

// ParseDelta returns the delta that [Delta.AppendJSON] wrote. Like [Schema.Parse] it does
// not look into values. The error is a [*ParseError].
func (s *Schema) ParseDelta(json []byte) (Delta, error) {
	r := newReader(s, json)
	return r.delta()
}

// ParseDeltaIn is ParseDelta of what AppendJSON wrote, and nobody writes to any more: the delta,
// and what it is applied to, share its memory, and that of slabs. Strings are not checked again.
// For dispatchers.
func (s *Schema) ParseDeltaIn(json []byte, slabs *Slabs) (Delta, error) {
	r := newReader(s, json)
	r.owned, r.sealed = true, true
	if len(json) > sharing {
		return r.delta()
	}
	r.shared, r.Slabs = true, *slabs
	d, err := r.delta()
	*slabs = r.Slabs
	return d, err
}

func (r *reader) delta() (Delta, error) {
	s := r.s
	d := Delta{s: s}
	for r.open('{'); r.more('}'); {
		k := r.cellKey()
		if r.err == nil {
			if p, ok := r.part(k, &s.cells[k]); ok {
				r.insert(&d, p)
			}
		}
		if r.err != nil {
			return Delta{}, r.problem(k)
		}
	}
	if r.end(); r.err != nil {
		return Delta{}, r.problem(-1)
	}
	return d, nil
}

// insert adds a part, and keeps them in the order of the schema.
func (r *reader) insert(d *Delta, p part) {
	if d.n == 1 && r.shared {
		if len(r.parts) == 0 {
			r.parts = make([]part, slabItems)
		}
		d.more, r.parts = r.parts[:0:1], r.parts[1:]
	}
	*d.next(0, opNone) = p
	for i := d.n - 1; i > 0 && d.part(i-1).cell > d.part(i).cell; i-- {
		a, b := d.part(i-1), d.part(i)
		*a, *b = *b, *a
	}
}

// part takes what is done to cell k; ok is false if that is nothing.
func (r *reader) part(k int, c *cell) (p part, ok bool) {
	p.cell = int32(k)
	if c.core != coreSum {
		r.own()
	}
	switch c.core {
	case coreList:
		w := r.listWrites()
		p.op, p.ref = opList, w
		return p, w.written()
	case coreKeyed:
		w := r.keyedWrites(c.set)
		p.op, p.ref = opKeys, w
		return p, w.written()
	}
	r.open('{')
	if !r.more('}') {
		r.fail(errNoOp)
		return p, false
	}
	p.op = r.scalarOp(c)
	switch {
	case p.op == opClear:
		r.truth()
	case c.core == coreSum:
		p.num = r.number(c)
	default:
		p.ref = r.box()
	}
	if r.more('}') {
		r.fail(errApart)
	}
	return p, true
}

// scalarOp takes the name of an operation that c has.
func (r *reader) scalarOp(c *cell) op {
	switch { // as nearly all are written
	case r.label(opLabels[opSet]):
		return opSet
	case c.core == coreSum && r.label(opLabels[opAdd]):
		return opAdd
	}
	name := r.key()
	switch {
	case r.err != nil:
	case name == "set":
		return opSet
	case name == "clear" && c.core == coreValue:
		return opClear
	case name == "add" && c.core == coreSum:
		return opAdd
	case name == "merge" && c.core == coreFold:
		return opMerge
	case name == "merged" && c.core == coreFold:
		return opMerged
	default:
		r.fail(fmt.Errorf("%w: %q", errNoOp, name))
	}
	return opNone
}

func (r *reader) truth() {
	if raw := r.raw(); r.err == nil && string(raw) != "true" {
		r.fail(errTrue)
	}
}

// once takes the label of an operation, which is one of labels and none that was seen; else it is
// "".
func (r *reader) once(labels []string, seen *[4]bool) string {
	i := 0
	for i < len(labels) && !r.label(labels[i]) {
		i++
	}
	if i == len(labels) {
		name := r.key()
		if r.err != nil {
			return ""
		}
		i = slices.IndexFunc(labels, func(l string) bool { return l[1:len(l)-2] == name })
		if i < 0 {
			r.fail(fmt.Errorf("%w: %q", errNoOp, name))
			return ""
		}
	}
	if seen[i] {
		r.fail(errTwice)
		return ""
	}
	seen[i] = true
	return labels[i]
}

// The operations of lists and of what has keys, as they are written.
const (
	labelReplace  = `"replace":`
	labelTruncate = `"truncate":`
	labelAt       = `"at":`
	labelAppend   = `"append":`
	labelPut      = `"put":`
	labelDelete   = `"delete":`
	labelAdd      = `"add":`
	labelRemove   = `"remove":`
	labelClear    = `"clear":`
)

func (r *reader) list() *parsedList {
	if !r.shared {
		x := new(parsedList)
		x.last.el = x.room[:]
		return x
	}
	if len(r.lists) == 0 {
		r.lists = make([]parsedList, slabItems)
	}
	x := &r.lists[0]
	r.lists = r.lists[1:]
	x.last.el = x.room[:]
	return x
}

func (r *reader) listWrites() *listWrites {
	w := r.list()
	var seen [4]bool
	for r.open('{'); r.more('}'); {
		switch r.once([]string{labelAppend, labelReplace, labelTruncate, labelAt}, &seen) {
		case labelReplace:
			w.replaced, w.tail = true, r.vector(&w.last)
		case labelTruncate:
			w.cut, w.keep = true, r.index(string(r.raw()))
		case labelAt:
			r.listAt(&w.listWrites)
		case labelAppend:
			w.tail = r.vector(&w.last)
		}
	}
	if w.replaced && (seen[0] || seen[2] || seen[3]) {
		r.fail(errApart)
	}
	if w.cut && !w.fits(w.keep) {
		r.fail(errIndex)
	}
	return &w.listWrites
}

func (r *reader) listAt(w *listWrites) {
	for r.open('{'); r.more('}'); {
		i := r.index(r.key())
		b := r.box()
		if r.err == nil && w.at.find(i) != nil {
			r.fail(errTwice)
		}
		w.at = w.at.put(i, b)
	}
}

func (r *reader) index(s string) int {
	i, err := strconv.Atoi(s)
	if r.err == nil && (err != nil || i < 0 || strconv.Itoa(i) != s) {
		r.fail(errIndex)
	}
	return i
}

func (r *reader) keyedWrites(set bool) *keyedWrites {
	put, del := labelPut, labelDelete
	if set {
		put, del = labelAdd, labelRemove
	}
	w := &keyedWrites{}
	var ns []*node[string]
	var seen [4]bool
	for r.open('{'); r.more('}'); {
		switch r.once([]string{put, del, labelClear}, &seen) {
		case labelClear:
			r.truth()
			w.clear = true
		case put:
			ns = append(ns, r.members(set)...)
		case del:
			ns = append(ns, r.deleted(set)...)
		}
	}
	if w.clear && seen[1] {
		r.fail(errApart)
	}
	w.keys = r.tree(ns)
	return w
}

// deleted takes an array of keys.
func (r *reader) deleted(set bool) []*node[string] {
	var ns []*node[string]
	for r.open('['); r.more(']'); {
		raw := r.raw()
		switch {
		case r.err != nil:
		case set:
			ns = append(ns, leaf[string](text(canonical(raw)), nil))
		case raw[0] != '"':
			r.fail(errSyntax)
		default:
			ns = append(ns, leaf[string](unquote(raw), nil))
		}
	}
	return ns
}
