package main

import "github.com/pawlgo/pawl/examples/agent/model"

// remembering is remember as a model is told of it.
var remembering = model.Tool{
	Name:  remember,
	About: "Keeps what you take for true, ask, believe, want and have to do. An entry replaces the one of the same id; todo replaces the whole list.",
	Parameters: schema(map[string]any{
		"phase":      word(phases),
		"confidence": number,
		"assumptions": byID(map[string]any{
			"content": text, "validated": map[string]any{"type": "boolean"}}),
		"questions": byID(map[string]any{
			"question": text, "priority": word([]Priority{High, Medium, Low}), "blocks": texts, "answer": text}),
		"beliefs": byID(map[string]any{
			"statement": text, "confidence": number, "evidence": texts}),
		"goals": byID(map[string]any{
			"description": text, "status": word([]GoalStatus{GoalActive, GoalAchieved, GoalAbandoned, GoalDeferred}),
			"parent": text, "priority": map[string]any{"type": "integer"}}),
		"todo": map[string]any{"type": "array", "items": object(map[string]any{
			"text": text, "goal": text, "done": map[string]any{"type": "boolean"}})},
	}),
}

var (
	text   = map[string]any{"type": "string"}
	texts  = map[string]any{"type": "array", "items": text}
	number = map[string]any{"type": "number", "minimum": 0, "maximum": 1}
)

func word[W ~string](all []W) map[string]any { return map[string]any{"type": "string", "enum": all} }

func object(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties}
}

func byID(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": object(properties)}
}
