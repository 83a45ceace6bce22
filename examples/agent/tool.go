package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/agent/model"
)

// A Tool is something that the agent can do besides thinking.
type Tool struct {
	Name, About string
	Inputs      []Input
	Access      dag.Access // what is not declared to read needs a person's approval
	Confidence  float64    // in what it says

	// Use does it. key is the same each time that one call is tried. A *Refusal is a result, which
	// the model is told; any other error fails the attempt.
	Use func(ctx context.Context, key string, inputs map[string]string) (string, error)
}

// An Input is what a tool has to be given, as text.
type Input struct{ Name, About string }

// A Refusal says why a tool can't do what it was asked. Nothing has happened.
type Refusal struct{ Reason string }

func (e *Refusal) Error() string { return e.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// lacks are the inputs without which a tool can't be used, and that a call does not have.
func (t *Tool) lacks(inputs map[string]string) []Input {
	var all []Input
	for _, in := range t.Inputs {
		if strings.TrimSpace(inputs[in.Name]) == "" {
			all = append(all, in)
		}
	}
	return all
}

// rejected is the argument of every tool in which a model says what it did not choose.
const rejected = "rejected"

// described is the tool as a model is told of it. No input is required: a model that has to give
// one that it does not know makes one up.
func (t *Tool) described() model.Tool {
	properties := map[string]any{rejected: map[string]any{
		"type":        "array",
		"description": "the tools that you considered and did not choose, and why",
		"items": map[string]any{"type": "object", "properties": map[string]any{
			"tool": map[string]any{"type": "string"}, "reason": map[string]any{"type": "string"}}},
	}}
	for _, in := range t.Inputs {
		properties[in.Name] = map[string]any{"type": "string", "description": in.About + "; leave it out if you do not know"}
	}
	return model.Tool{Name: t.Name, About: t.About, Parameters: schema(properties)}
}

func schema(properties map[string]any) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		panic("the schema of a tool can always be said in JSON: " + err.Error())
	}
	return raw
}

// bind makes of the arguments that a model gave what is kept of them. Nothing is guessed: what is
// no input of the tool is an error.
func (t *Tool) bind(arguments string) (*Binding, error) {
	b := &Binding{Tool: t.Name, Inputs: map[string]string{}}
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &given); err != nil {
		return b, errors.New("the arguments are no JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(given)) { // in one order, so that the same is kept each time
		raw := given[name]
		if name == rejected {
			if err := json.Unmarshal(raw, &b.Rejected); err != nil {
				return b, errors.New("the rejected alternatives are no list of tools and reasons")
			}
			continue
		}
		if !slices.ContainsFunc(t.Inputs, func(in Input) bool { return in.Name == name }) {
			return b, fmt.Errorf("%s has no input %q", t.Name, name)
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw) // a number, for example
		}
		b.Inputs[name] = text
	}
	b.Complete = len(t.lacks(b.Inputs)) == 0
	return b, nil
}
