package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A cancel just before any visit leaves a cursor at it; a resume in a new process begins there,
// runs nothing again, and comes to the same answer.
func TestCancelAtEveryVisit(t *testing.T) {
	want := undisturbed(t)
	for _, path := range append([]string{"search", "compose-loop"}, everyVisit...) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			testCancelAt(t, path, want)
		})
	}
}

func testCancelAt(t *testing.T, path string, want report) {
	store := t.TempDir()
	first := ask(t, store, "-cancel-at", path).exits(t, 3).report(t)
	if first.Status != checkpoint.StatusCancelled || first.Answer != "" || len(first.Warnings) != 0 {
		t.Errorf("status %s, answer %q, warnings %q", first.Status, first.Answer, first.Warnings)
	}
	at := path
	switch path { // that has no body: the run stands inside
	case "search":
		at = "search/plan"
	case "compose-loop":
		at = "compose-loop/1/compose"
	}
	if !slices.Contains(first.Cursor, at) {
		t.Errorf("cursor %q, want it at %s", first.Cursor, at)
	}
	if slices.Contains(paths(first.Nodes), path) {
		t.Errorf("%s has run", path)
	}
	second := archivist(t, "-store", store, "-json", "-resume").exits(t, 0).report(t)
	if second.Run != first.Run || second.Answer != want.Answer || !slices.Equal(second.Citations, want.Citations) {
		t.Errorf("run %s answers\n%s\nwant run %s and\n%s", second.Run, second.Answer, first.Run, want.Answer)
	}
	if second.Superstep != want.Superstep {
		t.Errorf("superstep %d, want %d", second.Superstep, want.Superstep)
	}
	all := append(paths(first.Nodes), paths(second.Nodes)...)
	if !sameSet(all, paths(want.Nodes)) {
		t.Errorf("executed %q and then %q, want each visit once", paths(first.Nodes), paths(second.Nodes))
	}
}

// The example of the README, word for word.
func TestCancelInsideTheLoop(t *testing.T) {
	store := t.TempDir()
	first := ask(t, store, "-cancel-at", "compose-loop/2/validate").exits(t, 3).report(t)
	if want := []string{"compose-loop/2/validate"}; !slices.Equal(first.Cursor, want) {
		t.Errorf("cursor %q, want %q", first.Cursor, want)
	}
	second := archivist(t, "-store", store, "-json", "-resume").exits(t, 0).report(t)
	if got, want := paths(second.Nodes), []string{"compose-loop/2/validate", "respond"}; !slices.Equal(got, want) {
		t.Errorf("resumed with %q, want %q", got, want)
	}
}

func TestAVisitNeverReachedIsAWarning(t *testing.T) {
	o := ask(t, t.TempDir(), "-cancel-at", "compose-loop/3/compose").exits(t, 0)
	if w := o.report(t).Warnings; len(w) != 1 || !strings.Contains(w[0], "compose-loop/3/compose") {
		t.Errorf("warnings %q, want one that names the visit", w)
	}
	for _, path := range []string{"nowhere", "compose-loop/4/validate", "compose-loop/validate", "compose-loop/1"} {
		o = ask(t, t.TempDir(), "-cancel-at", path).exits(t, 0)
		if want := "warning: -cancel-at: the graph has no visit"; !strings.Contains(o.stderr, want) && !strings.Contains(o.stdout, "the graph has no visit") {
			t.Errorf("-cancel-at %s told %q, want %q", path, o.stderr, want)
		}
	}
	o = archivist(t, "-store", t.TempDir(), "-cancel-at", "search/library", "hello").exits(t, 0)
	if !strings.Contains(o.stderr, "warning: -cancel-at: the run did not come to search/library") {
		t.Errorf("no warning:\n%s", o.stderr)
	}
	store := t.TempDir() // a visit that is done is not reached by a resume
	ask(t, store, "-cancel-at", "search/rank").exits(t, 3)
	o = archivist(t, "-store", store, "-json", "-resume", "-cancel-at", "search/library").exits(t, 0)
	if w := o.report(t).Warnings; len(w) != 1 {
		t.Errorf("warnings %q, want one", w)
	}
}

func TestCancelAfterAndDeadline(t *testing.T) {
	want := undisturbed(t).Answer
	for flag, status := range map[string]checkpoint.Status{
		"-cancel-after": checkpoint.StatusCancelled, "-deadline": checkpoint.StatusTimedOut,
	} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			testStopAfter(t, flag, status, want)
		})
	}
}

func testStopAfter(t *testing.T, flag string, status checkpoint.Status, want string) {
	var store string
	var first report
	for after := time.Second; ; after *= 2 { // how far a run comes in that time is the machine's affair
		store = t.TempDir()
		first = ask(t, store, "-slow", "1h", flag, after.String()).exits(t, 3).report(t)
		if slices.Equal(first.Cursor, scouts) || after > time.Minute {
			break
		}
		if first.Status != status || first.Superstep > 3 {
			t.Errorf("%s at %q after superstep %d", first.Status, first.Cursor, first.Superstep)
		}
	}
	if first.Status != status || !slices.Equal(first.Cursor, scouts) || first.Superstep != 3 {
		t.Errorf("%s at %q after superstep %d, want %s at the scouts after 3",
			first.Status, first.Cursor, first.Superstep, status)
	}
	second := archivist(t, "-store", store, "-json", "-resume").exits(t, 0).report(t)
	if second.Answer != want || second.Nodes[0].Superstep != 2 {
		t.Errorf("resumed at superstep %d and answers\n%s", second.Nodes[0].Superstep, second.Answer)
	}
	none := ask(t, t.TempDir(), flag, "0").exits(t, 3).report(t) // at once
	if none.Status != status || len(none.Nodes) != 0 || !slices.Equal(none.Cursor, []string{"ask"}) {
		t.Errorf("after 0: %s at %q, executed %q", none.Status, none.Cursor, paths(none.Nodes))
	}
	if r := ask(t, t.TempDir(), flag, "1h").exits(t, 0).report(t); r.Answer != want {
		t.Errorf("after 1h: the answer is\n%s", r.Answer)
	}
}

func TestRestsAreToldWithTheCommandThatGoesOn(t *testing.T) {
	store := t.TempDir()
	for _, c := range []struct {
		args []string
		word string
	}{
		{[]string{"-cancel-at", "search/cite", labyrinth}, "cancelled at search/cite"},
		{[]string{"-deadline", "0", labyrinth}, "timed out at ask"},
		{[]string{}, "ask asks: What would you like to read about?"},
	} {
		o := archivist(t, append([]string{"-store", store}, c.args...)...).exits(t, 3)
		next := "go on with: " + binary + " -store " + store + " -run "
		if o.stdout != "" || !strings.Contains(o.stderr, c.word) || !strings.Contains(o.stderr, next) {
			t.Errorf("archivist %q printed %q and\n%s", c.args, o.stdout, o.stderr)
		}
	}
}
