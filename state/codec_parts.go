package state

import (
	"bytes"
	"cmp"
	"reflect"
)

// orNull is c for values that may be nil.
func orNull(c codec) *codec {
	return &codec{
		write: func(dst []byte, v reflect.Value) ([]byte, bool) {
			if v.IsNil() {
				return append(dst, "null"...), true
			}
			return c.write(dst, v)
		},
		read: func(b []byte, v reflect.Value) ([]byte, bool) {
			if rest, ok := bytes.CutPrefix(b, bytesOf("null")); ok {
				return rest, true
			}
			return c.read(b, v)
		},
	}
}

func pointerCodec(t reflect.Type, made map[reflect.Type]*codec) *codec {
	elem := codecOf(t.Elem(), made)
	if elem == nil {
		return nil
	}
	return orNull(codec{
		write: func(dst []byte, v reflect.Value) ([]byte, bool) { return elem.write(dst, v.Elem()) },
		read: func(b []byte, v reflect.Value) ([]byte, bool) {
			v.Set(reflect.New(t.Elem()))
			return elem.read(b, v.Elem())
		},
	})
}

func sliceCodec(t reflect.Type, made map[reflect.Type]*codec) *codec {
	elem := codecOf(t.Elem(), made)
	if elem == nil || t.Elem().Kind() == reflect.Uint8 { // base64
		return nil
	}
	return orNull(codec{
		write: elem.writeList,
		read: func(b []byte, v reflect.Value) ([]byte, bool) {
			rest, ok := readList(b, func(i int, b []byte) ([]byte, bool) {
				v.Grow(1)
				v.SetLen(i + 1)
				return elem.read(b, v.Index(i))
			})
			if ok && v.IsNil() {
				v.Set(reflect.MakeSlice(t, 0, 0))
			}
			return rest, ok
		},
	})
}

func arrayCodec(t reflect.Type, made map[reflect.Type]*codec) *codec {
	elem := codecOf(t.Elem(), made)
	if elem == nil {
		return nil
	}
	return &codec{
		write: elem.writeList,
		read: func(b []byte, v reflect.Value) ([]byte, bool) {
			return readList(b, func(i int, b []byte) ([]byte, bool) {
				if i == t.Len() {
					return nil, false
				}
				return elem.read(b, v.Index(i))
			})
		},
	}
}

// writeList writes a slice or an array of what c writes.
func (c *codec) writeList(dst []byte, v reflect.Value) (_ []byte, ok bool) {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, ok = c.write(dst, v.Index(i)); !ok {
			return nil, false
		}
	}
	return append(dst, ']'), true
}

// readList has elem read each element of the list that b begins with.
func readList(b []byte, elem func(i int, b []byte) ([]byte, bool)) (_ []byte, ok bool) {
	if rest, ok := bytes.CutPrefix(b, bytesOf("[]")); ok {
		return rest, true
	}
	if len(b) == 0 || b[0] != '[' {
		return nil, false
	}
	for i := 0; i == 0 || len(b) > 0 && b[0] == ','; i++ {
		if b, ok = elem(i, b[1:]); !ok {
			return nil, false
		}
	}
	return bytes.CutPrefix(b, bytesOf("]"))
}

// A fieldCodec is that of a field of a struct.
type fieldCodec struct {
	*codec
	lead []byte // the brace or comma before it, its name and the colon
}

func structCodec(t reflect.Type, made map[reflect.Type]*codec) *codec {
	fields, named := make([]fieldCodec, t.NumField()), map[string]bool{}
	for i := range fields {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options := tagName(tag)
		name = cmp.Or(name, f.Name)
		c := codecOf(f.Type, made)
		if c == nil || f.Anonymous || !f.IsExported() || options != "" || tag == "-" || named[name] {
			return nil
		}
		named[name] = true
		fields[i] = fieldCodec{c, append(appendString([]byte{"{,"[min(i, 1)]}, name), ':')}
	}
	if len(fields) == 0 {
		return nil
	}
	return &codec{
		write: func(dst []byte, v reflect.Value) (_ []byte, ok bool) {
			for i := range fields {
				dst = append(dst, fields[i].lead...)
				if dst, ok = fields[i].write(dst, v.Field(i)); !ok {
					return nil, false
				}
			}
			return append(dst, '}'), true
		},
		read: func(b []byte, v reflect.Value) (_ []byte, ok bool) {
			for i := range fields {
				if b, ok = bytes.CutPrefix(b, fields[i].lead); !ok {
					return nil, false
				}
				if b, ok = fields[i].read(b, v.Field(i)); !ok {
					return nil, false
				}
			}
			return bytes.CutPrefix(b, bytesOf("}"))
		},
	}
}
