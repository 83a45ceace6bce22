package state

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// A box is one encoded value. It is immutable, so images, drafts and deltas share it.
type box struct {
	enc []byte // JSON without insignificant space; never nil
	// val points to the decoded value, if it may be shared between readers (plain types
	// and Frozen) and is known. It is read and published atomically.
	val addr
}

// tbox is a box made together with its value: one allocation.
type tbox[T any] struct {
	box
	v T
}

func (b *box) size() int { return len(b.enc) }

// pack encodes v.
func pack[T any](v T) (*box, error) {
	if !fast[T]() && !infoOf(reflect.TypeFor[T]()).plain {
		// The value may share memory with the writer, and is not kept.
		enc, err := encode(&v, false)
		return &box{enc: enc}, err
	}
	t := &tbox[T]{v: v}
	var err error
	if t.enc, err = encodePlain(&t.v); err != nil {
		return nil, err
	}
	t.cache()
	return &t.box, nil
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
	if err := decode(b.enc, v); err != nil {
		panic(&DecodeError{Type: reflect.TypeFor[T]().String(), Err: err})
	}
	if info := infoOf(reflect.TypeFor[T]()); info.plain || info.frozen {
		publish(b, v)
	}
	return *v
}

// decode reads enc into v; the common types without reflection.
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
	return json.Unmarshal(enc, v)
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
