package dispatcher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// What is said of every question, and of every answer, is written by hand: it is what encode makes of it,
// in a fraction of the time.

// An object is a JSON object to which members are added. What is empty is left out.
type object []byte

func (o object) name(name string) object {
	if len(o) == 0 {
		o = append(o, '{')
	} else {
		o = append(o, ',')
	}
	return append(append(append(o, '"'), name...), `":`...)
}

func (o object) end() json.RawMessage { return append(json.RawMessage(o), '}') }

func (o object) text(name, text string) object {
	if text == "" {
		return o
	}
	o = o.name(name)
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
		return append(o, encode(text)...)
	}
	return append(append(append(o, '"'), text...), '"')
}

func (o object) raw(name string, raw json.RawMessage) object {
	if len(raw) == 0 {
		return o
	}
	o = o.name(name)
	if bytes.ContainsAny(raw, " \t\r\n") {
		return append(o, encode(raw)...)
	}
	return append(o, raw...)
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
	if a.Unfollowed {
		o = append(o.name("unfollowed"), "true"...)
	}
	return o.end()
}

// parse is json.Unmarshal, in a fraction of the time for what plain reads by hand.
func parse[T any](data []byte, plain func(data []byte) (x T, ok bool)) (T, error) {
	if x, ok := plain(data); ok {
		return x, nil
	}
	var x T
	err := json.Unmarshal(data, &x)
	return x, err
}

// plainOpening reads an opening without labels and settings, of a run that is no fork.
func plainOpening(data []byte) (o checkpoint.Opening, ok bool) {
	m := members(data)
	o.Graph = string(m.text(`{"graph":"`))
	o.Digest = string(m.text(`,"digest":"`))
	o.Correlation = string(m.text(`,"correlation":"`))
	return o, o.Graph != "" && string(m) == "}"
}

// plainInterrupt reads a question that is a value without parts, and wants one.
func plainInterrupt(data []byte) (i checkpoint.Interrupt, ok bool) {
	m := members(data)
	i.Kind = string(m.text(`{"kind":"`))
	i.Key = string(m.text(`,"key":"`))
	i.Question = m.scalar(`,"question":`)
	if kind := m.text(`,"want":{"kind":"`); kind != nil {
		i.Want = fmt.Appendf(nil, `{"kind":"%s"}`, kind)
		m = bytes.TrimPrefix(m, []byte("}"))
	}
	return i, i.Kind != "" && string(m) == "}"
}

// plainType reads a type without parts.
func plainType(data []byte) (t state.Type, ok bool) {
	m := members(data)
	t.Kind = string(m.text(`{"kind":"`))
	return t, t.Kind != "" && string(m) == "}"
}

// plainAnswer reads an answer that is a value without parts, with texts that need no escapes.
func plainAnswer(data []byte) (a checkpoint.Answer, ok bool) {
	m := members(data)
	a.Value = m.scalar(`{"value":`)
	a.How = string(m.text(`,"how":"`))
	a.By = string(m.text(`,"by":"`))
	at := m.text(`,"at":"`)
	a.Reason = string(m.text(`,"reason":"`))
	a.Message = string(m.text(`,"message":"`))
	ok = len(a.Value) > 0 && string(m) == "}" && a.At.UnmarshalText(at) == nil
	return a, ok
}

// members are what is left of an object. What is not there, or not plain, is nothing, and stays.
type members []byte

// text takes a text, whose opening quote is part of its name.
func (m *members) text(name string) []byte {
	rest, ok := bytes.CutPrefix(*m, []byte(name))
	n := bytes.IndexByte(rest, '"')
	if !ok || n < 0 || bytes.ContainsFunc(rest[:n], func(c rune) bool { return c < ' ' || c > '~' || c == '\\' }) {
		return nil
	}
	*m = members(rest[n+1:])
	return rest[:n]
}

// scalar takes a copy of a value that is no list, no object and not null.
func (m *members) scalar(name string) json.RawMessage {
	if text := m.text(name + `"`); text != nil {
		return append(append(append(make(json.RawMessage, 0, len(text)+2), '"'), text...), '"')
	}
	rest, ok := bytes.CutPrefix(*m, []byte(name))
	n := bytes.IndexByte(rest, ',')
	if !ok || n <= 0 || !bytes.ContainsAny(rest[:1], "-0123456789tf") || rest[n-1] <= ' ' || !json.Valid(rest[:n]) {
		return nil
	}
	*m = members(rest[n:])
	return bytes.Clone(rest[:n])
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
	return append(o, ']').text("by", a.By).text("reason", a.Reason).text("message", a.Message).end()
}

func encodeInterrupt(i *checkpoint.Interrupt) json.RawMessage {
	if !i.Until.IsZero() || i.Wait != 0 {
		return encode(i)
	}
	o := make(object, 0, objectSize+len(i.Question)).text("kind", i.Kind).text("key", i.Key)
	o = o.raw("question", i.Question).raw("want", i.Want).raw("default", i.Default).raw("about", i.About)
	return o.text("by", i.By).text("reason", i.Reason).end()
}

func encodeType(t *state.Type) json.RawMessage {
	if t.Name != "" || t.Len != 0 || t.Up != 0 || t.Key != nil || t.Elem != nil || t.Fields != nil {
		return encode(t)
	}
	return make(object, 0, len(t.Kind)+len(`{"kind":""}`)).text("kind", t.Kind).end()
}
