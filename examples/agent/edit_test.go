package main

import (
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/agent/script"
)

// What a person edits is what the model sees next; what would contradict the rest is refused.
func TestAPersonEditsTheMind(t *testing.T) {
	var heard []script.Prompt
	w := newWorld(t, func(p script.Prompt) script.Line {
		heard = append(heard, p)
		return script.Mountaineer(p)
	})
	res := w.goes(t, noteIt, "file")
	edit := func(f func(*Mind)) error {
		return w.Edit(t.Context(), "r", f, dispatcher.EditOptions{Frame: "work"}, dispatcher.Author("ada"))
	}
	if err := edit(func(m *Mind) { m.Beliefs.Put("b", Belief{Evidence: []string{"hearsay"}}) }); err == nil || !strings.Contains(err.Error(), "fact hearsay, which is missing") {
		t.Errorf("dangling evidence: %v", err)
	}
	if err := edit(func(m *Mind) { m.Assumptions.Put("snow", Assumption{Content: "with the snow on top"}) }); err != nil {
		t.Fatal(err)
	}
	w.says(t, res, "alps.txt")
	w.says(t, w.goes(t, "", "note"), dispatcher.Approve)
	m := w.goes(t, "", "").State
	if a, ok := m.Assumptions.Get("snow"); !ok || a.Content != "with the snow on top" || m.Beliefs.Has("b") {
		t.Errorf("assumes %+v", a)
	}
	if last := heard[len(heard)-2]; !strings.Contains(string(last.Material), "with the snow on top") {
		t.Errorf("the model was not told: %s", last.Material)
	}
}
