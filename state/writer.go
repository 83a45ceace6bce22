package state

import (
	"math"
	"reflect"
	"strconv"
	"sync"
	"unicode/utf8"
)

// A writer appends the JSON of a value of its type, as encoding/json does without HTML escapes. It reports false of a value that
// encoding/json refuses or changes, which is left to it: invalid UTF-8, and numbers that JSON has no text for.
type writer func(dst []byte, v reflect.Value) ([]byte, bool)

// writerOf returns the writer of a t, or nil where encoding/json is left to it: what marshals itself, maps, interfaces, embedded
// structs, tags with options, and types that contain themselves. The types in open are those around it.
func writerOf(t reflect.Type, open map[reflect.Type]bool) writer {
	if own, err := ownJSON(t, true); own || err != nil || open[t] {
		return nil
	}
	open[t] = true
	defer delete(open, t)
	z := reflect.Zero(t)
	switch {
	case t.Kind() == reflect.Bool:
		return func(dst []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendBool(dst, v.Bool()), true }
	case z.CanInt():
		return func(dst []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendInt(dst, v.Int(), 10), true }
	case z.CanUint():
		return func(dst []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendUint(dst, v.Uint(), 10), true }
	}
	switch t.Kind() {
	case reflect.Float64:
		return writeFloat
	case reflect.String:
		return writeText
	case reflect.Struct:
		return structWriter(t, open)
	case reflect.Array:
		return listWriter(t, open)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil // base64
		}
		return orNull(listWriter(t, open))
	case reflect.Pointer:
		if w := writerOf(t.Elem(), open); w != nil {
			return orNull(func(dst []byte, v reflect.Value) ([]byte, bool) { return w(dst, v.Elem()) })
		}
	}
	return nil
}

func writeFloat(dst []byte, v reflect.Value) ([]byte, bool) {
	f := v.Float()
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, false
	}
	return appendFloat(dst, f), true
}

func writeText(dst []byte, v reflect.Value) ([]byte, bool) {
	s := v.String()
	n := cleanPrefix(s)
	if n == len(s) {
		return append(append(append(dst, '"'), s...), '"'), true
	}
	if !utf8.ValidString(s[n:]) {
		return nil, false
	}
	return appendString(dst, s), true
}

// orNull is w for values that may be nil.
func orNull(w writer) writer {
	if w == nil {
		return nil
	}
	return func(dst []byte, v reflect.Value) ([]byte, bool) {
		if v.IsNil() {
			return append(dst, "null"...), true
		}
		return w(dst, v)
	}
}

func listWriter(t reflect.Type, open map[reflect.Type]bool) writer {
	elem := writerOf(t.Elem(), open)
	if elem == nil {
		return nil
	}
	return func(dst []byte, v reflect.Value) (_ []byte, ok bool) {
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, ok = elem(dst, v.Index(i)); !ok {
				return nil, false
			}
		}
		return append(dst, ']'), true
	}
}

func structWriter(t reflect.Type, open map[reflect.Type]bool) writer {
	type member struct {
		lead  []byte // the brace or comma before it, its name and the colon
		write writer
	}
	members, named := make([]member, t.NumField()), map[string]bool{}
	for i := range members {
		f := t.Field(i)
		name, options := tagName(f.Tag.Get("json"))
		if name == "" {
			name = f.Name
		}
		w := writerOf(f.Type, open)
		if w == nil || f.Anonymous || !f.IsExported() || options != "" || name == "-" || named[name] {
			return nil
		}
		named[name] = true
		lead := []byte{','}
		if i == 0 {
			lead[0] = '{'
		}
		members[i] = member{append(appendString(lead, name), ':'), w}
	}
	if len(members) == 0 {
		return nil
	}
	return func(dst []byte, v reflect.Value) (_ []byte, ok bool) {
		for i := range members {
			dst = append(dst, members[i].lead...)
			if dst, ok = members[i].write(dst, v.Field(i)); !ok {
				return nil, false
			}
		}
		return append(dst, '}'), true
	}
}

// scraps are what writers write to first, so that what is kept is as long as it has to be.
var scraps = sync.Pool{New: func() any { return new([]byte) }}

// encode returns what w writes of v, in memory of its own.
func (w writer) encode(v reflect.Value) ([]byte, bool) {
	scrap := scraps.Get().(*[]byte)
	out, ok := w((*scrap)[:0], v)
	if !ok {
		return nil, false
	}
	enc := make([]byte, len(out))
	copy(enc, out)
	if cap(out) <= 1<<16 {
		*scrap = out
		scraps.Put(scrap)
	}
	return enc, true
}
