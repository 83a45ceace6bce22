package state_test

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/state"
)

// A cell that was assigned to is named, of whatever type it is, also if it was written to before or
// behind that.
func TestAssignedCellsAreNamed(t *testing.T) {
	schema := schemaOf[every](t)
	full := filled(t, schema)
	write(t, full, func(e *every) {
		e.Value.Set("other")
		e.List.Append("other")
		e.Map.Put("other", 2)
		e.Sum.Add(2)
		e.Fold.Set(trail{"other"})
	})
	other := full.Value().(*every)
	for cell, assign := range map[string]func(s *every){
		"Value": func(s *every) { s.Value = other.Value },
		"Whole": func(s *every) { s.Whole = state.Whole[book]{} },
		"List":  func(s *every) { s.List = other.List; s.List.Append("behind") },
		"Map":   func(s *every) { s.Map.Put("before", 1); s.Map = other.Map },
		"Set":   func(s *every) { s.Set = state.Set[string]{} },
		"Sum":   func(s *every) { s.Sum = other.Sum },
		"Fold":  func(s *every) { s.Fold = other.Fold; s.Fold.Merge(trail{"behind"}) },
	} {
		for name, base := range map[string]state.Image{"filled": filled(t, schema), "zero": {}} {
			draft := schema.New()
			if name == "filled" {
				draft = base.Draft()
			}
			assign(draft.Value().(*every))
			var e *state.AssignError
			if err := assigned(draft, base); name == "zero" && (cell == "Whole" || cell == "Set") {
				if err != nil { // nothing to what was nothing
					t.Errorf("%s, %s: %v", cell, name, err)
				}
			} else if !errors.As(err, &e) || e.Cell != cell {
				t.Errorf("%s, %s: %v, want an AssignError of the cell", cell, name, err)
			}
		}
	}
}

func assigned(draft, base state.Image) error { return draft.DeltaFrom(base, new(state.Delta)) }

// What a draft wrote with methods is no assignment, nor is what changes nothing; it is told from
// what the image had when the draft was made, from whatever memory.
func TestAssignedToIsNotWrittenTo(t *testing.T) {
	schema := schemaOf[every](t)
	base, same := filled(t, schema), filled(t, schema).Value().(*every)
	slab := state.Slab{Most: 4}
	again := schema.New()
	again.CopyFrom(base)
	for name, draft := range map[string]state.Image{"draft": base.Draft(), "slab": slab.Draft(base), "copy": again} {
		s := draft.Value().(*every)
		was := *s
		for range 2 {
			s.Value.Clear()
			s.Whole.Update(func(b book) book { return b })
			s.List.SetAt(0, "other")
			s.Map.Delete("map")
			s.Set.Clear()
			s.Sum.Set(0)
			s.Fold.Merge(trail{"more"})
		}
		_, _, _ = s.Value.Get(), s.List.Slice(), s.Fold.Get()
		if err := assigned(draft, base); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		*s = was                                                   // takes back what was written
		s.List, s.Fold, s.Value = same.List, same.Fold, same.Value // from another log, say
		if d, err := draft.Delta(); err != nil || !d.IsZero() || assigned(draft, base) != nil {
			t.Errorf("%s: %s, %v, %v", name, d.AppendJSON(nil), err, assigned(draft, base))
		}
	}
}

// A scribbler is a state whose Check writes.
type scribbler struct {
	Sum  state.Sum[int]
	Said state.List[string]
}

var writesInCheck func(*scribbler)

func (s *scribbler) Check() error {
	writesInCheck(s)
	return nil
}

// A Check that writes, or assigns, is refused by the name of the cell, and nothing of it is in the
// image; what the image has pending is seen by a Check, and stays.
func TestCheckMayNotWrite(t *testing.T) {
	img := schemaOf[scribbler](t).New()
	img.Value().(*scribbler).Sum.Add(1)
	for want, f := range map[string]func(*scribbler){
		"": func(s *scribbler) { _, _ = s.Sum.Get(), s.Said.Slice() },
		`state: Check has written to cell "Sum": it may only read`:  func(s *scribbler) { s.Sum.Add(s.Sum.Get()) },
		`state: Check has written to cell "Said": it may only read`: func(s *scribbler) { s.Said.Append("checked") },
	} {
		writesInCheck = f
		text := ""
		if err := img.Check(); err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	writesInCheck = func(s *scribbler) { *s = scribbler{} }
	if err := img.Check(); err == nil {
		t.Error("a Check that assigns is not refused")
	}
	if d, err := img.Delta(); err != nil || string(d.AppendJSON(nil)) != `{"Sum":{"add":1}}` {
		t.Errorf("the image has %s, %v", d.AppendJSON(nil), err)
	}
}
