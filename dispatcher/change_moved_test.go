package dispatcher_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// otherGraphs has another graph under each digest.
type otherGraphs struct{ *memory.Store }

func (otherGraphs) Graph(context.Context, string) ([]byte, error) { return []byte("{}"), nil }

// A run that was trimmed, and then imported, goes on in a graph that has grown as it would have
// where it was, and so are its checkpoints read, though no entry of its log names the graphs that
// made it.
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
	found := 0
	for f, err := range checkpoint.Verify(t.Context(), otherGraphs{&first}, run) {
		if err != nil || f.Part != checkpoint.PartGraph {
			t.Fatalf("Verify yields %v, %v", f, err)
		}
		found++
	}
	if found != 2 {
		t.Errorf("Verify finds %d graphs that are others, want those of both bases", found)
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

// So it does with the graph that it has gone back to, if nothing but the entry that says so names
// it any more.
func TestTrimmedRunTakesTheGraphOfARewindAlong(t *testing.T) {
	var w witness
	var first, second memory.Store
	changeHeld(t, changeLine(t, &w, "a", "b"), &first, "b")
	grown := process(t, changeLine(t, &w, "a", "b", "c"), &first, dispatcher.Options{InterruptBefore: []string{"c"}})
	res, err := grown.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
	if err := grown.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := grown.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), &first, run, &file); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Import(t.Context(), &second, &file, checkpoint.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]*memory.Store{"the original": &first, "the import": &second} {
		res, err := process(t, changeLine(t, &w, "a", "b", "c"), store, dispatcher.Options{}).Resume(t.Context(), run)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		says(t, res.State, "a", "b", "c")
	}
}
