package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Check refuses a mind that contradicts itself: a parent, a question, a fact or a goal that is not
// there, a chain of parents that bites its tail, and a word that means nothing. The dispatcher asks
// it before anything is made durable, when a run goes on, and about what a person has edited.
func (m *Mind) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	m.checkSteps(bad)
	for id, q := range m.Questions.All() {
		if !slices.Contains([]Priority{High, Medium, Low}, q.Priority) {
			bad("question %s has the unknown priority %q", id, q.Priority)
		}
		for _, step := range missing(q.Blocks, m.Steps.Has) {
			bad("question %s blocks step %s, which is missing", id, step)
		}
	}
	for id, f := range m.Facts.All() {
		if !m.Steps.Has(f.Step) {
			bad("fact %s is of step %s, which is missing", id, f.Step)
		}
	}
	for id, b := range m.Beliefs.All() {
		for _, fact := range missing(b.Evidence, m.Facts.Has) {
			bad("belief %s rests on fact %s, which is missing", id, fact)
		}
	}
	parents := map[string]string{}
	for id, g := range m.Goals.All() {
		parents[id] = g.Parent
		if !slices.Contains([]GoalStatus{GoalActive, GoalAchieved, GoalAbandoned, GoalDeferred}, g.Status) {
			bad("goal %s has the unknown status %q", id, g.Status)
		}
	}
	checkParents("goal", parents, bad)
	for i, item := range m.Todo.All() {
		if item.Goal != "" && !m.Goals.Has(item.Goal) {
			bad("item %d of the todo list serves goal %s, which is missing", i+1, item.Goal)
		}
	}
	return errors.Join(errs...)
}

var (
	stepTypes = []StepType{Intent, Decision, Reasoning, ToolCall, Observation, Reflection, Milestone}
	phases    = []Phase{Setup, Exploration, Planning, Execution, Verification, Reflecting}
	statuses  = []Status{Pending, Active, Paused, Completed, Failed, Deferred}
)

func (m *Mind) checkSteps(bad func(string, ...any)) {
	parents := map[string]string{}
	for id, s := range m.Steps.All() {
		parents[id] = s.Parent
		switch {
		case !slices.Contains(stepTypes, s.Type):
			bad("step %s has the unknown type %q", id, s.Type)
		case !slices.Contains(phases, s.Phase):
			bad("step %s has the unknown phase %q", id, s.Phase)
		case !slices.Contains(statuses, s.Status):
			bad("step %s has the unknown status %q", id, s.Status)
		case (s.Tool != nil) != (s.Type == ToolCall):
			bad("step %s is of type %s: a tool call has a tool, and nothing else has", id, s.Type)
		}
		for _, question := range missing(s.BlockedBy, m.Questions.Has) {
			bad("step %s is blocked by question %s, which is missing", id, question)
		}
		for _, assumption := range missing(s.Assumptions, m.Assumptions.Has) {
			bad("step %s assumes %s, which is missing", id, assumption)
		}
	}
	checkParents("step", parents, bad)
}

// checkParents finds parents that are missing, and cycles, each once.
func checkParents(what string, parents map[string]string, bad func(string, ...any)) {
	clear := map[string]bool{} // ids from which the way up is known
	for _, id := range slices.Sorted(maps.Keys(parents)) {
		if p := parents[id]; p != "" {
			if _, ok := parents[p]; !ok {
				bad("%s %s has the parent %s, which is missing", what, id, p)
			}
		}
		way := map[string]bool{}
		for at := id; at != "" && !clear[at]; at = parents[at] {
			if way[at] {
				bad("%s %s is its own ancestor", what, at)
				break
			}
			way[at] = true
		}
		for at := range way {
			clear[at] = true
		}
	}
}

// missing are those of ids that are not there.
func missing(ids []string, has func(string) bool) []string {
	var all []string
	for _, id := range ids {
		if !has(id) {
			all = append(all, id)
		}
	}
	return all
}

// Warnings are what is odd about a mind without being wrong: confidences that are none, and beliefs
// that rest on nothing. They stop nobody.
func (m *Mind) Warnings() []string {
	var all []string
	odd := func(what, id string, confidence float64) {
		if confidence < 0 || confidence > 1 {
			all = append(all, fmt.Sprintf("%s %s has the confidence %g, which is not from 0 to 1", what, id, confidence))
		}
	}
	for id, s := range m.Steps.All() {
		odd("step", id, s.Confidence)
	}
	for id, f := range m.Facts.All() {
		odd("fact", id, f.Confidence)
	}
	for id, b := range m.Beliefs.All() {
		odd("belief", id, b.Confidence)
		if len(b.Evidence) == 0 {
			all = append(all, fmt.Sprintf("belief %s rests on nothing", id))
		}
	}
	return all
}
