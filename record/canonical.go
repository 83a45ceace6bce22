package record

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// hashDomain stands before what is hashed, so that the hash of a record is the hash of nothing
// else, nor of a record of another schema.
const hashDomain = "pawl record " + SchemaVersion + "\x00"

// Encode returns the record as canonical JSON (RFC 8785): equal records have equal bytes. The
// error is an [*InvalidError].
func (r *Record) Encode() ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	return r.canonical()
}

// canonical is Encode without Check.
func (r *Record) canonical() ([]byte, error) {
	data, err := json.Marshal(cloned(r))
	if err != nil {
		return nil, r.invalid(err.Error())
	}
	data, err = jcs.Transform(data)
	if err != nil {
		return nil, r.invalid(noForm)
	}
	return data, nil
}

// Hash returns what ContentHash has to be: the SHA-256, in hexadecimal, of the record's
// canonical JSON with an empty contentHash, behind a prefix that names the schema. The hash of the
// parent is part of what is hashed. The error is an [*InvalidError].
func (r *Record) Hash() (string, error) {
	if r == nil {
		return "", r.Check()
	}
	c := *r
	c.ContentHash = ""
	data, err := c.canonical()
	if err != nil {
		return "", err
	}
	return c.hashOf(data), nil
}

// hashOf is the hash of the record whose canonical JSON that is. No string and no other member
// before it can look like the member contentHash.
func (r *Record) hashOf(canonical []byte) string {
	const name = `"contentHash":"`
	before, after, _ := bytes.Cut(canonical, []byte(name+r.ContentHash))
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(hashDomain), before, []byte(name), after} {
		sum.Write(part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Seal sets the schema version and ContentHash. The error is an [*InvalidError], and then r is
// as it was.
func (r *Record) Seal() error {
	if r == nil {
		return r.Check()
	}
	c := r.Clone()
	c.Version, c.ContentHash = SchemaVersion, ""
	data, err := c.Encode()
	if err != nil {
		return err
	}
	c.ContentHash = c.hashOf(data)
	*r = *c
	return nil
}

// Decode reads a record that was sealed, in canonical form or any other of the same JSON. What
// it does not know it refuses, for the hash would not be that of what it returns. The error is
// an [*InvalidError], also if the content is not that of the hash.
func Decode(data []byte) (*Record, error) {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return nil, (*Record)(nil).invalid("it is empty")
	case !utf8.Valid(data):
		return nil, (*Record)(nil).invalid("it is no UTF-8")
	case !json.Valid(data):
		return nil, (*Record)(nil).invalid(unreadable(data))
	}
	canonical, err := jcs.Transform(data)
	if err != nil {
		return nil, (*Record)(nil).invalid(noForm)
	}
	return decodeStored(canonical)
}

// noForm is said of JSON that is none of RFC 8785, which takes no other reasons.
const noForm = "it has no canonical form (RFC 8785): a member is there twice, a number is too large, or a character is half of one"

// unreadable says why data is no JSON of a record.
func unreadable(data []byte) string {
	switch err := json.NewDecoder(bytes.NewReader(data)).Decode(new(json.RawMessage)); {
	case errors.Is(err, io.EOF):
		return "it is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it is JSON that was cut off"
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch err := json.Unmarshal(data, new(Record)); {
	case errors.As(err, &syntax):
		return fmt.Sprintf("it is no JSON from byte %d on", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Sprintf("member %s can't be a %s", cmp.Or(kind.Field, "(the whole)"), kind.Value)
	case err != nil:
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	return ""
}

// decodeStored is Decode for canonical JSON alone, of which every byte counts.
func decodeStored(data []byte) (*Record, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	r := new(Record)
	if err := d.Decode(r); err != nil {
		return nil, (*Record)(nil).invalid(cmp.Or(unreadable(data), strings.TrimPrefix(err.Error(), "json: ")))
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	canonical, err := r.canonical()
	switch {
	case err != nil:
		return nil, err
	case !bytes.Equal(canonical, data):
		return nil, r.invalid("members are missing, null, empty where they can be left out, or written otherwise")
	case r.hashOf(canonical) != r.ContentHash:
		return nil, r.invalid("its content is not that of its contentHash")
	}
	return r, nil
}

// authentic reports whether the content is that of ContentHash.
func (r *Record) authentic() bool {
	hash, err := r.Hash()
	return err == nil && hash == r.ContentHash
}

// settled is JSON in canonical form; what has none, for [Record.Check] to tell, stays as it is.
func settled(data json.RawMessage) json.RawMessage {
	if len(data) == 0 || inexact(data) != "" {
		return data
	}
	canonical, err := jcs.Transform(data)
	if err != nil {
		return data
	}
	return canonical
}

// exactly returns JSON that has a canonical form: that has numbers of IEEE 754 only, so what has
// more digits becomes a string. Of a member that is there twice the last one counts, and half a
// character becomes U+FFFD, as for package json.
func exactly(data json.RawMessage) json.RawMessage {
	if _, err := jcs.Transform(data); err == nil && inexact(data) == "" {
		return data
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return data
	}
	out, err := json.Marshal(quoted(v))
	if err != nil {
		return data
	}
	return out
}

func quoted(v any) any {
	switch v := v.(type) {
	case json.Number:
		if !exact(v.String()) {
			return v.String()
		}
	case []any:
		for i := range v {
			v[i] = quoted(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = quoted(v[k])
		}
	}
	return v
}

// inexact returns a number in the JSON that IEEE 754 would change, "" if there is none.
func inexact(data json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil {
			return ""
		}
		if n, ok := t.(json.Number); ok && !exact(n.String()) {
			return n.String()
		}
	}
}

// exact reports whether a double is that number. What has so few digits is meant as the double
// that prints like it.
func exact(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	digits, power := decimal(number)
	shown, by := decimal(strconv.FormatFloat(f, 'e', -1, 64))
	return digits == shown && power == by
}

// decimal is what equal decimal numbers have in common, the sign apart: their digits without the
// zeros at both ends, and the power of ten behind the last one. It takes no longer than it takes to
// read.
func decimal(number string) (digits string, power int) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	power, err := strconv.Atoi(cmp.Or(exponent, "0"))
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	power -= len(fraction)
	power += len(digits)
	digits = strings.TrimRight(digits, "0")
	power -= len(digits)
	if digits == "" || err != nil { // of a power as large as that a double has nothing but 0
		power = 0
	}
	return digits, power
}
