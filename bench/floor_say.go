package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// say appends what a superstep says that sets a text.
func say(to []byte, step int, wrote string) ([]byte, error) {
	to, err := quoted(append(done(to, step), `{"Title":{"set":`...), wrote)
	return ended(append(to, "}}"...), step), err
}

// sayNote is say of one that appends a text to a list.
func sayNote(to []byte, step int, wrote string) ([]byte, error) {
	to, err := quoted(append(done(to, step), `{"Notes":{"append":[`...), wrote)
	return ended(append(to, "]}}"...), step), err
}

// sayCount is say of one that adds a number.
func sayCount(to []byte, step, adds int) []byte {
	to = strconv.AppendInt(append(done(to, step), `{"Count":{"add":`...), int64(adds), 10)
	return ended(append(to, "}}"...), step)
}

// done appends that a node is done, up to what it wrote.
func done(to []byte, step int) []byte {
	to = strconv.AppendInt(append(to, `{"kind":"done","path":"node-`...), int64(step), 10)
	to = strconv.AppendInt(append(to, `","step":`...), int64(step), 10)
	return append(to, `,"delta":`...)
}

// ended appends what is behind that, and that the superstep has ended.
func ended(to []byte, step int) []byte {
	return append(strconv.AppendInt(append(to, `}{"kind":"superstep","step":`...), int64(step), 10), '}')
}

// sayStands returns where a run stands: the state, and a bit for each node that is done.
func sayStands(state string, done []uint64) ([]byte, error) {
	to, err := quoted(append(make([]byte, 0, len(state)+21*len(done)+32), `{"State":`...), state)
	return append(list(append(to, `,"Done":`...), done), '}'), err
}

// list appends a list of numbers, of one at least.
func list(to []byte, numbers []uint64) []byte {
	before := byte('[')
	for _, n := range numbers {
		to, before = strconv.AppendUint(append(to, before), n, 10), ','
	}
	return append(to, ']')
}

// quoted appends a text as a string of JSON. The text is ASCII, and JSON as it is.
func quoted(to []byte, text string) ([]byte, error) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	to = append(append(to, '"'), text...)
	rest := to[len(to)-len(text):]
	var marks uint64 // the highest bit of a byte that a string can't hold as it is, and maybe of some behind it
	for ; len(rest) >= 8; rest = rest[8:] {
		x := binary.LittleEndian.Uint64(rest)
		marks |= x | (x - ones*' ') | ((x ^ ones*'"') - ones) | ((x ^ ones*'\\') - ones)
	}
	bad := marks&highs != 0
	for _, c := range rest {
		bad = bad || c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\'
	}
	if bad {
		return to, errors.New("this text would have to be escaped")
	}
	return append(to, '"'), nil
}

// A clerk says supersteps that set a struct. Its type is the user's, so its JSON is that of
// encoding/json, as it is without HTML escapes.
type clerk struct {
	text bytes.Buffer
	json *json.Encoder
}

func newClerk() *clerk {
	c := new(clerk)
	c.json = json.NewEncoder(&c.text)
	c.json.SetEscapeHTML(false)
	return c
}

// say returns what such a superstep says, which is valid until the next one.
func (c *clerk) say(step int, sets any) ([]byte, error) {
	c.text.Reset()
	c.text.Write(append(done(c.text.AvailableBuffer(), step), `{"Page":{"set":`...))
	err := c.json.Encode(sets)
	c.text.Write(ended(append(c.text.AvailableBuffer(), "}}"...), step))
	return c.text.Bytes(), err
}
