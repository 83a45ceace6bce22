package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// pending are the calls of the last thought that have still to be made.
func pending(m *Mind) []string {
	var ids []string
	for id, s := range m.Steps.All() {
		if s.Parent == m.last() && s.Type == ToolCall && s.Status == Pending {
			ids = append(ids, id)
		}
	}
	return ids
}

// Form completes a call: a person is asked for what the model did not know. The call stands in the
// state all the while, with what it lacks and with what was not chosen in its place.
func (a *Agent) Form(ctx context.Context, m *Mind, id string) error {
	s, _ := m.Steps.Get(id)
	if s.Tool.Complete {
		return nil
	}
	tool := a.tool(s.Tool.Tool)
	if tool == nil {
		return fmt.Errorf("step %s uses the tool %s, which this program has no more", id, s.Tool.Tool)
	}
	lacks := tool.lacks(s.Tool.Inputs)
	answers := make([]string, len(lacks))
	var errs []error
	for i, in := range lacks { // all at once: a person should not be called twice
		var err error
		answers[i], err = dag.Ask[string](ctx, in.Name, fmt.Sprintf("%s needs %s: %s", s.Tool.Tool, in.Name, in.About))
		if !errors.Is(err, dag.ErrSkipped) { // which says that nobody knows
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, in := range lacks {
		m.told(&s, id, in, strings.TrimSpace(answers[i]), person(ctx, in.Name))
	}
	if s.Tool.Complete = s.Error == ""; !s.Tool.Complete {
		s.Status = Deferred
	}
	m.Steps.Put(id, s)
	return nil
}

// told keeps what a person has said of an input, and that it was asked.
func (m *Mind) told(s *Step, id string, in Input, answer, by string) {
	key := id + "." + in.Name
	m.Questions.Put(key, Question{Question: in.About, Priority: High, Blocks: []string{id}, Answer: answer})
	s.BlockedBy = append(s.BlockedBy, key)
	if answer == "" {
		s.Error = "nobody knows " + in.Name
		return
	}
	s.Tool.Inputs[in.Name] = answer
	m.Facts.Put(key, Fact{Content: in.About + ": " + answer, Source: by, Step: id, Confidence: 1})
}

// person is the source of what somebody answered, by name if they gave one.
func person(ctx context.Context, key string) string {
	if info, ok := dag.Reply(ctx, key); ok && info.By != "" {
		return "person:" + info.By
	}
	return "person"
}

// Act makes a call. What the tool says is a fact; a refusal of the tool, or of a person, is what
// the model reads of in its place.
func (a *Agent) Act(ctx context.Context, m *Mind, id string) error {
	s, _ := m.Steps.Get(id)
	t := a.tool(s.Tool.Tool)
	if t == nil {
		return fmt.Errorf("step %s uses the tool %s, which this program has no more", id, s.Tool.Tool)
	}
	got, err := a.use(ctx, t, s.Tool.Inputs)
	switch {
	case errors.Is(err, dag.ErrDenied):
		_, why, _ := strings.Cut(err.Error(), dag.ErrDenied.Error()) // who it was, and why
		got.Refusal = "a person did not allow it" + why
	case err != nil:
		return err
	}
	s.Status, s.Error, s.Tool.Output, s.Confidence = Completed, got.Refusal, got.Output, t.Confidence
	if got.Refusal != "" {
		s.Status = Failed
	} else {
		m.Facts.Put(id, Fact{Content: got.Output, Source: "tool:" + t.Name, Step: id, Confidence: t.Confidence})
	}
	m.Steps.Put(id, s)
	return nil
}

// A result is what comes of using a tool.
type result struct {
	Output  string `json:"output,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}

// use uses a tool once, when a person has approved it if one has to. All tools here are replayable:
// those that read change nothing, and the notebook knows the key.
func (a *Agent) use(ctx context.Context, t *Tool, inputs map[string]string) (result, error) {
	options := []dag.EffectOption{dag.Replayable, dag.Operation(t.Name)}
	if t.Access.Declared() {
		options = append(options, t.Access)
	}
	return dag.Effect(ctx, t.Name, inputs, func(ctx context.Context, inputs map[string]string) (result, error) {
		output, err := t.Use(ctx, dag.Key(ctx), inputs)
		var refused *Refusal
		if errors.As(err, &refused) {
			return result{Refusal: refused.Reason}, nil
		}
		return result{Output: output}, err
	}, options...)
}
