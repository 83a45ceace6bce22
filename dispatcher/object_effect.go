package dispatcher

import (
	"encoding/json"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// encodeBegun encodes e, which has an input.
func encodeBegun(e *checkpoint.BegunEffect) json.RawMessage {
	o := make(object, 0, 2*objectSize+len(e.Input)+len(e.Output)).raw("input", e.Input)
	o = o.name("digest").quoted(e.Digest).raw("output", e.Output).at("at", e.At).text("approval", e.Approval)
	o = o.text("operation", e.Operation)
	if len(e.Touches) > 0 {
		o = append(o.name("touches"), '[')
		for i, what := range e.Touches {
			if i > 0 {
				o = append(o, ',')
			}
			o = o.quoted(what)
		}
		o = append(o, ']')
	}
	o = o.text("access", e.Access).yes("replayable", e.Replayable).yes("reversible", e.Reversible)
	return o.text("doubt", e.Doubt).end()
}

func encodeEnded(e *checkpoint.EndedEffect) json.RawMessage {
	o := make(object, 0, objectSize+len(e.Output)).raw("output", e.Output).text("not_done", e.NotDone).text("lost", e.Lost)
	o = o.number("took", int64(e.Took)).text("reused", e.Reused).yes("resolved", e.Resolved)
	return o.text("by", e.By).text("interrupt", e.Interrupt).end()
}

func encodeType(t *state.Type) json.RawMessage {
	return make(object, 0, objectSize).typeOf(t).end()
}

// typeOf adds the members of a type.
func (o object) typeOf(t *state.Type) object {
	o = o.name("kind").quoted(t.Kind).text("name", t.Name).number("len", int64(t.Len)).number("up", int64(t.Up))
	o = o.part("key", t.Key).part("elem", t.Elem)
	if len(t.Fields) == 0 {
		return o
	}
	o = append(o.name("fields"), '[')
	for i := range t.Fields {
		if i > 0 {
			o = append(o, ',')
		}
		f := &t.Fields[i]
		o = append(o, '{').name("name").quoted(f.Name).part("type", &f.Type).yes("quoted", f.Quoted)
		o = append(o, '}')
	}
	return append(o, ']')
}

// part adds a type that another one is made of.
func (o object) part(name string, t *state.Type) object {
	if t == nil {
		return o
	}
	return append(append(o.name(name), '{').typeOf(t), '}')
}
