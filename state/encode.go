package state

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// Encode returns *v as a cell would keep it: JSON that can be read back. It is ErrUTF8 if a
// string in it is not valid UTF-8.
func Encode[T any](v *T) ([]byte, error) { return encodePlain(v) }

// Decode sets *v, which is the zero T, to what raw says. It is json.Unmarshal, in a fraction of the
// time for what [Encode] has returned. *v shares no memory with raw, which stays as it is: an
// unmarshaller of T's own gets a copy.
func Decode[T any](raw []byte, v *T) error {
	s := scanner{b: raw}
	s.value()
	s.end()
	if s.err != nil || s.spaced {
		return infoOf(reflect.TypeFor[T]()).unmarshal(raw, v)
	}
	return decode(raw, v)
}

// Sayable reports whether JSON can say an instant in UTC: those of the years from 0 to 9999. For
// whoever stores one.
func Sayable(t time.Time) bool {
	y := t.UTC().Year()
	return 0 <= y && y <= 9999
}

// CheckText returns [ErrUTF8] if a string in v, of which raw is the JSON, is not valid UTF-8:
// encoding/json silently writes other text for it. It is for what is kept beside cells.
func CheckText(v any, raw []byte) error {
	if utf8.Valid(raw) && !bytes.Contains(raw, []byte(`\ufffd`)) {
		return nil
	}
	some := v // so that v is not allocated
	if _, err := Encode(&some); errors.Is(err, ErrUTF8) {
		return err
	}
	return nil
}

// fast reports whether T is one of the types that encodePlain knows.
func fast[T any]() bool {
	switch any((*T)(nil)).(type) {
	case *string, *int, *int64, *int32, *bool:
		return true
	}
	return false
}

// encodePlain is encode, without reflection for the common types.
func encodePlain[T any](v *T) ([]byte, error) {
	switch p := any(v).(type) {
	case *string:
		return encodeString(*p)
	case *int:
		return strconv.AppendInt(nil, int64(*p), 10), nil
	case *int64:
		return strconv.AppendInt(nil, *p, 10), nil
	case *int32:
		return strconv.AppendInt(nil, int64(*p), 10), nil
	case *bool:
		return strconv.AppendBool(nil, *p), nil
	}
	return encode(v, infoOf(reflect.TypeFor[T]()))
}

func encodeString(s string) ([]byte, error) {
	n := cleanPrefix(s)
	if n == len(s) {
		enc := make([]byte, n+2)
		enc[0], enc[n+1] = '"', '"'
		copy(enc[1:], s)
		return enc, nil
	}
	if !utf8.ValidString(s[n:]) {
		return nil, ErrUTF8
	}
	return appendString(make([]byte, 0, len(s)+len(s)/16+2), s), nil
}

// An encoder is encoding/json without HTML escapes, kept for its buffer.
type encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.enc = json.NewEncoder(&e.buf)
	e.enc.SetEscapeHTML(false)
	return e
}}

// encode encodes *v with encoding/json and makes sure that it can be read back.
func encode[T any](v *T, info *typeInfo) ([]byte, error) {
	if info.codec != nil {
		if enc, ok := info.codec.encode(reflect.ValueOf(v).Elem()); ok {
			return enc, nil
		}
	}
	e := encoders.Get().(*encoder) // given back only if all went well
	if err := e.enc.Encode(v); err != nil {
		_ = fmt.Sprint(err) // may be a marshaller's: if its text breaks or hangs, who writes does
		return nil, err
	}
	out := bytes.TrimSuffix(e.buf.Bytes(), []byte{'\n'})
	var fffd bool
	if info.plain { // no marshaller had a say in it, and it is as deep as its type
		fffd = bytes.Contains(out, bytesOf(`\ufffd`))
	} else {
		s := scanner{b: out, depth: maxDepth - MaxDepth}
		if info.twins {
			s.distinct()
		} else {
			s.value()
		}
		if s.err != nil {
			return nil, s.err
		}
		fffd = s.fffd || bytes.Contains(out, bytesOf(`\ufffd`)) // as of a field with the option ",string", in which it is quoted twice
	}
	// encoding/json writes \ufffd for invalid UTF-8 without a word, and so might a
	// marshaller that means it.
	if fffd {
		if where, bad := invalid(reflect.ValueOf(v), 0); bad {
			return nil, errInvalid(where)
		}
	}
	if info.doubts {
		if err := info.unmarshal(out, new(T)); err != nil {
			return nil, fmt.Errorf("it can't be read back: %w", err)
		}
	}
	enc := bytes.Clone(out)
	e.buf.Reset()
	if cap(out) <= 1<<16 {
		encoders.Put(e)
	}
	return enc, nil
}

func errInvalid(where string) error {
	if where == "" {
		return ErrUTF8
	}
	return fmt.Errorf("%w at %s", ErrUTF8, where)
}

// invalid reports whether a string in v is invalid UTF-8, and where. v stands depth deep in what
// JSON has been made of. What encoding/json leaves out of that may point to itself.
func invalid(v reflect.Value, depth int) (where string, bad bool) {
	if depth++; depth > 8*MaxDepth { // pointers, of which there may be several, and what is embedded are deep too, and not in JSON
		return "", false
	}
	if t, ok := textOf(v); ok {
		return "", !utf8.Valid(t)
	}
	switch v.Kind() {
	case reflect.String:
		return "", !utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return invalid(v.Elem(), depth)
		}
	case reflect.Slice, reflect.Array:
		if e := v.Type().Elem(); e.Kind() <= reflect.Complex128 && reflect.PointerTo(e).NumMethod() == 0 {
			return "", false // bytes, numbers
		}
		for i := range v.Len() {
			if where, bad = invalid(v.Index(i), depth); bad {
				return fmt.Sprintf("[%d]%s", i, where), true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if _, bad = invalid(it.Key(), depth); bad {
				return keyStep(it.Key()), true
			}
			if where, bad = invalid(it.Value(), depth); bad {
				return keyStep(it.Key()) + where, true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if (!f.IsExported() && !embeds(f)) || f.Tag.Get("json") == "-" {
				continue
			}
			if where, bad = invalid(v.Field(i), depth); bad {
				return "." + f.Name + where, true
			}
		}
	}
	return "", false
}

// keyStep leads to what stands under a key of a map.
func keyStep(k reflect.Value) string {
	if t, ok := textOf(k); ok && t != nil {
		return fmt.Sprintf("[%q]", t)
	}
	switch {
	case k.CanInt():
		return fmt.Sprintf("[%d]", k.Int())
	case k.CanUint():
		return fmt.Sprintf("[%d]", k.Uint())
	}
	return fmt.Sprintf("[%q]", k.String())
}

// embeds reports whether JSON has the fields of f, which is not exported, as those of what it
// stands in.
func embeds(f reflect.StructField) bool {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return f.Anonymous && t.Kind() == reflect.Struct
}

// textOf returns what a marshaller of v's own says as text. A json.Marshaler answers for
// its strings itself.
func textOf(v reflect.Value) ([]byte, bool) {
	if !v.CanInterface() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, false
	}
	i := v.Interface()
	if v.CanAddr() {
		i = v.Addr().Interface()
	}
	switch m := i.(type) {
	case json.Marshaler:
		return nil, true
	case encoding.TextMarshaler:
		t, err := m.MarshalText()
		return t, err == nil
	}
	return nil, false
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// careful marks the bytes of x that a JSON string can't hold as they are, or that are not
// ASCII. A byte above a marked one may be marked in error.
//
// A byte of 0x80 and above is marked as it is, so what the subtractions make of one doesn't matter.
func careful(x uint64) uint64 {
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return (x | (x - ones*0x20) | (quote - ones) | (slash - ones)) & highs
}

// skipClean returns the first place from i on of a byte that a JSON string can't hold as it is, or
// that is not ASCII; the end of b if there is none.
func skipClean(b []byte, i int) int {
	for i+32 <= len(b) {
		w := b[i : i+32]
		if careful(binary.LittleEndian.Uint64(w))|careful(binary.LittleEndian.Uint64(w[8:]))|
			careful(binary.LittleEndian.Uint64(w[16:]))|careful(binary.LittleEndian.Uint64(w[24:])) != 0 {
			break
		}
		i += 32
	}
	for ; i+8 <= len(b); i += 8 {
		if marks := careful(binary.LittleEndian.Uint64(b[i:])); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8 // the lowest mark is no error
		}
	}
	for i < len(b) && b[i] >= 0x20 && b[i] < utf8.RuneSelf && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// skipText is skipClean for a text that is not all ASCII: it passes what is not.
func skipText(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if marks := careful(x) &^ x; marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// cleanPrefix returns how many bytes at the start of s are ASCII and need no escape.
func cleanPrefix(s string) int { return skipClean(bytesOf(s), 0) }

// appendString appends s, which is valid UTF-8, as encoding/json would without HTML
// escapes.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for {
		n := cleanPrefix(s)
		dst, s = append(dst, s[:n]...), s[n:]
		if s == "" {
			return append(dst, '"')
		}
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20:
			dst = appendControl(dst, byte(r))
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, `\u202`...)
			dst = append(dst, byte('8'+r-'\u2028'))
		default: // and what follows up to the next ASCII, or what may be one of those two
			for n < len(s) && s[n] >= utf8.RuneSelf && s[n] != "\u2028"[0] {
				n++
			}
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
}

func appendControl(dst []byte, c byte) []byte {
	switch c {
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// stringSize is the length of appendString's output.
func stringSize(s string) int {
	n := len(s) + 2
	for {
		s = s[cleanPrefix(s):]
		if s == "" {
			return n
		}
		r, k := utf8.DecodeRuneInString(s)
		switch {
		case r == '"' || r == '\\' || r == '\b' || r == '\f' || r == '\n' || r == '\r' || r == '\t':
			n++
		case r < 0x20:
			n += 5
		case r == '\u2028' || r == '\u2029':
			n += 3
		}
		s = s[k:]
	}
}

// appendFloat appends f as encoding/json does.
func appendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && text(dst[n-4:n-1]) == "e-0" {
		dst[n-2] = dst[n-1] // e-09 is written e-9
		dst = dst[:n-1]
	}
	return dst
}
