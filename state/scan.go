package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may be nested in a value that is written: so deep that no
// data of people meets it, and so far from the 10,000 that encoding/json reads that what a log and
// a snapshot put round a value never reaches these.
const MaxDepth = 1000

// maxDepth is how deep encoding/json reads nested values.
const maxDepth = 10000

var (
	errSyntax   = errors.New("invalid JSON")
	errTrailing = errors.New("something follows the JSON value")
)

// A scanner walks JSON and checks its syntax. The first error stays in err, after which
// nothing moves, so callers need to look only at the end of what they read.
type scanner struct {
	b      []byte
	i      int
	err    error
	depth  int
	fresh  bool // an object or array was just opened
	spaced bool // insignificant space was passed
	fffd   bool // a \ufffd was passed
	sealed bool // it was checked before, and is as it was then
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// peek returns the next byte that is no space, or 0.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
			s.spaced = true
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte) {
	if s.err != nil {
		return
	}
	if s.peek() != c {
		s.fail(errSyntax)
		return
	}
	s.i++
}

// open enters an object or array; follow it with a loop over more.
func (s *scanner) open(c byte) {
	s.expect(c)
	s.fresh = true
	if s.depth++; s.depth > maxDepth {
		s.fail(ErrDepth)
	}
}

// more reports whether another member follows before the closing c, which it takes.
func (s *scanner) more(c byte) bool {
	if s.err != nil {
		return false
	}
	fresh := s.fresh
	s.fresh = false
	if s.peek() == c {
		s.i++
		s.depth--
		return false
	}
	if !fresh {
		s.expect(',')
	}
	return s.err == nil
}

// label takes the name of a member as it is mostly written, quotes and colon included, if it
// follows.
func (s *scanner) label(name string) bool {
	if s.err != nil || s.peek() == 0 || len(s.b)-s.i < len(name) || string(s.b[s.i:s.i+len(name)]) != name {
		return false
	}
	s.i += len(name)
	return true
}

// key takes the name of an object's member and the colon. It may share memory with the
// input.
func (s *scanner) key() string {
	if s.peek() != '"' {
		s.fail(errSyntax)
		return ""
	}
	start := s.i
	s.str()
	if s.err != nil {
		return ""
	}
	raw := s.b[start:s.i]
	s.expect(':')
	return unquote(raw)
}

func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return text(raw[1 : len(raw)-1])
	}
	var k string
	if err := json.Unmarshal(raw, &k); err != nil {
		return strings.ToValidUTF8(string(raw), "\ufffd")
	}
	return k
}

// raw takes a value and returns it without insignificant space; it may share memory with
// the input.
func (s *scanner) raw() []byte {
	if s.err != nil {
		return nil
	}
	s.peek()
	start := s.i
	s.spaced = false
	s.value()
	if s.err != nil {
		return nil
	}
	raw := s.b[start:s.i:s.i]
	if !s.spaced {
		return raw
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		s.fail(err)
		return nil
	}
	return bytes.Clone(out.Bytes())
}

// end reports that the input ends here.
func (s *scanner) end() {
	if s.err == nil && (s.peek() != 0 || s.i < len(s.b)) {
		s.fail(errTrailing)
	}
}

// value passes one value.
func (s *scanner) value() {
	if s.err != nil {
		return
	}
	switch c := s.peek(); {
	case c == '"':
		s.str()
	case c == '{':
		for s.open('{'); s.more('}'); s.value() {
			s.name()
		}
	case c == '[':
		for s.open('['); s.more(']'); {
			s.value()
		}
	case c == '-' || c >= '0' && c <= '9':
		s.number()
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	default:
		s.fail(errSyntax)
	}
}

// distinct passes one value, and refuses objects with two members of one name.
func (s *scanner) distinct() {
	switch s.peek() {
	case '{':
		seen := map[string]bool{}
		for s.open('{'); s.more('}'); s.distinct() {
			name := s.key()
			if seen[name] {
				s.fail(fmt.Errorf("two of the keys are %q", name))
			}
			seen[name] = true
		}
	case '[':
		for s.open('['); s.more(']'); {
			s.distinct()
		}
	default:
		s.value()
	}
}

func (s *scanner) name() {
	if s.peek() != '"' {
		s.fail(errSyntax)
		return
	}
	s.str()
	s.expect(':')
}

func (s *scanner) word(w string) {
	if !bytes.HasPrefix(s.b[s.i:], bytesOf(w)) {
		s.fail(errSyntax)
		return
	}
	s.i += len(w)
}

func (s *scanner) digits() {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	if s.i == start {
		s.fail(errSyntax)
	}
}

func (s *scanner) at(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }

func (s *scanner) number() {
	if s.at('-') {
		s.i++
	}
	if s.at('0') {
		s.i++
	} else {
		s.digits()
	}
	if s.at('.') {
		s.i++
		s.digits()
	}
	if s.at('e') || s.at('E') {
		s.i++
		if s.at('+') || s.at('-') {
			s.i++
		}
		s.digits()
	}
}

// str passes a string; the next byte is its opening quote.
func (s *scanner) str() {
	if s.err != nil {
		return
	}
	s.i++
	if s.sealed && s.plain() {
		return
	}
	start, ascii := s.i, true
	for {
		s.i = skipClean(s.b, s.i)
		if s.i >= len(s.b) {
			s.fail(errSyntax)
			return
		}
		switch c := s.b[s.i]; {
		case c == '"':
			if !ascii && !utf8.Valid(s.b[start:s.i]) {
				s.fail(ErrUTF8)
			}
			s.i++
			return
		case c == '\\':
			s.escape()
		case c < 0x20:
			s.fail(errSyntax)
		default:
			ascii = false
			s.i = skipText(s.b, s.i)
		}
		if s.err != nil {
			return
		}
	}
}

// plain passes the rest of a string of sealed JSON by its first quote, unless a backslash is right
// before that.
func (s *scanner) plain() bool {
	n := bytes.IndexByte(s.b[s.i:], '"')
	if n < 0 || n > 0 && s.b[s.i+n-1] == '\\' {
		return false
	}
	s.i += n + 1
	return true
}

// escape passes a backslash and what it stands for.
func (s *scanner) escape() {
	s.i++
	if s.i >= len(s.b) {
		s.fail(errSyntax)
		return
	}
	c := s.b[s.i]
	s.i++
	if c != 'u' {
		if strings.IndexByte(`"\/bfnrt`, c) < 0 {
			s.fail(errSyntax)
		}
		return
	}
	if s.i+4 > len(s.b) {
		s.fail(errSyntax)
		return
	}
	for _, h := range s.b[s.i : s.i+4] {
		if (h < '0' || h > '9') && (h|0x20 < 'a' || h|0x20 > 'f') {
			s.fail(errSyntax)
		}
	}
	s.fffd = s.fffd || bytes.EqualFold(s.b[s.i:s.i+4], []byte("fffd"))
	s.i += 4
}

// Valid is json.Valid, in a third of the time for JSON that is plain and valid. For whoever keeps
// JSON beside cells.
func Valid(raw []byte) bool {
	s := scanner{b: raw}
	s.value()
	s.end()
	return s.err == nil || json.Valid(raw)
}

// TooDeep reports whether JSON is nested deeper than [MaxDepth]. It does not check syntax.
func TooDeep(raw []byte) bool {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '[', '{':
			if depth++; depth > MaxDepth {
				return true
			}
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		}
	}
	return false
}
