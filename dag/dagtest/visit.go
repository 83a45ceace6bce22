package dagtest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A Visit scripts one attempt of one node, and remembers what the node did with it. The zero Visit
// is a first attempt to which nobody answers. Its fields must not be changed once [Context] was
// called; its methods are safe for concurrent use.
type Visit struct {
	// Key is what dag.Key returns. Empty means "run/node".
	Key string
	// Attempt is what dag.Attempt returns. Zero means 1.
	Attempt int
	// Failures is what dag.Failures returns.
	Failures []dag.Failure
	// Answers are the answers that were given, by the key of the question. Each is a value that
	// JSON can say, a json.RawMessage, or an [Answer] of a person. dag.ErrSkipped says that
	// somebody has skipped the question. dag.ErrExpired says that nobody answered it in time, for a
	// question that expires. A question that is not in it is unanswered.
	Answers map[string]any
	// Settings are what dag.Settings decodes: a value that JSON can say, or a
	// json.RawMessage. Nil means that the run has none.
	Settings any
	// Script says what comes of effects, by key, without calling their functions. A value that JSON
	// can say, or a json.RawMessage, is the output of an effect that has happened. An error is what
	// the function returns, and dag.ErrInDoubt says that an earlier attempt has begun the effect.
	// The function of an effect that is not in it is called.
	Script map[string]any
	// Approvals say which effects need a person's approval, by key, and what came of that. An
	// effect needs none if it is not in it, or if Script says that it has happened or begun before.
	Approvals map[string]Approval

	mu       sync.Mutex
	asked    []Question
	defaults map[string]bool // keys of questions that ended with their default
	emitted  []Emission
	notes    []Note
	effects  []Effect
	kept     map[string]*kept // by key

	unapproved bool // an effect waits for its approval
	doubt      atomic.Pointer[dag.InDoubtError]
}

// A Question is one call of dag.Ask.
type Question struct {
	Key      string
	Question json.RawMessage
	Want     state.Type // what an answer has to be
	Answered bool       // it has ended, with an answer or without one
	// Within, Until and Default are what dag.Within, dag.Until and dag.OrDefault said.
	Within  time.Duration
	Until   time.Time
	Default json.RawMessage
}

// An Emission is a value that the node has shown.
type Emission struct {
	Name  string
	Value json.RawMessage
}

// A Note is a note that the node has made, with dag.Note, dag.Decide, dag.Learn, dag.Block or
// dag.Require.
type Note struct {
	Name  string
	Value json.RawMessage
}

// Notes returns the notes of the node, in order. In a run they count if the node finishes well.
func (v *Visit) Notes() []Note {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.notes)
}

// Context returns a context as a node gets it in a run, in the attempt that v scripts. A nil v is
// the zero Visit. Context panics if ctx is nil, or if v.Settings can't be said in JSON.
func Context(ctx context.Context, v *Visit) context.Context {
	if ctx == nil {
		panic("dagtest: Context: the context is nil: give it that of the test")
	}
	if v == nil {
		v = &Visit{}
	}
	s := visit{v: v, heard: map[string]dag.AskCall{}}
	if v.Settings != nil {
		raw, err := encode(v.Settings)
		if err != nil {
			panic("dagtest: Settings: " + err.Error())
		}
		s.settings = raw
	}
	return context.WithValue(ctx, dag.VisitKey{}, dag.Visit(s))
}

// Asked returns the questions that were asked so far, in order.
func (v *Visit) Asked() []Question {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.asked)
}

// Emitted returns what was shown so far, in order.
func (v *Visit) Emitted() []Emission {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.emitted)
}

// A visit is a Visit as package dag sees it.
type visit struct {
	v        *Visit
	settings json.RawMessage
	heard    map[string]dag.AskCall // the first question of each key; v.mu guards it
}

func (s visit) Note(name string, value json.RawMessage) error {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	s.v.notes = append(s.v.notes, Note{name, value})
	return nil
}

func (s visit) Key() string {
	if s.v.Key == "" {
		return "run/node"
	}
	return s.v.Key
}

func (s visit) Attempt() int            { return max(s.v.Attempt, 1) }
func (s visit) Failures() []dag.Failure { return slices.Clone(s.v.Failures) }

func (s visit) Settings() json.RawMessage { return s.settings }

func (s visit) Emit(name string, value json.RawMessage) error {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	s.v.emitted = append(s.v.emitted, Emission{name, slices.Clone(value)})
	return nil
}

// encode returns a scripted value as JSON.
func encode(value any) (json.RawMessage, error) {
	if raw, ok := value.(json.RawMessage); ok && !json.Valid(raw) {
		return nil, errors.New("is not JSON")
	}
	raw, err := json.Marshal(value)
	if err == nil {
		err = state.CheckText(value, raw)
	}
	return raw, err
}
