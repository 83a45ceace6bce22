package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// rejectedNames are what the nodes of a graph are called that has changed meanwhile.
var rejectedNames = map[string]map[string]string{
	"grown":   {"more": "more"},
	"renamed": {"rounds": "turns", "items": "list", "house": "home", "held": "kept"},
}

// rejectedIn is a run in store that has failed, and in which somebody has rejected what waited at a
// place. It returns a dispatcher, as another process, of a graph that has changed in a way, and the
// path of the place there.
func rejectedIn(t *testing.T, w *witness, store checkpoint.Store, c rejectedPlace, how string) (next *dispatcher.Dispatcher[Tale], path string) {
	t.Helper()
	broken := true
	g, o := rejectedGraph(t, w, &broken, nil), dispatcher.Eager(c.options)
	res, err := process(t, g, store, o).Run(t.Context(), run, nil)
	if res.Status != checkpoint.StatusFailed || len(res.Interrupts) != 1 {
		t.Fatalf("the run is %s, and waits for %v: %v", res.Status, res.Interrupts, err)
	}
	if err := process(t, g, store, o).Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Reject); err != nil {
		t.Fatal(err)
	}
	w.took()
	broken = false
	names, path := rejectedNames[how], c.path
	o = dispatcher.Eager(dispatcher.Options{})
	if how == "renamed" {
		o.Migrations = []dispatcher.Migration{{Name: how, Nodes: names}}
		node, inside, _ := strings.Cut(c.path, "/")
		if path = names[node]; inside != "" {
			path += "/" + inside
		}
	}
	return process(t, rejectedGraph(t, w, &broken, names), store, o), path
}

// rejectedStays checks that a run goes on, behind a change of its graph, with what a person has
// rejected.
func rejectedStays(t *testing.T, w *witness, store checkpoint.Store, d *dispatcher.Dispatcher[Tale], c rejectedPlace, path string) {
	t.Helper()
	res, err := d.Run(t.Context(), run, nil)
	var n *dispatcher.NodeError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &n) || n.Kind != dag.FailedRejected || n.Path != path {
		t.Fatalf("the run is %s at %q, %v, want %s rejected", res.Status, res.Cursor.Visits, err, path)
	}
	w.expect(t, "bad#2")
	sameMachine(t, d, run)
	timeReplayed(t, d, store)
	if res, err = d.Resume(t.Context(), run); res.Status != checkpoint.StatusCompleted {
		t.Fatalf("the run is %s, %v, want the rejection overruled", res.Status, err)
	}
	sameMachine(t, d, run)
}

// What a person has rejected while the run rested Failed has failed when it goes on, also if its
// graph is another one then: whether the run itself comes to it, or somebody edits it before that.
func TestRejectedWhileFailedAndChanged(t *testing.T) {
	t.Parallel()
	for name, c := range rejectedPlaces() {
		for how := range rejectedNames {
			for _, edited := range []bool{false, true} {
				t.Run(name+", "+how+map[bool]string{true: ", edited"}[edited], func(t *testing.T) {
					t.Parallel()
					var w witness
					store := new(memory.Store)
					d, path := rejectedIn(t, &w, store, c, how)
					if edited {
						edit := func(s *Tale) { s.Word.Set("edited") }
						if err := d.Edit(t.Context(), run, edit, dispatcher.EditOptions{Reason: "it was wrong"}, dispatcher.Author("Ada")); err != nil {
							t.Fatal(err)
						}
						sameMachine(t, d, run)
					}
					rejectedStays(t, &w, store, d, c, path)
				})
			}
		}
	}
}

// Where an earlier build has brought a run to another graph the rejection is lost, and what that
// has run since has run: its log is read as it is.
func TestRejectedWhileFailedAndChangedByAnEarlierBuild(t *testing.T) {
	t.Parallel()
	var w witness
	store := &tampered{Store: new(memory.Store), before: func(_ context.Context, c call) error {
		for i := range c.entries {
			if e := &c.entries[i]; e.Kind == checkpoint.Migrated {
				var d map[string]json.RawMessage
				var m map[string]json.RawMessage
				if err := errors.Join(json.Unmarshal(e.Data, &d), json.Unmarshal(d["machine"], &m)); err != nil {
					return err
				}
				delete(m, "fresh")
				d["machine"] = json.RawMessage(asJSON(t, m))
				e.Data = json.RawMessage(asJSON(t, d))
			}
		}
		return nil
	}}
	d, path := rejectedIn(t, &w, store, rejectedPlaces()["before"], "grown")
	o := dispatcher.EditOptions{Reason: "it was wrong"}
	if err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("edited") }, o, dispatcher.Author("Ada")); err != nil {
		t.Fatal(err)
	}
	broken := false
	g := rejectedGraph(t, &w, &broken, rejectedNames["grown"])
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "bad#2", path, "last", "more")
	sameMachine(t, process(t, g, store, dispatcher.Options{}), run)
}
