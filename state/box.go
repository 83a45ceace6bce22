package state

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
)

// A box is one encoded value. It is immutable, so images, drafts and deltas share it.
type box struct {
	text string // what form says
	form form
	// val points to the decoded value, if it may be shared between readers (plain types
	// and Frozen) and is known. It is read and published atomically.
	val addr
}

// A form says what the text of a box is.
type form uint8

const (
	nothing  form = iota // the box is no value
	encoded              // JSON without insignificant space
	unquoted             // a string that is JSON once it is between quotes: the writer's, and no copy of it
)

// tbox is a box made together with its value: one allocation.
type tbox[T any] struct {
	box
	v T
}

// append appends the JSON of b.
func (b *box) append(dst []byte) []byte {
	if b.form == unquoted {
		return append(append(append(dst, '"'), b.text...), '"')
	}
	return append(dst, b.text...)
}

// json is what append appends. It is for reading only.
func (b *box) json() []byte {
	if b.form == unquoted {
		return b.append(make([]byte, 0, b.size()))
	}
	return bytesOf(b.text)
}

// size is the length of the JSON.
func (b *box) size() int {
	if b.form == unquoted {
		return len(b.text) + len(`""`)
	}
	return len(b.text)
}

// boxed is a box of that JSON, which nobody changes any more.
func boxed(enc []byte) *box { return &box{text: text(enc), form: encoded} }

// pack encodes v.
func pack[T any](v T) (*box, error) {
	if !fast[T]() {
		if info := infoOf(reflect.TypeFor[T]()); !info.plain {
			return packCopy(v, info)
		}
	}
	t := &tbox[T]{v: v}
	if s, ok := any(&t.v).(*string); ok && cleanPrefix(*s) == len(*s) {
		t.text, t.form = *s, unquoted
	} else {
		enc, err := encodePlain(&t.v)
		if err != nil {
			return nil, err
		}
		t.text, t.form = text(enc), encoded
	}
	t.cache()
	return &t.box, nil
}

// packCopy is pack for a value that may share memory with the writer, and is not kept. It is a
// function of its own since encode makes its v escape, which pack's then does not.
func packCopy[T any](v T, info *typeInfo) (*box, error) {
	enc, err := encode(&v, info)
	if err != nil {
		return nil, err
	}
	return boxed(enc), nil
}

// packAll encodes vs; it gives all or an error.
func packAll[T any](vs []T) ([]*box, error) {
	bs := make([]*box, len(vs))
	for i, v := range vs {
		b, err := pack(v)
		if err != nil {
			return nil, err
		}
		bs[i] = b
	}
	return bs, nil
}

// unpack returns the value of b, or the zero T if b is nil. What is not plain is decoded
// anew, so that the reader may change it.
func unpack[T any](b *box) T {
	if b == nil {
		var zero T
		return zero
	}
	if p := cached[T](b); p != nil {
		return *p
	}
	v := new(T)
	if err := decode(b.json(), v); err != nil {
		panic(&DecodeError{Type: reflect.TypeFor[T]().String(), Err: err})
	}
	if info := infoOf(reflect.TypeFor[T]()); info.plain || info.frozen {
		publish(b, v)
	}
	return *v
}

// decode reads enc, which is JSON in valid UTF-8 without space between values, into v, which is
// zero; the common types without reflection. enc stays as it is.
func decode[T any](enc []byte, v *T) error {
	switch p := any(v).(type) {
	case *string:
		if s, ok := unquotePlain(enc); ok {
			*p = s
			return nil
		}
	case *int:
		if n, err := strconv.ParseInt(text(enc), 10, strconv.IntSize); err == nil {
			*p = int(n)
			return nil
		}
	case *int64:
		if n, err := strconv.ParseInt(text(enc), 10, 64); err == nil {
			*p = n
			return nil
		}
	case *float64:
		if f, err := strconv.ParseFloat(text(enc), 64); err == nil {
			*p = f
			return nil
		}
	case *bool:
		*p = text(enc) == "true"
		if *p || text(enc) == "false" {
			return nil
		}
	}
	info := infoOf(reflect.TypeFor[T]())
	if info.codec != nil {
		if info.codec.decode(enc, reflect.ValueOf(v).Elem()) {
			return nil
		}
		*v = *new(T)
	}
	return info.unmarshal(enc, v)
}

// unmarshal is json.Unmarshal into a value of the type, and raw stays as it is whatever
// unmarshallers do.
func (i *typeInfo) unmarshal(raw []byte, v any) error {
	if i.alters {
		raw = bytes.Clone(raw)
	}
	return json.Unmarshal(raw, v)
}

// unquotePlain unquotes a JSON string that has no escapes.
func unquotePlain(enc []byte) (string, bool) {
	if len(enc) < 2 || enc[0] != '"' {
		return "", false
	}
	for _, c := range enc[1 : len(enc)-1] {
		if c == '\\' {
			return "", false
		}
	}
	return string(enc[1 : len(enc)-1]), true
}
