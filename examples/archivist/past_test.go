package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

const dune = "What is Dune about?"

// runs counts the runs of a store.
func runs(t *testing.T, dir string) int {
	t.Helper()
	store := openStore(t, dir)
	defer store.Close()
	all, err := store.List(t.Context(), checkpoint.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// A fork begins at the checkpoint, with the other question, under an id of its own, and comes to
// what that question would have come to. The run that was forked does not change.
func TestForkWithAnotherQuestion(t *testing.T) {
	store := t.TempDir()
	first := ask(t, store, "-run", "maze").exits(t, 0).report(t)
	for at, beginning := range map[string]string{"0": "ask", "1": "recall"} {
		o := archivist(t, "-store", store, "-run", "maze", "-json", "-fork", at, dune).exits(t, 0)
		r := o.report(t)
		if r.Run == "maze" || len(r.Citations) == 0 || r.Citations[0].Title != "Dune" {
			t.Errorf("forked at %s: run %q cites %v", at, r.Run, r.Citations)
		}
		if o := archivist(t, "-store", store, "-run", r.Run, "-blame", "Query").exits(t, 0); !strings.Contains(o.stdout, "edit the command line") {
			t.Errorf("forked at %s: the question was written by\n%s", at, o.stdout)
		}
		if len(r.Nodes) == 0 || r.Nodes[0].Path != beginning {
			t.Errorf("forked at %s: it begins with %v, want %s", at, r.Nodes, beginning)
		}
	}
	if again := ask(t, store, "-run", "maze").exits(t, 0).report(t); again.Answer != first.Answer || len(again.Nodes) > 0 {
		t.Errorf("the run that was forked answers\n%s\nafter %v", again.Answer, again.Nodes)
	}
	if n := runs(t, store); n != 3 {
		t.Errorf("there are %d runs, want 3", n)
	}
}

// A run of which nothing can be told is passed by where the newest is meant, and told of.
func TestTheNewestRunThatCanBeRead(t *testing.T) {
	store := new(memory.Faulty)
	d := dispatch(t, defaultLibrary(t), store, dispatcher.Options{})
	for _, run := range []string{"old", "new"} {
		if _, err := d.Run(t.Context(), run, func(q *Inquiry) { q.Query.Set("hello") }); err != nil {
			t.Fatal(err)
		}
	}
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	s := &session{config: new(config), dispatcher: d, stderr: stderr}
	store.Spoil("new", checkpoint.PartInfo)
	if id, err := s.newest(); id != "old" || err != nil {
		t.Errorf("the newest is %q, %v, want old", id, err)
	}
	told, err := os.ReadFile(stderr.Name())
	if want := "archivist: run new can't be read: "; !strings.HasPrefix(string(told), want) || strings.Count(string(told), "\n") != 1 {
		t.Errorf("told %q, %v, want %q", told, err, want)
	}
	s.answer = new("borges")
	if id, err := s.newest(); id != "" || !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "-run") {
		t.Errorf("an answer that may be for new is given to %q, %v", id, err)
	}
	s.answer = nil
	store.Spoil("old", checkpoint.PartInfo)
	if id, err := s.newest(); id != "" || !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("of no run that can be read the newest is %q, %v", id, err)
	}
}

// Settings that are refused are refused before anything is answered or forked.
func TestRefusedSettingsLeaveNothingBehind(t *testing.T) {
	store := t.TempDir()
	const model = "sk-0123456789abcdefghijklmnopqrstuvwxyzABCDEF"
	archivist(t, "-store", store, "-approve", "-run", "r", labyrinth).exits(t, 3)
	archivist(t, "-store", store, "-resume", "-model", model, "-answer", "approve").complains(t, 1, "secret")
	archivist(t, "-store", store, "-fork", "0", "-model", model, dune).complains(t, 1, "secret")
	if n := runs(t, store); n != 1 {
		t.Errorf("there are %d runs, want 1", n)
	}
	if r := ask(t, store, "-run", "r").exits(t, 3).report(t); len(r.Interrupts) != 1 {
		t.Errorf("interrupts %v, want the question", r.Interrupts)
	}
}

// Without another question a fork comes to the same answer, from any checkpoint, and runs only what
// follows it; by default it is one of the newest run. It can be stopped and resumed as any run.
func TestForkWithTheSameQuestion(t *testing.T) {
	store := t.TempDir()
	first := ask(t, store).exits(t, 0).report(t)
	r := archivist(t, "-store", store, "-json", "-fork", "compose-loop/1@2", "-cancel-at", "respond").exits(t, 3).report(t)
	if got, want := paths(r.Nodes), []string{"compose-loop/2/compose", "compose-loop/2/validate"}; !slices.Equal(got, want) {
		t.Errorf("the fork ran %q, want %q", got, want)
	}
	r = archivist(t, "-store", store, "-json", "-run", r.Run, "-resume").exits(t, 0).report(t)
	if r.Answer != first.Answer {
		t.Errorf("the fork answers\n%s\nwant\n%s", r.Answer, first.Answer)
	}
	if o := archivist(t, "-store", store, "-run", first.Run, "-fork", "6").exits(t, 0); !strings.Contains(o.stderr, "this is a fork of run "+first.Run+" at 6") {
		t.Errorf("nothing tells of the fork:\n%s", o.stderr)
	}
	again := ask(t, store).exits(t, 0).report(t)
	for _, at := range []string{"0", "6"} {
		o := archivist(t, "-store", store, "-run", again.Run, "-fork", at).exits(t, 0)
		if strings.Contains(o.stderr, "asked before") {
			t.Errorf("the fork at %s tells of an earlier run, which is its origin's:\n%s", at, o.stderr)
		}
	}
}

// Where there is no such checkpoint there is no fork.
func TestForkRefused(t *testing.T) {
	store := t.TempDir()
	archivist(t, "-store", store, "-fork", "1").complains(t, 1, "no runs")
	ask(t, store, "-run", "maze").exits(t, 0)
	for _, at := range []string{"99", "nowhere@1", "maze@9999", "other@3"} {
		archivist(t, "-store", store, "-fork", at, dune).complains(t, 1, at)
	}
	archivist(t, "-store", store, "-run", "other", "-fork", "1", dune).complains(t, 1, "other")
	for _, at := range []string{"2", "3", "search@1", "compose-loop/1@2"} {
		archivist(t, "-store", store, "-run", "maze", "-fork", at, dune).complains(t, 1, "at checkpoint "+at+" the question was taken in already", "at 0 or 1")
	}
	if n := runs(t, store); n != 1 {
		t.Errorf("there are %d runs, want 1", n)
	}
}

// Who wrote a cell is told by visit, in its iteration, oldest first.
func TestBlame(t *testing.T) {
	store := t.TempDir()
	archivist(t, "-store", filepath.Join(store, "absent"), "-blame", "Answer").complains(t, 1, "no runs")
	ask(t, store, "-run", "maze").exits(t, 0)
	for cell, want := range map[string][]string{
		"Answer":    {"visit respond"},
		"Draft":     {"visit compose-loop/2/compose"},
		"Attempts":  {"visit compose-loop/1/compose", "visit compose-loop/2/compose"},
		"Query":     {"input "},
		"Shortlist": {"visit search"},
		"Verdict":   nil,
	} {
		o := archivist(t, "-store", store, "-json", "-blame", cell).exits(t, 0)
		var found accusation
		if err := json.Unmarshal([]byte(o.stdout), &found); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range found.Writers {
			got = append(got, w.Kind+" "+w.Path)
			if !strings.HasPrefix(w.Address, "maze@") || w.At.IsZero() {
				t.Errorf("%s was written %+v", cell, w)
			}
		}
		if found.Run != "maze" || found.Cell != cell || !slices.Equal(got, want) {
			t.Errorf("%s of run %q was written by %q, want %q", cell, found.Run, got, want)
		}
	}
	if o := archivist(t, "-store", store, "-run", "maze", "-blame", "Answer").exits(t, 0); !regexp.MustCompile(`^maze@\d+  visit respond  \d{4}-.*\n$`).MatchString(o.stdout) {
		t.Errorf("-blame Answer prints\n%s", o.stdout)
	}
	archivist(t, "-store", store, "-blame", "Price").complains(t, 1, "Price")
	archivist(t, "-store", store, "-run", "other", "-blame", "Answer").complains(t, 1, "other")
}
