package record

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// An effect is one that began in the run, under one idempotency key.
type effect struct {
	place
	key string // as given to dag.Effect
	id  string // idempotency key
	checkpoint.BegunEffect
	end *checkpoint.EndedEffect // nil if nobody knows of one
}

// An effectKey tells the effects apart that may be under way at a time.
type effectKey struct{ path, key string }

// begun hears that an effect begins. One that begins again before it was known to have ended has
// the key that it had, and so has one that has not happened, unless the run, or its visit, has
// others now.
func (l *log) begun(e *checkpoint.Entry, at place) error {
	x := l.effect[effectKey{e.Path, e.ID}]
	if x == nil || x.turn != l.turn || x.end != nil && x.id != l.idOf(e) {
		x = l.newEffect(e, at)
	}
	x.end, x.BegunEffect = nil, checkpoint.BegunEffect{}
	return json.Unmarshal(e.Data, &x.BegunEffect)
}

// ended hears how an effect ended; of what it began with the log may have lost the entry. If it was
// in doubt, and somebody was asked, that is the answer.
func (l *log) ended(e *checkpoint.Entry, at place) error {
	x := l.effect[effectKey{e.Path, e.ID}]
	if x == nil {
		x = l.newEffect(e, at)
		x.BegunEffect.At = e.At
	}
	x.end = new(checkpoint.EndedEffect)
	if err := json.Unmarshal(e.Data, x.end); err != nil {
		return err
	}
	q := l.question(x.end.Interrupt)
	if q == nil {
		return nil
	}
	said, err := json.Marshal(checkpoint.Resolution{Happened: x.end.Output, NotHappened: x.end.NotDone})
	q.answer, q.answerSeq = &checkpoint.Answer{Value: said, How: checkpoint.AnswerGiven, By: x.end.By, At: e.At}, e.Seq
	return err
}

func (l *log) newEffect(e *checkpoint.Entry, at place) *effect {
	x := &effect{place: at, key: e.ID, id: l.idOf(e)}
	l.effects, l.effect[effectKey{e.Path, e.ID}] = append(l.effects, x), x
	return x
}

// idOf is the idempotency key under which an effect begins here.
func (l *log) idOf(e *checkpoint.Entry) string {
	return dispatcher.EffectKey(l.run, l.turn, l.Generation, l.Vacated, e.Path, e.ID)
}

// underWay finds the effects again that may be under way where the run stands now.
func (l *log) underWay() {
	clear(l.effect)
	for _, x := range l.effects {
		if !x.gone() && !x.forgotten() {
			l.effect[effectKey{x.is, x.key}] = x
		}
	}
}

func (x *effect) tool() ToolEffect {
	e := ToolEffect{
		ID: x.id, IdempotencyKey: x.id, ToolName: cmp.Or(x.Operation, x.key), Operation: x.key,
		Inputs: object(x.Input), IsReplayable: x.Replayable && !x.taken(), Reversible: x.Reversible,
		SideEffects: slices.Clone(x.Touches), ExecutedAt: millis(x.At), Abandoned: x.gone(),
		Status: EffectInDoubt,
	}
	if x.end == nil {
		return e
	}
	e.DurationMs = x.end.Took.Milliseconds()
	switch {
	case x.end.NotDone != "":
		e.Status = EffectNotDone
	case x.end.Lost != "":
		e.Status = EffectLost
	default:
		e.Status, e.Outputs = EffectDone, object(x.end.Output)
	}
	return e
}

// taken reports whether a fork has taken what the effect returned elsewhere: the other side has
// never had its key.
func (x *effect) taken() bool { return x.end != nil && x.end.Reused != "" }

// object is JSON as an object, which inputs and outputs have to be: what is none becomes its
// member value.
func object(raw json.RawMessage) json.RawMessage {
	raw = exactly(raw)
	var members map[string]json.RawMessage
	switch {
	case len(raw) == 0:
		return json.RawMessage("{}")
	case json.Unmarshal(raw, &members) == nil && members != nil:
		return slices.Clone(raw)
	}
	return slices.Concat([]byte(`{"value":`), raw, []byte(`}`))
}
