package dag

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/state"
)

// An AskCall is what [Ask] asks of the [Visit] that its context belongs to.
type AskCall struct {
	Key      string // tells the questions of one visit apart
	Question json.RawMessage
	Want     state.Type // what an answer has to be
	// Within and Until say when an answer comes too late: this long after the visit has begun to
	// wait, or at this instant. At most one is set; if none is, never.
	Within time.Duration
	Until  time.Time
	// Default is the answer that the question then gets. None means that it expires without one.
	Default json.RawMessage
	// About is what an answer is for. None means the Question.
	About json.RawMessage
	// Fits says why JSON that Want accepts can't be decoded, or is no answer. It is for types with
	// their own unmarshaller, and for layers that want more of an answer than Want can say. It is
	// nil if there is nothing to say, is safe for concurrent use, and turns panics into errors.
	Fits func(raw json.RawMessage) error
}

// Expires reports whether an answer may come too late.
func (c *AskCall) Expires() bool { return c.Within > 0 || !c.Until.IsZero() }

// Repeats returns an [*ArgumentError] unless c asks the same as first, which has its key. Another
// question under the key would be lost, or get the answer of the first one.
func (c *AskCall) Repeats(first *AskCall) error {
	same := bytes.Equal(c.Question, first.Question) || len(c.About) > 0
	if same && bytes.Equal(c.About, first.About) && c.Want.String() == first.Want.String() {
		return nil
	}
	return &ArgumentError{"Ask", fmt.Sprintf("key %q", c.Key),
		"is that of another question of this visit: give each question a key of its own"}
}

// An AskOption says how a question may end without a person, or what its answer is for. See
// [Within], [Until], [OrDefault] and [About]. The zero AskOption says nothing.
type AskOption struct {
	name string
	set  func(*AskCall) error
}

// Within lets a question expire when nobody has answered it for d, counted from the moment at which
// the visit begins to wait. That time goes on while the process is down. d has to be greater than
// zero.
func Within(d time.Duration) AskOption {
	return AskOption{"Within", func(c *AskCall) error {
		if d <= 0 {
			return fmt.Errorf("%s is no time to answer in", d)
		}
		c.Within = d
		return nil
	}}
}

// Until lets a question expire at an instant: an answer that is given then, or later, is
// refused.
func Until(t time.Time) AskOption {
	return AskOption{"Until", func(c *AskCall) error {
		if t.IsZero() || !state.Sayable(t) {
			return fmt.Errorf("%s is no instant that can be waited for", t)
		}
		c.Until = t.UTC().Round(0)
		return nil
	}}
}

// About says what the answer is for, in place of the words of the question. As long as a visit that
// runs again asks about the same x, the answer counts. Use it when the words differ each time,
// because a model wrote them or they hold the time of day. x may be anything that JSON can say; nil
// means that the key says it all.
func About(x any) AskOption {
	return AskOption{"About", func(c *AskCall) (err error) {
		c.About, err = inJSON(x)
		return err
	}}
}

// A Clock is a [Visit] that tells the wall clock by which the bounds of its questions count.
type Clock interface {
	// Now is safe for concurrent use.
	Now() time.Time
}

// OrDefault is what [Ask] returns for a question that has expired, instead of [ErrExpired]. It has
// to be an answer that a person could have given. [Reply] tells that it is the default. It needs
// [Within] or [Until].
func OrDefault(answer any) AskOption {
	return AskOption{"OrDefault", func(c *AskCall) error {
		raw, err := inJSON(answer)
		if err == nil {
			err = c.Want.Accepts(raw)
		}
		if err == nil && c.Fits != nil {
			err = c.Fits(raw)
		}
		c.Default = raw
		return err
	}}
}

// with is the call with its options.
func (c AskCall) with(options []AskOption) (AskCall, error) {
	err := c.take(options)
	return c, err
}

// take reads the options of a call.
func (c *AskCall) take(options []AskOption) error {
	given := map[string]bool{}
	refused := func(reason string) error {
		return &ArgumentError{"Ask", fmt.Sprintf("question %q", c.Key), reason}
	}
	for _, o := range options {
		if o.set == nil {
			continue
		}
		if given[o.name] {
			return refused("is given " + o.name + " twice: give it once")
		}
		given[o.name] = true
		if err := o.set(c); err != nil {
			return refused(fmt.Sprintf("is given %s: %v", o.name, err))
		}
	}
	switch {
	case given["Within"] && given["Until"]:
		return refused("has Within and Until: give one of them")
	case given["OrDefault"] && !c.Expires():
		return refused("has a default and never expires: give it Within or Until")
	}
	return nil
}

var (
	// ErrNoVisit is returned by [Ask] for a context that belongs to no visit. For a nil context it
	// is returned by whatever a node calls that returns an error.
	ErrNoVisit = errors.New("dag: the context belongs to no visit of a run")
	// ErrExpired is returned by [Ask] for a question that nobody has answered in time and that has
	// no default.
	ErrExpired = errors.New("dag: the question has expired")
	// ErrSkipped is returned by [Ask] when somebody has skipped the question: there will be no
	// answer.
	ErrSkipped = errors.New("dag: the question was skipped")
)

// Ask returns a person's answer to question. As long as there is none it returns an error, which
// the node should return at once. Whatever the node then returns, the visit is interrupted and
// waits, and what it wrote is dropped. Only a panic or runtime.Goexit behind the question fails the
// visit all the same. Once the question is answered the node runs again from its first line.
//
// The key tells the questions of one visit apart and can't be empty. Asking the same question again
// returns the same answer. In one attempt, another question under its key, or the same one for
// another A, is an [*ArgumentError]. The question may be anything that JSON can say.
//
// An answer that does not fit A is refused when it is given. Members that it lacks are zero. For a
// type with an UnmarshalJSON or UnmarshalText of its own there are two cases in which a misfit is
// found as early: if [state.Type.Decodes] knows the type, and as long as the dispatcher that asked
// keeps the run in memory. Otherwise any JSON is accepted, and if A can't decode it the question is
// asked again and its time begins anew.
//
// An answer is for what was asked. If a visit that runs again asks something else under the key, or
// wants another A, because the state was edited or the program changed, the old answer does not
// count and the new question is asked; see [About]. A question that waits keeps its words and the
// type of its answer until it ends; the new program's question follows when the visit has run
// again. To end an outdated question without answering it, skip it: that does not end the question
// asked next.
//
// A question waits for ever unless it is given [Within] or [Until]. When that time is over Ask
// returns the answer of [OrDefault], or [ErrExpired]; if somebody skips the question it returns
// [ErrSkipped]. Both errors are final: the node turns them into an outcome, handles them or returns
// them. If it returns them the visit fails without another attempt, with the kind [FailedExpired]
// or [FailedSkipped], and its failure can be followed. A resume asks again.
func Ask[A any](ctx context.Context, key string, question any, options ...AskOption) (A, error) {
	var answer A
	v, err := within(ctx, "Ask")
	if err != nil {
		return answer, err
	}
	if v == nil {
		return answer, fmt.Errorf("%w: Ask(%q)", ErrNoVisit, key)
	}
	call := AskCall{Key: key}
	if err := named("Ask", "key", key); err != nil {
		return answer, err
	}
	if call.Question, err = inJSON(question); err != nil {
		return answer, fmt.Errorf("dag: question %q: %w", key, err)
	}
	if call.Want, err = state.TypeOf[A](); err != nil {
		return answer, fmt.Errorf("dag: answer to %q: %w", key, err)
	}
	if own(&call.Want) {
		call.Fits = decodes[A]
	}
	if len(options) > 0 { // else the call is not allocated
		if call, err = call.with(options); err != nil {
			return answer, err
		}
	}
	raw, err := v.Ask(call)
	if err != nil {
		return answer, err
	}
	if err := state.Decode(raw, &answer); err != nil {
		return answer, fmt.Errorf("dag: answer to %q: what was given is of another type: %w: "+
			"go back before the question with Rewind or Fork, and it is asked again", key, err)
	}
	return answer, nil
}

// decodes says why raw can't be decoded.
func decodes[A any](raw json.RawMessage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return state.Decode(raw, new(A))
}

// own reports whether a type with its own unmarshaller is a part of t.
func own(t *state.Type) bool {
	return t != nil && (t.Kind == "own" || own(t.Elem) || own(t.Key) ||
		slices.ContainsFunc(t.Fields, func(f state.Field) bool { return own(&f.Type) }))
}

// A How says how a question ended.
type How string

const (
	AnswerGiven   How = "answered" // somebody gave the answer
	AnswerSkipped How = "skipped"  // somebody skipped the question: Ask returns ErrSkipped
	AnswerExpired How = "expired"  // nobody did in time: Ask returns ErrExpired
	AnswerDefault How = "default"  // nobody did in time: Ask returns the default
)

// An AnswerInfo tells how a question ended.
type AnswerInfo struct {
	How How
	By  string    // who answered or skipped it, if they said so
	At  time.Time // when; if nobody did in time, by the clock that says until when
}

// An Answered is a question of a visit that has ended.
type Answered struct {
	Key string
	AnswerInfo
}

// Answers lists the visit's questions that have ended, in the order of their ends. It is the same
// in every attempt and process, with one exception: once an attempt has asked something else under
// a key, what had ended there is no longer listed. Outside a run, and for a visit that is no
// [Replier], the list is empty.
func Answers(ctx context.Context) []Answered {
	if r, ok := visitOf(ctx, "Answers").(Replier); ok {
		return r.Answers()
	}
	return nil
}

// A Replier is a [Visit] that knows which of its questions have ended.
type Replier interface {
	// Answers lists them in the order of their ends. The slice is the caller's.
	Answers() []Answered
}

// A Foreseer is a [Visit] that tells beforehand what a question comes to.
type Foreseer interface {
	// Ended reports whether Ask of the same call would return how the question has ended. It asks
	// nothing.
	Ended(call AskCall) bool
}

// Reply tells how the visit's question of this key ended. ok is false if it has not ended or was
// never asked. The result is the same in every attempt and process, with one exception: an answer
// that can't be decoded no longer counts once the attempt has asked. Outside a run ok is false.
func Reply(ctx context.Context, key string) (info AnswerInfo, ok bool) {
	if v := visitOf(ctx, "Reply"); v != nil {
		return v.Reply(key)
	}
	return AnswerInfo{}, false
}
