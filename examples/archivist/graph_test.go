package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// dispatch makes a paranoid dispatcher of the archivist's graph.
func dispatch(
	t *testing.T, lib *Library, store checkpoint.Store, o dispatcher.Options,
) *dispatcher.Dispatcher[Inquiry] {
	t.Helper()
	graph, err := newGraph(lib)
	if err != nil {
		t.Fatal(err)
	}
	o.Paranoid = true
	d, err := dispatcher.New(graph, store, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func archiveOf(t *testing.T, lib *Library, d *dispatcher.Dispatcher[Inquiry], store checkpoint.Store) *archive {
	t.Helper()
	graph, err := newGraph(lib)
	if err != nil {
		t.Fatal(err)
	}
	return &archive{store: store, dispatcher: d, digest: graph.Digest()}
}

var scouts = []string{"search/library", "search/authors", "search/subjects", "search/earlier"}

// everyVisit is what a run of the README's question executes.
var everyVisit = []string{
	"ask", "recall", "classify",
	"search/plan", "search/library", "search/authors", "search/subjects", "search/earlier",
	"search/gather", "search/rank", "search/cite", "weigh",
	"compose-loop/1/compose", "compose-loop/1/validate", "compose-loop/2/compose", "compose-loop/2/validate", "respond",
}

func TestVisits(t *testing.T) {
	graph, err := newGraph(new(Library))
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(visits(graph.Plan(), ""))
	want := append([]string{
		"classify-by-words", "search", "compose-loop", "compose-loop/1/compose-by-rule", "compose-loop/2/compose-by-rule",
		"compose-loop/3/compose", "compose-loop/3/compose-by-rule", "compose-loop/3/validate",
	}, everyVisit...)
	for _, branch := range []string{"describe", "by-author", "similar", "top-rated"} {
		want = append(want, branch)
		for _, path := range everyVisit {
			if node, ok := strings.CutPrefix(path, "search/"); ok {
				want = append(want, branch+"/"+node)
			}
		}
	}
	for _, branch := range []string{"search", "describe", "by-author", "similar", "top-rated"} {
		want = append(want, branch+"/ratings", branch+"/online")
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("visits %q, want %q", got, want)
	}
	for _, path := range []string{
		"", "nothing", "compose-loop/", "compose-loop/1", "compose-loop/validate",
		"compose-loop/4/validate", "compose-loop/01/validate", "library", "search/1/library",
	} {
		if isVisit(graph.Plan(), path) {
			t.Errorf("%q names a visit", path)
		}
	}
}

// Interrupts before and after a node, at the top and inside the loop, in one iteration or in all:
// each pauses once, and every node runs once.
func TestInterrupts(t *testing.T) {
	lib := defaultLibrary(t)
	undisturbed := respond(t, lib, labyrinth).Answer.Get()
	for path, pauses := range map[string]int{
		"ask": 1, "classify": 1, "search": 1, "search/library": 1, "search/subjects": 1, "search/rank": 1,
		"compose-loop": 1, "respond": 1,
		"compose-loop/compose": 2, "compose-loop/validate": 2,
		"compose-loop/1/compose": 1, "compose-loop/2/validate": 1, "compose-loop/3/validate": 0,
	} {
		for _, after := range []bool{false, true} {
			o := dispatcher.Options{InterruptBefore: []string{path}}
			name, kind := "before "+path, dispatcher.KindBefore
			if after {
				o = dispatcher.Options{InterruptAfter: []string{path}}
				name, kind = "after "+path, dispatcher.KindAfter
			}
			t.Run(name, func(t *testing.T) {
				testInterrupt(t, lib, o, kind, pauses, undisturbed)
			})
		}
	}
}

func testInterrupt(t *testing.T, lib *Library, o dispatcher.Options, kind dispatcher.InterruptKind, pauses int, answer string) {
	graph, err := newGraph(lib)
	if err != nil {
		t.Fatal(err)
	}
	rec := newRecorder(graph.Plan())
	o.Observe = rec.observe
	var store memory.Store
	d := dispatch(t, lib, &store, o)
	res, err := d.Run(t.Context(), "r", func(q *Inquiry) { q.Query.Set(labyrinth) })
	var seen []string
	for errors.Is(err, dispatcher.ErrInterrupted) {
		if len(res.Interrupts) != 1 || res.Interrupts[0].Kind != kind {
			t.Fatalf("interrupts %+v, want one of kind %s", res.Interrupts, kind)
		}
		path := res.Interrupts[0].Path
		ran := slices.Contains(paths(rec.visits), path)
		if path != "compose-loop" && path != "search" && ran != (kind == "after") {
			t.Errorf("paused %s %s, and it has run: %t", kind, path, ran)
		}
		seen = append(seen, path)
		res, err = d.Resume(t.Context(), "r")
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != pauses || len(slices.Compact(slices.Clone(seen))) != pauses {
		t.Errorf("paused at %q, want %d times, each once", seen, pauses)
	}
	if got := paths(rec.visits); !sameSet(got, everyVisit) {
		t.Errorf("executed %q, want each of %q once", got, everyVisit)
	}
	if got := res.State.Answer.Get(); got != answer {
		t.Errorf("answer\n%s\nwant that of an undisturbed run\n%s", got, answer)
	}
}

// The answer to what a run asks is the question that every later node sees.
func TestAnAnswerIsTheQuestion(t *testing.T) {
	lib := defaultLibrary(t)
	var store memory.Store
	d := dispatch(t, lib, &store, dispatcher.Options{InterruptBefore: []string{"recall"}})
	res, err := d.Run(t.Context(), "r", nil)
	for _, answer := range []string{" ", "", "borges"} { // a blank answer is asked again
		if !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != 1 || res.Interrupts[0].Kind != dispatcher.KindAsked {
			t.Fatalf("%v, interrupts %+v, want one that asks", err, res.Interrupts)
		}
		if err := d.Answer(t.Context(), "r", res.Interrupts[0].ID, answer); err != nil {
			t.Fatal(err)
		}
		res, err = d.Resume(t.Context(), "r")
	}
	if got := res.State.Query.Get(); got != "borges" {
		t.Errorf("before recall the question is %q, want the answer", got)
	}
	if res, err = d.Resume(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if got := res.State.Answer.Get(); !strings.Contains(got, "“borges”") || !strings.Contains(got, "Ficciones") {
		t.Errorf("the answer is to another question:\n%s", got)
	}
}

func paths(visits []visit) []string {
	var all []string
	for _, v := range visits {
		all = append(all, v.Path)
	}
	return all
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
