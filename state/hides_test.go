package state_test

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// What comes later hides what an earlier write did if the two would conflict beside each other,
// but for one case: what merges is merged into what was written exclusively before it.
func TestHidesIsExactlyTheTable(t *testing.T) {
	s := schemaOf[every](t)
	view := filled(t, s)
	merging := map[string]bool{
		"Append": true, "PutA": true, "PutB": true, "DeleteA": true, "DeleteB": true, "AddA": true, "AddB": true,
		"RemoveA": true, "RemoveB": true, "Add": true, "AddNone": true, "Merge": true,
	}
	for _, cell := range actions {
		for _, a := range cell.ops {
			for _, b := range cell.ops {
				first := state.Write{Visit: "a", Delta: draft(t, view, a.do)}
				then := state.Write{Visit: "b", Delta: draft(t, view, b.do)}
				want := state.Conflicts(s, []state.Write{first, then}) != nil && (merging[a.name] || !merging[b.name])
				err := state.Hides(s, first, then)
				if (err != nil) != want {
					t.Errorf("%s: %s then %s: %v, want it hidden: %t", cell.cell, a.name, b.name, err, want)
				}
				var c *state.ConflictError
				if err != nil && (!errors.As(err, &c) || c.Cell != cell.cell || c.Visits != [2]string{"a", "b"}) {
					t.Errorf("%s: %s then %s: %#v", cell.cell, a.name, b.name, err)
				}
			}
		}
	}
}

// Writes to different cells don't hide each other; of several keys the first one is named.
func TestHidesNamesTheFirst(t *testing.T) {
	s := schemaOf[every](t)
	view := filled(t, s)
	first := state.Write{Visit: "a", Delta: draft(t, view, func(e *every) {
		e.Value.Set("x")
		e.Map.Replace(map[string]int{"z": 1, "k": 1})
	})}
	err := state.Hides(s, first, state.Write{Delta: draft(t, view, func(e *every) { e.Sum.Set(1); e.Map.Put("y", 1) })})
	if err != nil {
		t.Errorf("other cells and keys: %v", err)
	}
	err = state.Hides(s, first, state.Write{Delta: draft(t, view, func(e *every) { e.Sum.Set(1); e.Map.Put("z", 1); e.Map.Delete("k") })})
	var c *state.ConflictError
	if !errors.As(err, &c) || c.Cell != "Map" || c.Key != "k" {
		t.Errorf("two keys: %v", err)
	}
}
