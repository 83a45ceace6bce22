package dispatcher_test

import (
	"bytes"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A run that was trimmed, and then imported, goes on in a graph that has grown as it would have where it was, and so are
// its checkpoints read, though no entry of its log names the graphs that made it.
func TestTrimmedRunTakesItsGraphsAlong(t *testing.T) {
	var w witness
	var first, second memory.Store
	changeHeld(t, changeLine(t, &w, "a", "b"), &first, "b")
	grown := process(t, changeLine(t, &w, "a", "b", "c"), &first, dispatcher.Options{InterruptBefore: []string{"c"}})
	if err := grown.Tag(t.Context(), run, "1", "first"); err != nil {
		t.Fatal(err)
	}
	res, err := grown.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
	if err := grown.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
		t.Fatal(err)
	}

	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), &first, run, &file); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Import(t.Context(), &second, &file, checkpoint.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	d := process(t, changeLine(t, &w, "a", "b", "c", "d"), &second, dispatcher.Options{})
	if res, err = d.At(t.Context(), run, "tag:first"); err != nil {
		t.Fatal(err)
	}
	says(t, res.State, "a")
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	says(t, res.State, "a", "b", "c", "d")
}
