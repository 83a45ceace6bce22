package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/pawlgo/pawl/state"
)

// appendEntry appends e as a JSON object whose members stand in the order of the struct.
// It is written by hand because every append of every run comes through it.
func appendEntry(b []byte, e *Entry) ([]byte, error) {
	if !e.Kind.known() {
		return b, errors.New("is of the unknown " + e.Kind.String())
	}
	if len(e.Data) > 0 && !isJSON(e.Data) {
		return b, errors.New("has data of kind " + e.Kind.String() + " that is not JSON")
	}
	b = append(b, `{"kind":"`...)
	b = append(b, kindNames[e.Kind]...)
	b = append(b, '"')
	ok := true
	b = appendString(b, `,"path":"`, e.Path, &ok)
	b = appendInt(b, `,"step":`, e.Step)
	b = appendInt(b, `,"attempt":`, e.Attempt)
	b = appendString(b, `,"outcome":"`, e.Outcome, &ok)
	b = appendString(b, `,"id":"`, e.ID, &ok)
	b = appendString(b, `,"post":"`, e.Post, &ok)
	if !ok {
		return b, errors.New("is of kind " + e.Kind.String() + ", and holds a string that is not UTF-8")
	}
	b = appendRaw(b, `,"delta":`, e.Delta)
	b = appendRaw(b, `,"outer":`, e.Outer)
	b = appendRaw(b, `,"data":`, e.Data)
	return append(b, '}'), nil
}

// isJSON reports whether raw is JSON, which is UTF-8: state.Valid lets a string hold any bytes, as
// json.Valid does.
func isJSON(raw []byte) bool { return state.Valid(raw) && utf8.Valid(raw) }

func appendInt(b []byte, member string, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, member...), int64(n), 10)
}

func appendRaw(b []byte, member string, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return b
	}
	return append(append(b, member...), raw...)
}

// appendString appends a member whose opening quote is part of its name. Whatever is
// neither plain nor UTF-8 clears ok, for JSON would silently replace it.
func appendString(b []byte, member, s string, ok *bool) []byte {
	if s == "" {
		return b
	}
	b = append(b, member...)
	if plainEnd(s) == len(s) {
		b = append(b, s...)
		return append(b, '"')
	}
	if !utf8.ValidString(s) {
		*ok = false
	}
	const hex = "0123456789abcdef"
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// plainEnd returns how long the part of s is at its front that is ASCII which JSON does not escape.
func plainEnd[T string | []byte](s T) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

// parseEntry reads one object as appendEntry writes it, and the newline behind it, into
// e, and returns what follows. It takes no other order of members: what the checksum lets
// through was written by appendEntry, or is foreign. RawMessages share the memory of b.
func parseEntry(b []byte, e *Entry) (rest []byte, err error) {
	p := parser{b: b}
	if !p.kind(&e.Kind) {
		return nil, damage("an entry does not begin with a known kind")
	}
	p.string(`,"path":"`, &e.Path)
	p.int(`,"step":`, &e.Step)
	p.int(`,"attempt":`, &e.Attempt)
	p.string(`,"outcome":"`, &e.Outcome)
	p.string(`,"id":"`, &e.ID)
	p.string(`,"post":"`, &e.Post)
	p.raw(`,"delta":`, &e.Delta)
	p.raw(`,"outer":`, &e.Outer)
	p.raw(`,"data":`, &e.Data)
	if !p.has("}\n") || p.bad {
		return nil, damage("an entry can't be read")
	}
	return p.b, nil
}

// A parser takes members off the front of b. A member that is not there is left alone; a
// bad one sets bad, after which nothing more is taken.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) has(text string) bool {
	if p.bad || len(p.b) < len(text) || string(p.b[:len(text)]) != text {
		return false
	}
	p.b = p.b[len(text):]
	return true
}

// member is has for the beginning of a member. Most members are not there, and of nearly all the
// first letter says so.
func (p *parser) member(text string) bool {
	return len(p.b) >= len(text) && p.b[2] == text[2] && p.has(text)
}

func (p *parser) kind(k *Kind) bool {
	switch { // nearly all entries are of these
	case p.has(`{"kind":"done"`):
		*k = Done
		return true
	case p.has(`{"kind":"superstep"`):
		*k = Superstep
		return true
	case !p.has(`{"kind":"`):
		return false
	}
	n := bytes.IndexByte(p.b, '"')
	if n < 0 {
		return false
	}
	*k = kindsByName[string(p.b[:n])]
	p.b = p.b[n+1:]
	return *k != 0
}

func (p *parser) string(member string, s *string) {
	if !p.member(member) {
		return
	}
	if n := plainEnd(p.b); n < len(p.b) && p.b[n] == '"' {
		*s, p.b = string(p.b[:n]), p.b[n+1:]
		return
	}
	n := stringEnd(p.b)
	if n < 0 || !unquote(p.b[:n-1], s) {
		p.bad = true
		return
	}
	p.b = p.b[n:]
}

// unquote decodes the inside of a JSON string that is not plain.
func unquote(text []byte, s *string) bool {
	if !utf8.Valid(text) {
		return false
	}
	quoted := make([]byte, 0, len(text)+2)
	quoted = append(append(append(quoted, '"'), text...), '"')
	var decoded string // s would be allocated by every caller
	if json.Unmarshal(quoted, &decoded) != nil {
		return false
	}
	*s = decoded
	return true
}

// fewDigits is more than the numbers of most entries have, of so many digits that they fit an int.
const fewDigits = 9

func (p *parser) int(member string, n *int) {
	if !p.member(member) {
		return
	}
	v, digits := 0, 0
	for digits < fewDigits && digits < len(p.b) && p.b[digits]-'0' <= 9 {
		v = 10*v + int(p.b[digits]-'0')
		digits++
	}
	if digits > 0 && digits < fewDigits { // as nearly all are
		*n, p.b = v, p.b[digits:]
		return
	}
	for digits = 0; digits < len(p.b) && (p.b[digits] == '-' || p.b[digits]-'0' <= 9); {
		digits++
	}
	v, err := strconv.Atoi(string(p.b[:digits]))
	if err != nil {
		p.bad = true
		return
	}
	*n, p.b = v, p.b[digits:]
}

func (p *parser) raw(member string, raw *json.RawMessage) {
	if !p.member(member) {
		return
	}
	n := valueEnd(p.b)
	if n <= 0 {
		p.bad = true
		return
	}
	*raw, p.b = json.RawMessage(p.b[:n:n]), p.b[n:]
}

// stringEnd returns the index behind the closing quote of a JSON string whose opening
// quote is before b, or -1.
func stringEnd(b []byte) int {
	for i, c := range b[:min(len(b), 16)] { // most are names
		if c == '"' {
			return i + 1
		}
		if c == '\\' {
			break
		}
	}
	for i := 0; ; {
		q := bytes.IndexByte(b[i:], '"')
		if q < 0 {
			return -1
		}
		i += q + 1
		slashes := 0
		for j := i - 2; j >= 0 && b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

// valueEnd returns the index behind the JSON value at the front of b, which stands in an
// object, or a number that is not positive. It only matches brackets and strings: whoever
// uses the value parses it.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringEnd(b[i+1:])
			if n < 0 {
				return -1
			}
			i += n
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}
