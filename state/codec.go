package state

import (
	"bytes"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// A codec knows how encoding/json writes the values of a type, and reads what it wrote, in a third
// of the time and less.
//
// write appends the JSON of v, without HTML escapes. It is false of what encoding/json refuses or
// changes: invalid UTF-8, and numbers that JSON has no text for.
//
// read sets v, which is zero, to what b begins with and returns what is behind that. b begins with
// JSON in valid UTF-8. It is false of JSON that write didn't write: members in another order, or
// more or fewer of them, spaces, null for what is no pointer and no slice. v is in no certain state
// then.
//
// Where either is false encoding/json says what is what.
type codec struct {
	write func(dst []byte, v reflect.Value) ([]byte, bool)
	read  func(b []byte, v reflect.Value) ([]byte, bool)
}

// codecOf returns the codec of t, or nil where encoding/json is left to it: whatever is not listed
// here, what marshals itself, and types that contain themselves, or more than [MaxDepth] others.
// made has the codecs of the types that were looked at on the way: none of those around t, yet.
func codecOf(t reflect.Type, made map[reflect.Type]*codec) *codec {
	if c, seen := made[t]; seen || len(made) > MaxDepth {
		return c // nil also of what t is inside of
	}
	made[t] = nil
	made[t] = newCodec(t, made)
	return made[t]
}

func newCodec(t reflect.Type, made map[reflect.Type]*codec) *codec {
	if own, err := ownJSON(t, true); own || err != nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &codec{writeBool, readBool}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &codec{writeInt, readInt}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &codec{writeUint, readUint}
	case reflect.Float64:
		return &codec{writeFloat, readFloat}
	case reflect.String:
		return &codec{writeText, readText}
	case reflect.Struct:
		return structCodec(t, made)
	case reflect.Array:
		return arrayCodec(t, made)
	case reflect.Slice:
		return sliceCodec(t, made)
	case reflect.Pointer:
		return pointerCodec(t, made)
	}
	return nil
}

// scraps are what codecs write to first, so that what is kept is as long as it has to be.
var scraps = sync.Pool{New: func() any { return new([]byte) }}

// encode returns what c writes of v, in memory of its own.
func (c *codec) encode(v reflect.Value) ([]byte, bool) {
	scrap := scraps.Get().(*[]byte)
	out, ok := c.write((*scrap)[:0], v)
	if !ok {
		return nil, false
	}
	enc := bytes.Clone(out)
	if cap(out) <= 1<<16 {
		*scrap = out
		scraps.Put(scrap)
	}
	return enc, true
}

// decode sets v, which is zero, to what all of enc says.
func (c *codec) decode(enc []byte, v reflect.Value) bool {
	rest, ok := c.read(enc, v)
	return ok && len(rest) == 0
}

func writeBool(dst []byte, v reflect.Value) ([]byte, bool) {
	return strconv.AppendBool(dst, v.Bool()), true
}

func readBool(b []byte, v reflect.Value) ([]byte, bool) {
	if rest, ok := bytes.CutPrefix(b, bytesOf("true")); ok {
		v.SetBool(true)
		return rest, true
	}
	return bytes.CutPrefix(b, bytesOf("false"))
}

func writeInt(dst []byte, v reflect.Value) ([]byte, bool) {
	return strconv.AppendInt(dst, v.Int(), 10), true
}

func readInt(b []byte, v reflect.Value) ([]byte, bool) {
	number, rest := cutNumber(b)
	n, err := strconv.ParseInt(text(number), 10, 64)
	if err != nil || v.OverflowInt(n) {
		return nil, false
	}
	v.SetInt(n)
	return rest, true
}

func writeUint(dst []byte, v reflect.Value) ([]byte, bool) {
	return strconv.AppendUint(dst, v.Uint(), 10), true
}

func readUint(b []byte, v reflect.Value) ([]byte, bool) {
	number, rest := cutNumber(b)
	n, err := strconv.ParseUint(text(number), 10, 64)
	if err != nil || v.OverflowUint(n) {
		return nil, false
	}
	v.SetUint(n)
	return rest, true
}

func writeFloat(dst []byte, v reflect.Value) ([]byte, bool) {
	f := v.Float()
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, false
	}
	return appendFloat(dst, f), true
}

func readFloat(b []byte, v reflect.Value) ([]byte, bool) {
	number, rest := cutNumber(b)
	f, err := strconv.ParseFloat(text(number), 64)
	if err != nil {
		return nil, false
	}
	v.SetFloat(f)
	return rest, true
}

// cutNumber returns the number that b begins with, and what is behind it.
func cutNumber(b []byte) (number, rest []byte) {
	i := 0
	for i < len(b) && ('0' <= b[i] && b[i] <= '9' || b[i] == '-' || b[i] == '+' || b[i] == '.' || b[i]|0x20 == 'e') {
		i++
	}
	return b[:i], b[i:]
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

func readText(b []byte, v reflect.Value) ([]byte, bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, false
	}
	b = b[1:]
	n, escaped := skipText(b, 0), false
	for n < len(b) && b[n] == '\\' {
		escaped = true
		n = skipText(b, min(n+2, len(b))) // it and what it escapes
	}
	if n == len(b) || b[n] != '"' {
		return nil, false
	}
	if escaped {
		s, ok := unescaped(b[:n])
		v.SetString(s)
		return b[n+1:], ok
	}
	v.SetString(string(b[:n]))
	return b[n+1:], true
}

// unescaped returns the text that b is between its quotes. It is false of halves of UTF-16, which
// no codec writes.
func unescaped(b []byte) (string, bool) {
	var s strings.Builder
	s.Grow(len(b))
	most := len(b)
	for {
		n := bytes.IndexByte(b, '\\')
		if n < 0 {
			s.Write(b)
			if s.Len() < most/2 { // it would keep memory that it has no use for
				return strings.Clone(s.String()), true
			}
			return s.String(), true
		}
		s.Write(b[:n])
		b = b[n+1:]
		if len(b) >= 5 && b[0] == 'u' {
			r, err := strconv.ParseUint(text(b[1:5]), 16, 16)
			if err != nil || utf16.IsSurrogate(rune(r)) {
				return "", false
			}
			s.WriteRune(rune(r))
			b = b[5:]
			continue
		}
		at := strings.IndexByte(`"\/bfnrt`, b[0])
		if at < 0 {
			return "", false
		}
		s.WriteByte("\"\\/\b\f\n\r\t"[at])
		b = b[1:]
	}
}
