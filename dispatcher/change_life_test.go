package dispatcher_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// Part 2, number 54: a graph that has lost a node, or in which a cell that is used is of another
// type, is refused, and what stands in the way is named. A migration that deals with the node lets
// the run go on, and the log names it, and has the digests of both graphs.
func TestLife54ChangedGraph(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	old := changeLine(t, &w, "a", "b", "c")
	changeHeld(t, old, &store, "c")
	w.expect(t, "a", "b")

	before, err := store.Stat(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	next := changeLine(t, &w, "a", "c")
	_, err = process(t, next, &store, dispatcher.Options{}).Resume(t.Context(), run)
	changeRefused(t, &store, before.Head, err, "visit b is done, and its node is gone", "visit c is open, and it followed b and follows a")

	type retyped struct {
		Said  state.List[int]
		Count state.Sum[int]
		Word  state.Value[string]
		Notes state.Map[string, string]
		Tags  state.Set[string]
	}
	b := dag.New[retyped]("line")
	var after []dag.Edge[retyped]
	for _, name := range []string{"a", "b", "c"} {
		after = []dag.Edge[retyped]{dag.Step(b, name, nothing[retyped], after...)}
	}
	_, err = process(t, frozen(t, b), &store, dispatcher.Options{}).Resume(t.Context(), run)
	changeRefused(t, &store, before.Head, err, "cell Said was a list of string and is a list of int")

	d := process(t, next, &store, migrating(dispatcher.Migration{Name: "without b", From: old.Digest(), Nodes: map[string]string{"b": ""}}))
	res, err := d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "c")
	log := readLog(t, &store)
	at := slices.IndexFunc(log, func(e checkpoint.Entry) bool { return e.Kind == checkpoint.Migrated })
	if at < 0 {
		t.Fatal("the log tells of no migration")
	}
	var m checkpoint.Migration
	if err := json.Unmarshal(log[at].Data, &m); err != nil || m.Name != "without b" || m.From != old.Digest() || m.To != next.Digest() || m.From == m.To {
		t.Errorf("the entry tells of migration %q from %s to %s, %v; want from %s to %s", m.Name, m.From, m.To, err, old.Digest(), next.Digest())
	}
}
