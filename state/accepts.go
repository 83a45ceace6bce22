package state

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Accepts returns nil if raw is the JSON of a value of this type, and else what is wrong. It is
// stricter than encoding/json: kinds have to agree, integers to be integers in range, arrays to
// have their length, and objects to have no unknown or repeated members. null is accepted only
// where Go has nil. Half a character, such as \ud800, is text and is read as U+FFFD, as
// encoding/json has it. Types with their own marshaller accept any JSON. What one version of this
// package accepts all do.
func (t Type) Accepts(raw []byte) error { return t.look(raw, false) }

// Decodes is Accepts for new values: of time.Time, json.Number, and the types of math/big and
// net/netip it accepts only what they can decode, but it does not look at keys of maps that are of
// these types. Keys that are integers have to be written as Go writes them. Later versions may know
// more types.
func (t Type) Decodes(raw []byte) error { return t.look(raw, true) }

func (t Type) look(raw []byte, closely bool) error {
	if !t.valid(0, 0) {
		return fmt.Errorf("state: %w: %s", errType, t)
	}
	a := acceptor{scanner: scanner{b: raw}, closely: closely}
	if wordSize[t.Kind] > 0 && t.Kind != "bytes" {
		a.takeScalar(t.Kind)
	} else {
		whole := t // else t would be allocated, of whatever kind it is
		a.take(&whole)
	}
	a.end()
	if a.err != nil {
		return fmt.Errorf("state: %s is no %s%s: %w", preview(raw), t, a.where(), a.err)
	}
	return nil
}

// preview is as much of a value as an error shows.
func preview(raw []byte) []byte {
	if len(raw) <= 40 {
		return raw
	}
	return append(append([]byte(nil), raw[:40]...), "…"...)
}

// An acceptor walks JSON along a type.
type acceptor struct {
	scanner
	closely bool    // decode what is known
	around  []*Type // the types that are open, outermost first
	path    []step  // to the value being read
}

// A step leads into a value. Only errors make a text of it.
type step struct {
	kind  string // of the value
	name  string // of a member, or of a key
	index int    // of an element
}

func (s step) String() string {
	switch s.kind {
	case "object":
		return "." + s.name
	case "map":
		return fmt.Sprintf("[%q]", s.name)
	}
	return fmt.Sprintf("[%d]", s.index)
}

func (a *acceptor) where() string {
	if len(a.path) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString(" at ")
	for _, s := range a.path {
		text.WriteString(s.String())
	}
	return text.String()
}

// in takes a member or element.
func (a *acceptor) in(to step, t *Type) {
	a.path = append(a.path, to)
	if a.take(t); a.err == nil {
		a.path = a.path[:len(a.path)-1]
	}
}

func (a *acceptor) want(what string) {
	if a.err == nil {
		a.fail(fmt.Errorf("want %s", what))
	}
}

func (a *acceptor) take(t *Type) {
	if a.err != nil {
		return
	}
	if t.Kind == "ref" {
		outer := a.around
		i := len(outer) - t.Up
		a.around = outer[:i:i]
		a.take(outer[i])
		a.around = outer
		return
	}
	a.around = append(a.around, t)
	a.takeKind(t)
	a.around = a.around[:len(a.around)-1]
}

func (a *acceptor) takeKind(t *Type) {
	c := a.peek()
	if c == 'n' && (t.Kind == "list" || t.Kind == "map" || t.Kind == "pointer" || t.Kind == "bytes") {
		a.value()
		return
	}
	switch t.Kind {
	case "own":
		a.takeOwn(t.Name)
	case "pointer":
		a.take(t.Elem)
	case "list", "array":
		a.takeList(t)
	case "map":
		a.takeMap(t)
	case "object":
		a.takeObject(t)
	default:
		a.takeScalar(t.Kind)
	}
}

// known decode types with their own marshaller that are described by their names alone and known to
// every process.
var known = map[string]func(raw []byte) error{
	"time.Time":            decodes[time.Time],
	"encoding/json.Number": decodes[json.Number],
	"math/big.Int":         decodes[big.Int],
	"math/big.Rat":         decodes[big.Rat],
	"math/big.Float":       decodes[big.Float],
	"net/netip.Addr":       decodes[netip.Addr],
	"net/netip.AddrPort":   decodes[netip.AddrPort],
	"net/netip.Prefix":     decodes[netip.Prefix],
}

func decodes[T any](raw []byte) error { return json.Unmarshal(raw, new(T)) }

func (a *acceptor) takeOwn(name string) {
	decode := known[name]
	if decode == nil || !a.closely {
		a.value()
		return
	}
	if raw := a.raw(); a.err == nil {
		a.check(decode(raw))
	}
}

func (a *acceptor) takeList(t *Type) {
	if a.peek() != '[' {
		a.want("an array")
		return
	}
	n := 0
	for a.open('['); a.more(']'); n++ {
		a.in(step{kind: t.Kind, index: n}, t.Elem)
	}
	if t.Kind == "array" && n != t.Len {
		a.want(fmt.Sprintf("%d elements", t.Len))
	}
}

func (a *acceptor) takeMap(t *Type) {
	if a.peek() != '{' {
		a.want("an object")
		return
	}
	seen := map[string]bool{}
	for a.open('{'); a.more('}'); {
		k := a.key()
		if a.err == nil && t.Key.Kind != "string" && t.Key.Kind != "own" {
			err := scalar(t.Key.Kind, bytesOf(k))
			if err == nil && a.closely && (k == "-0" || !isNumber(k)) { // "007", which a Map does not find under 7
				err = errors.New("want the number as Go writes it")
			}
			if err != nil {
				a.fail(fmt.Errorf("key %q: %w", k, err))
			}
		}
		a.once(seen, k)
		a.in(step{kind: t.Kind, name: k}, t.Elem)
	}
}

func (a *acceptor) once(seen map[string]bool, k string) {
	if seen[k] {
		a.fail(fmt.Errorf("%q stands twice", k))
	}
	seen[k] = true
}

func (a *acceptor) takeObject(t *Type) {
	if a.peek() != '{' {
		a.want("an object")
		return
	}
	seen := map[string]bool{}
	for a.open('{'); a.more('}'); {
		k := a.key()
		if a.err != nil {
			return
		}
		a.once(seen, k)
		f := t.field(k)
		if f == nil {
			a.fail(fmt.Errorf("unknown member %q", k))
			return
		}
		if f.Quoted {
			a.takeQuoted(&f.Type)
		} else {
			a.in(step{kind: t.Kind, name: k}, &f.Type)
		}
	}
}

func (t *Type) field(name string) *Field {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return &t.Fields[i]
		}
	}
	return nil
}

// takeQuoted takes a value that the option ",string" put into a string.
func (a *acceptor) takeQuoted(t *Type) {
	for t.Kind == "pointer" {
		if t = t.Elem; a.peek() == 'n' {
			a.value()
			return
		}
	}
	raw := a.raw()
	var in string
	if a.err != nil || json.Unmarshal(raw, &in) != nil {
		a.want("a string")
		return
	}
	switch {
	case t.Kind != "own":
		a.check(scalar(t.Kind, []byte(in)))
	case a.closely: // a json.Number: no other type with its own marshaller is quoted
		a.check(decodes[json.Number]([]byte(in)))
		return
	}
	switch { // what encoding/json can't decode
	case !a.closely:
	case strings.HasPrefix(t.Kind, "float") && !isNumber(in): // NaN
		a.want("a number")
	case t.Kind == "string" && !isText(in): // one quote alone
		a.want("a string in a string")
	}
}

// isNumber reports whether s is a number in JSON.
func isNumber(s string) bool {
	n := scanner{b: bytesOf(s)}
	n.number()
	n.end()
	return n.err == nil
}

// isText reports whether s, which begins with a quote, is a string in JSON.
func isText(s string) bool {
	t := scanner{b: bytesOf(s)}
	t.str()
	return t.err == nil && t.i == len(s)
}

func (a *acceptor) check(err error) {
	if err != nil {
		a.fail(err)
	}
}

func (a *acceptor) takeScalar(kind string) {
	if raw := a.raw(); a.err == nil {
		a.check(scalar(kind, raw))
	}
}

var errBase64 = errors.New("want a string in base64")

// scalar says whether raw is the JSON of a value of a kind without parts.
func scalar(kind string, raw []byte) error {
	first := byte(0)
	if len(raw) > 0 {
		first = raw[0]
	}
	var err error
	switch {
	case kind == "bool":
		if s := string(raw); s != "true" && s != "false" {
			err = errors.New("want true or false")
		}
	case kind == "string":
		if first != '"' {
			err = errors.New("want a string")
		}
	case kind == "bytes":
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return errBase64
		}
		if _, bad := base64.StdEncoding.DecodeString(s); bad != nil {
			err = errBase64
		}
	case first == '+' || first == '"':
		err = fmt.Errorf("want %s", kind)
	case strings.HasPrefix(kind, "float"):
		_, err = strconv.ParseFloat(string(raw), wordSize[kind])
		err = numberFault(err, kind, "want a number")
	case strings.HasPrefix(kind, "uint"):
		_, err = strconv.ParseUint(string(raw), 10, wordSize[kind])
		err = numberFault(err, kind, "want a whole number that is not negative")
	case strings.HasPrefix(kind, "int"):
		_, err = strconv.ParseInt(string(raw), 10, wordSize[kind])
		err = numberFault(err, kind, "want a whole number")
	default:
		err = errType
	}
	return err
}

// numberFault says in the words of this package why a text is no number of a kind.
func numberFault(err error, kind, want string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("it is out of the range of %s", kind)
	}
	return errors.New(want)
}
