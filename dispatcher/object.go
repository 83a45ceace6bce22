package dispatcher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/internal/byhand"
	"github.com/pawlgo/pawl/state"
)

// What is said of every question, of every answer and of every effect is written by hand: it is
// what encode makes of it, in a fraction of the time.

// An object is a JSON object to which members are added. What is empty text, number, yes and raw
// leave out.
type object []byte

func (o object) name(name string) object {
	switch {
	case len(o) == 0:
		o = append(o, '{')
	case o[len(o)-1] != '{': // else it is the first one of an object in it
		o = append(o, ',')
	}
	return append(append(append(o, '"'), name...), `":`...)
}

func (o object) end() json.RawMessage {
	if len(o) == 0 {
		o = append(o, '{')
	}
	return append(json.RawMessage(o), '}')
}

func (o object) text(name, text string) object {
	if text == "" {
		return o
	}
	return o.name(name).quoted(text)
}

// quoted appends a text as a value.
func (o object) quoted(text string) object {
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
		return append(o, encode(text)...)
	}
	return append(append(append(o, '"'), text...), '"')
}

func (o object) number(name string, n int64) object {
	if n == 0 {
		return o
	}
	return strconv.AppendInt(o.name(name), n, 10)
}

func (o object) yes(name string, is bool) object {
	if !is {
		return o
	}
	return append(o.name(name), "true"...)
}

func (o object) raw(name string, raw json.RawMessage) object {
	if len(raw) == 0 {
		return o
	}
	o = o.name(name)
	if spaced(raw) {
		return append(o, encode(raw)...)
	}
	return append(o, raw...)
}

// spaced reports whether raw, which is JSON, has space between its values.
func spaced(raw []byte) bool {
	text := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			text = !text
		case c == '\\':
			i++ // and what it escapes
		case !text && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			return true
		}
	}
	return false
}

func (o object) at(name string, at time.Time) object {
	o, err := at.AppendText(append(o.name(name), '"'))
	if err != nil {
		panic("dispatcher: " + err.Error())
	}
	return append(o, '"')
}

// objectSize is the memory with which an object begins.
const objectSize = 128

func encodeAnswer(a *checkpoint.Answer) json.RawMessage {
	o := make(object, 0, objectSize+len(a.Value)).raw("value", a.Value)
	o = o.text("how", a.How).text("by", a.By).at("at", a.At).text("reason", a.Reason).text("message", a.Message)
	return o.yes("unfollowed", a.Unfollowed).end()
}

// parse is json.Unmarshal, in a fraction of the time for what is read by hand.
func parse[T any](data []byte, byHand func(data []byte) (x T, ok bool)) (T, error) {
	if x, ok := byHand(data); ok {
		return x, nil
	}
	var x T
	err := json.Unmarshal(data, &x)
	return x, err
}

// plainOpening reads an opening without settings, of a run that is no fork.
func plainOpening(data []byte) (o checkpoint.Opening, ok bool) {
	o.Graph, o.Digest, o.Labels, o.Correlation, ok = byhand.Opening(data)
	return o, ok
}

// plainInterrupt reads a question that is a value without parts, and wants one.
func plainInterrupt(data []byte) (i checkpoint.Interrupt, ok bool) {
	m := byhand.Members(data)
	i.Kind = string(m.Text(`{"kind":"`))
	i.Key = string(m.Text(`,"key":"`))
	i.Question = m.Scalar(`,"question":`)
	if kind := m.Text(`,"want":{"kind":"`); kind != nil {
		i.Want = fmt.Appendf(nil, `{"kind":"%s"}`, kind)
		m = bytes.TrimPrefix(m, []byte("}"))
	}
	return i, i.Kind != "" && string(m) == "}"
}

// plainType reads a type without parts.
func plainType(data []byte) (t state.Type, ok bool) {
	m := byhand.Members(data)
	t.Kind = string(m.Text(`{"kind":"`))
	return t, t.Kind != "" && string(m) == "}"
}

// plainAnswer reads an answer that is a value without parts, with texts that need no escapes.
func plainAnswer(data []byte) (a checkpoint.Answer, ok bool) {
	m := byhand.Members(data)
	a.Value = m.Scalar(`{"value":`)
	a.How = string(m.Text(`,"how":"`))
	a.By = string(m.Text(`,"by":"`))
	at := m.Text(`,"at":"`)
	a.Reason = string(m.Text(`,"reason":"`))
	a.Message = string(m.Text(`,"message":"`))
	ok = len(a.Value) > 0 && string(m) == "}" && a.At.UnmarshalText(at) == nil
	return a, ok
}

func (a *postedAnswers) encode() json.RawMessage {
	o := append(make(object, 0, objectSize*len(a.Replies)).name("replies"), '[')
	for i, x := range a.Replies {
		if i > 0 {
			o = append(o, ',')
		}
		one := make(object, 0, objectSize).text("interrupt", x.Interrupt).text("how", x.How).raw("value", x.Value)
		o = append(o, one.end()...)
	}
	o = append(o, ']').text("by", a.By).text("reason", a.Reason).text("message", a.Message)
	if !a.At.IsZero() {
		o = o.at("at", a.At)
	}
	return o.end()
}

func encodeInterrupt(i *checkpoint.Interrupt) json.RawMessage {
	if !i.Until.IsZero() || i.Wait != 0 {
		return encode(i)
	}
	o := make(object, 0, objectSize+len(i.Question)).text("kind", i.Kind).text("key", i.Key)
	o = o.raw("question", i.Question).raw("want", i.Want).raw("default", i.Default).raw("about", i.About)
	return o.text("by", i.By).text("reason", i.Reason).end()
}
