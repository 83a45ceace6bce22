package main

import (
	"slices"
	"strings"
	"testing"
)

// sound is a mind with something of everything, in which nothing is wrong.
func sound() *Mind {
	m := new(Mind)
	m.Steps.Put("00", Step{Type: Intent, Phase: Setup, Status: Completed, Confidence: 1})
	m.Steps.Put("01", Step{Type: Reasoning, Phase: Planning, Status: Completed, Parent: "00", Assumptions: []string{"a"}})
	m.Steps.Put("01.1", Step{Type: ToolCall, Phase: Execution, Status: Pending, Parent: "01", BlockedBy: []string{"q"},
		Tool: &Binding{Tool: "note"}})
	m.Assumptions.Put("a", Assumption{Content: "above sea level"})
	m.Questions.Put("q", Question{Question: "Which file?", Priority: High, Blocks: []string{"01.1"}})
	m.Facts.Put("f", Fact{Content: "4806 metres", Source: "tool:search", Step: "01", Confidence: 0.9})
	m.Beliefs.Put("b", Belief{Statement: "it is high", Confidence: 0.8, Evidence: []string{"f"}})
	m.Goals.Put("00", Goal{Description: "know", Status: GoalActive})
	m.Goals.Put("g", Goal{Description: "look up", Status: GoalDeferred, Parent: "00"})
	m.Todo.Append(Item{Text: "look", Goal: "g"})
	return m
}

func TestASoundMindIsLetBe(t *testing.T) {
	if err := sound().Check(); err != nil {
		t.Error(err)
	}
	if err := new(Mind).Check(); err != nil {
		t.Errorf("an empty mind: %v", err)
	}
	if w := sound().Warnings(); w != nil {
		t.Errorf("warnings %q", w)
	}
}

// Each contradiction is refused in words that name it.
func TestCheckRefuses(t *testing.T) {
	step := func(m *Mind, id string, change func(*Step)) {
		s, _ := m.Steps.Get(id)
		change(&s)
		m.Steps.Put(id, s)
	}
	for want, spoil := range map[string]func(*Mind){
		"step 01 has the parent 09, which is missing": func(m *Mind) { step(m, "01", func(s *Step) { s.Parent = "09" }) },
		"step 00 is its own ancestor":                 func(m *Mind) { step(m, "00", func(s *Step) { s.Parent = "01.1" }) },
		"step 01 is its own ancestor":                 func(m *Mind) { step(m, "01", func(s *Step) { s.Parent = "01" }) },
		`step 01 has the unknown type "dream"`:        func(m *Mind) { step(m, "01", func(s *Step) { s.Type = "dream" }) },
		`step 01 has the unknown phase "tea"`:         func(m *Mind) { step(m, "01", func(s *Step) { s.Phase = "tea" }) },
		`step 01 has the unknown status "lost"`:       func(m *Mind) { step(m, "01", func(s *Step) { s.Status = "lost" }) },
		"a tool call has a tool":                      func(m *Mind) { step(m, "01.1", func(s *Step) { s.Tool = nil }) },
		"nothing else has":                            func(m *Mind) { step(m, "01", func(s *Step) { s.Tool = new(Binding) }) },
		"blocked by question x, which is missing":     func(m *Mind) { step(m, "01", func(s *Step) { s.BlockedBy = []string{"x"} }) },
		"step 01 assumes a, which is missing":         func(m *Mind) { m.Assumptions.Delete("a") },
		"question q blocks step 09, which is missing": func(m *Mind) { m.Questions.Put("q", Question{Priority: Low, Blocks: []string{"09"}}) },
		`question q has the unknown priority ""`:      func(m *Mind) { m.Questions.Put("q", Question{}) },
		"fact f is of step 09, which is missing":      func(m *Mind) { m.Facts.Put("f", Fact{Step: "09"}) },
		"belief b rests on fact f, which is missing":  func(m *Mind) { m.Facts.Delete("f") },
		`goal g has the unknown status "won"`:         func(m *Mind) { m.Goals.Put("g", Goal{Status: "won"}) },
		"goal g has the parent x, which is missing":   func(m *Mind) { m.Goals.Put("g", Goal{Status: GoalActive, Parent: "x"}) },
		"goal 00 is its own ancestor":                 func(m *Mind) { m.Goals.Put("00", Goal{Status: GoalActive, Parent: "g"}) },
		"todo list serves goal x, which is missing":   func(m *Mind) { m.Todo.SetAt(0, Item{Goal: "x"}) },
	} {
		m := sound()
		spoil(m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		} else if n := strings.Count(err.Error(), "\n"); n != 0 {
			t.Errorf("one thing is wrong, and %d lines say so:\n%v", n+1, err)
		}
	}
}

// What is odd is told, and refused by nobody.
func TestOddConfidencesAreWarnings(t *testing.T) {
	m := sound()
	m.Steps.Put("02", Step{Type: Reflection, Phase: Reflecting, Status: Active, Parent: "00", Confidence: 1.5})
	m.Facts.Put("f", Fact{Step: "01", Confidence: -0.1})
	m.Beliefs.Put("b", Belief{Confidence: 7})
	if err := m.Check(); err != nil {
		t.Errorf("refused: %v", err)
	}
	want := []string{
		"step 02 has the confidence 1.5, which is not from 0 to 1",
		"fact f has the confidence -0.1, which is not from 0 to 1",
		"belief b has the confidence 7, which is not from 0 to 1",
		"belief b rests on nothing",
	}
	if got := m.Warnings(); !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}
