package main

import (
	"slices"
	"strings"
	"testing"
)

func TestResumeTakesTheNewestRunThatIsNotCompleted(t *testing.T) {
	store := t.TempDir()
	archivist(t, "-store", store, "-resume").complains(t, 1, "nothing to resume")
	ask(t, store, "-run", "oldest", "-cancel-at", "search/rank").exits(t, 3)
	ask(t, store, "-run", "middle", "-cancel-at", "search/cite").exits(t, 3)
	ask(t, store, "-run", "newest").exits(t, 0)
	for _, want := range []string{"middle", "oldest"} {
		if got := archivist(t, "-store", store, "-json", "-resume").exits(t, 0).report(t).Run; got != want {
			t.Errorf("resumed %q, want %q", got, want)
		}
	}
	archivist(t, "-store", store, "-json", "-resume").complains(t, 1, "nothing to resume")
}

func TestResumeIsStrict(t *testing.T) {
	store := t.TempDir()
	ask(t, store, "-run", "r").exits(t, 0)
	archivist(t, "-store", store, "-resume", "-run", "r").complains(t, 1, `"r"`, "completed")
	archivist(t, "-store", store, "-resume", "-run", "unknown").complains(t, 1, "unknown", "not found")
	archivist(t, "-store", store+"/absent", "-resume", "-run", "r").complains(t, 1, "no runs")
}

// A missing question is asked for; its answer is the question that every later node sees.
func TestAnswer(t *testing.T) {
	for _, question := range [][]string{nil, {""}, {" \t\n"}} {
		store := t.TempDir()
		r := archivist(t, append([]string{"-store", store, "-json"}, question...)...).exits(t, 3).report(t)
		if r.Status != "interrupted" || !slices.Equal(r.Cursor, []string{"ask"}) || r.Superstep != 0 || len(r.Nodes) != 0 {
			t.Errorf("%s at %q, executed %q", r.Status, r.Cursor, paths(r.Nodes))
		}
		if len(r.Interrupts) != 1 {
			t.Fatalf("interrupts %+v, want one", r.Interrupts)
		}
		i := r.Interrupts[0]
		if i.ID == "" || i.Path != "ask" || i.Kind != "asked" || i.Question != "What would you like to read about?" {
			t.Errorf("interrupt %+v", i)
		}
		archivist(t, "-store", store, "-run", r.Run, labyrinth).complains(t, 2, "-answer")
		waiting := archivist(t, "-store", store, "-json", "-resume").exits(t, 3).report(t)
		if !slices.Equal(waiting.Interrupts, r.Interrupts) {
			t.Errorf("a resume without answer has interrupts %+v, want %+v", waiting.Interrupts, r.Interrupts)
		}
		blank := archivist(t, "-store", store, "-json", "-resume", "-answer", " ").exits(t, 3).report(t)
		if len(blank.Interrupts) != 1 || blank.Interrupts[0].ID == r.Interrupts[0].ID {
			t.Errorf("after a blank answer interrupts are %+v, want another one", blank.Interrupts)
		}
		done := archivist(t, "-store", store, "-json", "-resume", "-run", r.Run, "-answer", labyrinth).exits(t, 0).report(t)
		if want := undisturbed(t); done.Answer != want.Answer || !sameSet(paths(done.Nodes), paths(want.Nodes)) {
			t.Errorf("executed %q and answered\n%s\nwant\n%s", paths(done.Nodes), done.Answer, want.Answer)
		}
		// The answered question is now the run's own.
		archivist(t, "-store", store, "-run", r.Run, labyrinth).exits(t, 0)
		archivist(t, "-store", store, "-run", r.Run, "another").complains(t, 2, "another question")
	}
}

func TestAnswerThatIsNotAwaited(t *testing.T) {
	store := t.TempDir()
	ask(t, store, "-run", "held", "-cancel-at", "search/rank").exits(t, 3)
	archivist(t, "-store", store, "-resume", "-run", "held", "-answer", "x").complains(t, 1, "not awaited")
	archivist(t, "-store", store, "-resume", "-run", "unknown", "-answer", "x").complains(t, 1, "unknown")
	// It changed nothing.
	r := archivist(t, "-store", store, "-json", "-resume", "-run", "held").exits(t, 0).report(t)
	if r.Nodes[0].Path != "search/rank" || !strings.Contains(r.Answer, "labyrinth") {
		t.Errorf("resumed at %s with the answer\n%s", r.Nodes[0].Path, r.Answer)
	}
}
