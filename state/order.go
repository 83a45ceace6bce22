package state

import (
	"bytes"
	"cmp"
	"slices"
)

// hasMembers reports whether an object whose members have an order is a part of t.
func (t *Type) hasMembers() bool {
	return t != nil && (t.Kind == "object" && len(t.Fields) > 1 || t.Elem.hasMembers() ||
		slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Type.hasMembers() }))
}

// inOrder returns enc, the JSON of a t without space, with the members of objects in the order of their names: that of the fields
// of a struct may be another one in another version of the program. What marshals itself stays as it is.
func inOrder(enc []byte, t *Type) []byte {
	o := orderer{scanner: scanner{b: enc}}
	out := o.take(make([]byte, 0, len(enc)), t)
	if o.err != nil || bytes.Equal(out, enc) { // it is deeper than a value may be, or is in order
		return enc
	}
	return out
}

// An orderer walks JSON along a type.
type orderer struct {
	scanner
	around []*Type // the types that are open, outermost first
}

// take appends the next value, which may be no t: who reads it finds out. t is nil for a member that t does not know.
func (o *orderer) take(dst []byte, t *Type) []byte {
	outer := o.around
	defer func() { o.around = outer }()
	if t != nil && t.Kind == "ref" {
		i := len(outer) - t.Up
		o.around, t = outer[:i:i], outer[i]
	}
	o.around = append(o.around, t)
	switch c := o.peek(); {
	case t == nil:
	case t.Kind == "pointer" && c != 'n':
		return o.take(dst, t.Elem)
	case (t.Kind == "list" || t.Kind == "array") && c == '[':
		first := len(dst)
		for o.open('['); o.more(']'); {
			dst = o.take(append(dst, ','), t.Elem)
		}
		return enclose(dst, first, "[]")
	case (t.Kind == "object" || t.Kind == "map") && c == '{':
		return enclose(o.members(dst, t), len(dst), "{}")
	}
	return append(dst, o.raw()...)
}

// enclose puts brackets around what stands from first on, which begins with a comma if it is anything.
func enclose(dst []byte, first int, brackets string) []byte {
	if len(dst) == first {
		return append(dst, brackets...)
	}
	dst[first] = brackets[0]
	return append(dst, brackets[1])
}

// members appends those of an object, each behind a comma.
func (o *orderer) members(dst []byte, t *Type) []byte {
	type member struct {
		name     string
		from, to int // where it stands in dst
	}
	first := len(dst)
	var few [8]member
	ms := few[:0]
	for o.open('{'); o.more('}'); {
		m, of := member{name: o.key(), from: len(dst)}, t.Elem
		if f := t.field(m.name); f != nil {
			of = &f.Type
		}
		dst = append(appendString(append(dst, ','), m.name), ':')
		dst = o.take(dst, of)
		m.to = len(dst)
		ms = append(ms, m)
	}
	byName := func(a, b member) int { return cmp.Compare(a.name, b.name) }
	if slices.IsSortedFunc(ms, byName) {
		return dst
	}
	was := bytes.Clone(dst[first:])
	slices.SortStableFunc(ms, byName)
	dst = dst[:first]
	for _, m := range ms {
		dst = append(dst, was[m.from-first:m.to-first]...)
	}
	return dst
}
