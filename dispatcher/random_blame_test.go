package dispatcher_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// blamedCells is what the writers of cells wrote, one after the other, on an empty state.
func blamedCells(t *testing.T, store checkpoint.Store, blames []dispatcher.Blame) map[string]json.RawMessage {
	t.Helper()
	schema, err := state.Of[cells]()
	if err != nil {
		t.Fatal(err)
	}
	image := schema.New()
	for _, b := range blames {
		for _, w := range b.Writers {
			for e, err := range store.Read(t.Context(), w.Run, w.Seq, w.Seq) {
				if err != nil {
					t.Fatal(err)
				}
				var delta map[string]json.RawMessage
				if err := json.Unmarshal(e.Delta, &delta); err != nil {
					t.Fatalf("%s: %v", w, err)
				}
				d, err := schema.ParseDelta([]byte(asJSON(t, map[string]json.RawMessage{b.Cell: delta[b.Cell]})))
				if err != nil {
					t.Fatalf("%s: %v", w, err)
				}
				if err := image.Apply(d); err != nil {
					t.Fatalf("%s: %v", w, err)
				}
			}
		}
	}
	return cellsIn(t, []byte(image.Draft().Value().(*cells).json()))
}

func cellsIn(t *testing.T, view []byte) map[string]json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(view, &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "F") // of a Fold the merged value is the entry
	return all
}

// blamesAll checks, at every checkpoint of a run, that what those wrote who are blamed for the
// cells is what the cells hold.
func (c *randomCase) blamesAll(t *testing.T, d *dispatcher.Dispatcher[cells], store checkpoint.Store, id string) {
	t.Helper()
	for p, err := range d.History(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.At(t.Context(), id, p.Address())
		if errors.Is(err, dispatcher.ErrNested) || errors.Is(err, checkpoint.ErrCursor) {
			continue // of another type, or over by then
		}
		if err != nil {
			t.Fatal(err)
		}
		blames, err := d.Blame(t.Context(), id, p.Address())
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		got, want := asJSON(t, blamedCells(t, store, blames)), asJSON(t, cellsIn(t, []byte(res.State.json())))
		if got != want {
			t.Errorf("%s %s: those who are blamed wrote\n%s\nand the state is\n%s\nby %v", p.Address(), p, got, want, blames)
		}
	}
}

// Who is blamed for a cell wrote what it holds: at every checkpoint of every frame, of a run, of a
// fork of it, and of it once it was rewound.
func TestRandomGraphsBlame(t *testing.T) {
	t.Parallel()
	n := 0
	eachCase(t, func(t *testing.T, c *randomCase) {
		if n++; n%15 != 2 {
			return
		}
		var store memory.Store
		d := c.newDispatcher(t, &store, dispatcher.Options{})
		if _, err := c.rewindToEnd(t, (&bench{run: runID}).context(t.Context()), d, runID); isRefusal(err) {
			t.Fatal(err)
		}
		c.blamesAll(t, d, &store, runID)
		var points []string
		for p, err := range d.History(t.Context(), runID) {
			if err != nil {
				t.Fatal(err)
			}
			points = append(points, p.Address())
		}
		if len(points) == 0 {
			return
		}
		at := points[n%len(points)]
		if _, err := d.Fork(t.Context(), runID, at, dispatcher.ForkOptions[cells]{Into: []string{"fork"}}); err != nil {
			t.Fatal(err)
		}
		if err := d.Rewind(t.Context(), runID, at, dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"fork", runID} {
			b := &bench{run: id}
			if id == runID {
				b.run += "~1"
			}
			if _, err := c.rewindToEnd(t, b.context(t.Context()), d, id); isRefusal(err) {
				t.Fatal(err)
			}
			c.blamesAll(t, d, &store, id)
		}
	})
}
