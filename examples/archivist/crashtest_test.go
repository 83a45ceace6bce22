package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/pawltest"
)

// crashQuestions are one for each branch of the graph.
var crashQuestions = map[Intent]string{
	Search:   labyrinth,
	Describe: "What is \"Labyrinths\" about?",
	ByAuthor: "Books by Jorge Luis Borges",
	Similar:  "Something like \"Labyrinths\"",
	TopRated: "The best books about love",
	Visits:   "What did I ask before?",
	OffTopic: "How do I cook pasta?",
}

// A crash at any entry of the log changes no answer, and no node needs what another has left
// in memory.
func TestArchivistSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	lib := openLibrary(t, catalogue.Default())
	for _, intent := range crashedBranches {
		question := crashQuestions[intent]
		t.Run(string(intent), func(t *testing.T) {
			q := new(Inquiry)
			q.Query.Set(question)
			if got, err := lib.Classify(t.Context(), q); err != nil || got != intent {
				t.Fatalf("%q is taken for %q, %v", question, got, err)
			}
			pawltest.Crash(t, nil, func(q *Inquiry) { q.Query.Set(question) },
				pawltest.Run(dispatcher.Settings(Settings{Approve: true}, "a test")),
				pawltest.Answers(map[string]any{approval + "-1": Verdict{Decision: Approve}}),
				pawltest.Rebuild(func() *dag.Graph[Inquiry] {
					process := *lib // the index does not change
					return graphOf(t, &process)
				}))
		})
	}
}

// The log of a run is a test of the graph that has made it.
func TestArchivistAgreesWithItsLog(t *testing.T) {
	t.Parallel()
	graph := graphOf(t, openLibrary(t, catalogue.Default()))
	var store memory.Store
	d, err := dispatcher.New(graph, &store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "labyrinth", func(q *Inquiry) { q.Query.Set(labyrinth) }); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "run.log")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := checkpoint.Export(t.Context(), &store, "labyrinth", file); err != nil {
		t.Fatal(err)
	}
	pawltest.Replay(t, name, graph)
}

func graphOf(t *testing.T, lib *Library) *dag.Graph[Inquiry] {
	t.Helper()
	g, err := newGraph(lib)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
