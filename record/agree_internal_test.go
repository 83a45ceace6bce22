package record

import (
	"testing"
)

// What a log has told of a value to two records says the one that says still what it was told; of
// two that both don't, the one that was told something since what they have in common. It is the
// same if they are exchanged.
func TestToldBoth(t *testing.T) {
	for name, c := range map[string]struct {
		first, one, left, other, right string // "" is that there is none
		told                           string
	}{
		"both the same":                             {"a", "b", "b", "b", "b", "b"},
		"the same, and somebody contradicts it":     {"a", "b", "x", "b", "b", "b"},
		"the same, and both contradict it":          {"a", "b", "x", "b", "y", "b"},
		"one knows, of the other it is older":       {"a", "b", "b", "a", "x", "b"},
		"one knows that it is as it was":            {"a", "a", "a", "b", "x", "a"},
		"one knows that there is none":              {"a", "", "", "a", "x", ""},
		"both know, and say otherwise":              {"a", "b", "b", "c", "c", ""},
		"neither knows, the one was told no more":   {"a", "a", "x", "b", "y", "b"},
		"neither knows, the other was told no more": {"a", "b", "x", "a", "y", "b"},
		"neither knows, both were told more":        {"a", "b", "x", "c", "y", "b"},
		"neither knows, that had been none":         {"", "", "x", "b", "y", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := func(s string) *string {
				if s == "" {
					return nil
				}
				return &s
			}
			said := func(s *string) string {
				if s == nil {
					return ""
				}
				return *s
			}
			if told := said(toldBoth(p(c.first), p(c.one), p(c.left), p(c.other), p(c.right))); told != c.told {
				t.Errorf("told %q, want %q", told, c.told)
			}
			if told := said(toldBoth(p(c.first), p(c.other), p(c.right), p(c.one), p(c.left))); told != c.told {
				t.Errorf("exchanged told %q, want %q", told, c.told)
			}
		})
	}
}

// Variants that people chose are nothing that a log tells: who has got no more than those knows
// what it was told, and of two that have others it does not matter which is asked.
func TestToldBothOfADecisionWithVariants(t *testing.T) {
	d := func(choice, variant string) *Decision {
		d := &Decision{ID: "d", Description: choice}
		if variant != "" {
			d.Variants = []Variant{{Decision: variant}}
		}
		return d
	}
	first, b, c := d("a", ""), d("b", ""), d("c", "")
	for _, exchanged := range []bool{false, true} {
		told := func(one, left, other, right *Decision) string {
			if exchanged {
				one, left, other, right = other, right, one, left
			}
			return say(toldBoth(first, one, left, other, right))
		}
		if got := told(c, d("c", "x"), b, d("y", "")); got != say(c) {
			t.Errorf("exchanged %t: told is %s, want what one knows that has got a variant", exchanged, got)
		}
		if got := told(d("b", "x"), b, d("b", "y"), b); got != say(d("b", "x")) {
			t.Errorf("exchanged %t: of two that differ in variants %s is told", exchanged, got)
		}
	}
}

// Every section is told by the record that knows it.
func TestToldOfEachSection(t *testing.T) {
	all := func(of string) *Record {
		r := &Record{
			Task:             Task{ID: of, Goal: of, SuccessCriteria: []string{of}, Status: TaskStatus(of), StartedAt: int64(len(of))},
			Decisions:        []Decision{{ID: "i", Description: of}},
			Learnings:        []Learning{{ID: "i", Content: of}},
			QuestionsForUser: []Question{{ID: "i", Question: of}},
			Blockers:         []Blocker{{ID: "i", Description: of}},
			ResumePoints:     []ResumePoint{{ID: "i", Label: of}},
			ToolEffects:      []ToolEffect{{ID: "i", ToolName: of}},
			Invariants:       []Invariant{{ID: "i", Description: of}},
			Metadata:         Metadata{Tags: []string{of}, Priority: Priority(of), EstimatedRemainingWork: of},
		}
		r.plain()
		return r
	}
	before, now, people := all("before"), all("now"), all("people's")
	for name, g := range map[string]agreement{
		"the one":   {first: before, one: now, left: now, other: before, right: people},
		"the other": {first: before, one: before, left: people, other: now, right: now},
	} {
		if told := content(g.told()); told != content(now) {
			t.Errorf("%s knows: told is %s, want %s", name, told, content(now))
		}
	}
	if say(before) != say(all("before")) || say(now) != say(all("now")) {
		t.Error("the records that were asked have changed")
	}
}
