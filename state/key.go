package state

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// encodeKey returns the name under which k stands in an object.
func encodeKey[K comparable](k K) (string, error) {
	s, err := keyText(&k)
	if err != nil {
		return "", err
	}
	if n := cleanPrefix(s); n < len(s) && !utf8.ValidString(s[n:]) {
		return "", ErrUTF8
	}
	return s, nil
}

func keyText[K comparable](k *K) (string, error) {
	switch p := any(k).(type) {
	case *string:
		return *p, nil
	case *int:
		return strconv.Itoa(*p), nil
	case *time.Time: // whose text leaves out the seconds of an offset: two instants would be one key
		if _, off := p.Zone(); off%60 != 0 {
			t := p.In(time.FixedZone("", off-off%60))
			return keyText(&t)
		}
	}
	v := reflect.ValueOf(k).Elem()
	if v.Kind() == reflect.String {
		return v.String(), nil
	}
	if m, ok := any(*k).(encoding.TextMarshaler); ok {
		if v.Kind() == reflect.Pointer && v.IsNil() {
			return "", fmt.Errorf("a nil %s is no key", v.Type())
		}
		b, err := m.MarshalText()
		if err != nil {
			_ = fmt.Sprint(err) // if its text breaks or hangs, who puts does
		}
		return string(b), err
	}
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	return "", fmt.Errorf("a %s is no key", v.Type())
}

// decodeKey is the inverse of encodeKey. What does not fit K panics.
func decodeKey[K comparable](s string) K {
	var k K
	if err := parseKey(s, &k); err != nil {
		panic(&DecodeError{Type: reflect.TypeFor[K]().String(), Err: err})
	}
	return k
}

func parseKey[K comparable](s string, k *K) error {
	switch p := any(k).(type) {
	case *string:
		*p = s
		return nil
	case *int:
		n, err := strconv.Atoi(s)
		*p = n
		return numberFault(err, "int", fmt.Sprintf("%q is no whole number", s))
	}
	v := reflect.ValueOf(k).Elem()
	if v.Kind() == reflect.String {
		v.SetString(s)
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		if u, ok := v.Interface().(encoding.TextUnmarshaler); ok {
			return u.UnmarshalText([]byte(s))
		}
	}
	if u, ok := any(k).(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(s))
	}
	switch {
	case v.CanInt():
		n, err := strconv.ParseInt(s, 10, v.Type().Bits())
		v.SetInt(n)
		return numberFault(err, v.Type().String(), fmt.Sprintf("%q is no whole number", s))
	case v.CanUint():
		n, err := strconv.ParseUint(s, 10, v.Type().Bits())
		v.SetUint(n)
		return numberFault(err, v.Type().String(), fmt.Sprintf("%q is no whole number that is not negative", s))
	}
	return fmt.Errorf("a %s is no key", v.Type())
}

// canonical returns the JSON of a set's element in the one form that makes equal elements
// equal keys: strings are escaped as appendString does.
func canonical(enc []byte) []byte {
	for i, c := range enc {
		if c == '\\' {
			return requote(enc, i)
		}
	}
	return enc
}

// requote rewrites the strings of enc, which is valid and has its first backslash at i.
func requote(enc []byte, i int) []byte {
	out := make([]byte, 0, len(enc))
	s := scanner{b: enc}
	for s.i < len(enc) {
		if enc[s.i] != '"' {
			out = append(out, enc[s.i])
			s.i++
			continue
		}
		start := s.i
		s.str()
		var v string
		if s.i <= i || json.Unmarshal(enc[start:s.i], &v) != nil {
			out = append(out, enc[start:s.i]...)
			continue
		}
		out = appendString(out, v)
	}
	return out
}
