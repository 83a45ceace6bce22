package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// unreadable is a past that can't be read.
func unreadable(err error) func(context.Context, int) iter.Seq2[Earlier, error] {
	return func(context.Context, int) iter.Seq2[Earlier, error] {
		return func(yield func(Earlier, error) bool) { yield(Earlier{}, err) }
	}
}

// What earlier runs were about is remembered in the state, and told when it is asked for.
func TestMemoryOfVisits(t *testing.T) {
	store, lib := new(memory.Store), defaultLibrary(t)
	for run, question := range []string{"What is Dune about?", "hello", "a book about deserts", "deserts, a novel"} {
		answered(t, lib, store, string(rune('a'+run)), question)
	}
	q, _ := answered(t, lib, store, "now", "What have I asked before?")
	context, digest := q.RecalledContext.Get(), q.MemoryDigest.Get()
	want := []PriorIntent{
		{"d", "deserts, a novel", Search}, {"c", "a book about deserts", Search},
		{"b", "hello", OffTopic}, {"a", "What is Dune about?", Describe},
	}
	if !slices.Equal(context.PriorIntents, want) {
		t.Errorf("prior intents %v, want %v", context.PriorIntents, want)
	}
	if want := []IntentCount{{Search, 2}, {Describe, 1}, {OffTopic, 1}}; !slices.Equal(digest.IntentBreakdown, want) {
		t.Errorf("intents %v, want %v", digest.IntentBreakdown, want)
	}
	if digest.QueryCount != 4 || digest.BookCount < 2 || len(digest.RecentBooks) == 0 || len(context.RecentCandidates) == 0 {
		t.Errorf("digest %+v, recent candidates %d", digest, len(context.RecentCandidates))
	}
	for _, says := range []string{
		"I remember 4 questions (2 × search, 1 × describe, 1 × off-topic), which cited ",
		"- “deserts, a novel” (search) - “a book about deserts” (search) - “hello” (off-topic)",
		"The books that I named last are “",
	} {
		if !strings.Contains(flat(q), says) {
			t.Errorf("the answer does not say %q:\n%s", says, q.Answer.Get())
		}
	}
}

func TestRecalledContext(t *testing.T) {
	store, lib := new(memory.Store), defaultLibrary(t)
	answered(t, lib, store, "1", "mirrors")
	answered(t, lib, store, "2", "mirrors and mazes")
	q, _ := answered(t, lib, store, "3", "mirrors")
	c := q.RecalledContext.Get()
	if want := []string{"mirrors and mazes"}; !slices.Equal(c.SimilarQueries, want) {
		t.Errorf("similar queries %q, want %q", c.SimilarQueries, want)
	}
	if want := "The last question was “mirrors and mazes” (search). One earlier question shares a word with this one."; c.Summary != want {
		t.Errorf("summary %q, want %q", c.Summary, want)
	}
	if q.Before.Get() != "1" {
		t.Errorf("asked before in %q, want 1", q.Before.Get())
	}
}

// fields of the founding document.
var founding = []string{
	"Query", "Intent", "Terms", "Candidates", "Shortlist", "Draft", "Approved", "Attempts", "FailureCause",
	"RecalledContext", "MemoryDigest",
}

// The state comes back from JSON as it was, with each of the founding document's fields in use.
func TestStateRoundTrip(t *testing.T) {
	store, lib := new(memory.Store), defaultLibrary(t)
	answered(t, lib, store, "1", "a book about mirrors")
	q, _ := answered(t, lib, store, "2", "mirrors and mazes")
	q.FailureCause.Set("as the refused draft had it")
	text := encode(t, q)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range founding {
		if slices.Contains([]string{"", "null", `""`, "0", "false", "[]", "{}"}, string(fields[name])) {
			t.Errorf("%s is %q: this test shows nothing of it", name, fields[name])
		}
	}
	back := new(Inquiry)
	if err := json.Unmarshal([]byte(text), back); err != nil {
		t.Fatal(err)
	}
	if again := encode(t, back); again != text {
		t.Errorf("the state came back as\n%s\nwas\n%s", again, text)
	}
	if !reflect.DeepEqual(back.RecalledContext.Get(), q.RecalledContext.Get()) ||
		!reflect.DeepEqual(back.MemoryDigest.Get(), q.MemoryDigest.Get()) {
		t.Error("the memories differ")
	}
}

func encode(t *testing.T, q *Inquiry) string {
	t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A run that rests inside the loop, and goes on in a process that has nothing but the directory,
// ends with the very state of one that was left alone.
func TestStateThroughARestart(t *testing.T) {
	states := map[string]string{}
	for _, rests := range []string{"", "search/gather", "compose-loop/2/validate"} {
		dir := t.TempDir()
		store, lib := openStore(t, dir), defaultLibrary(t)
		answered(t, lib, store, "1", "a book about mirrors")
		if rests != "" {
			d := dispatch(t, lib, store, dispatcher.Options{InterruptBefore: []string{rests}})
			lib.runs = archiveOf(t, lib, d, store).completed
			_, err := d.Run(t.Context(), "2", func(q *Inquiry) { q.Query.Set("mirrors and mazes") })
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatalf("the run did not rest at %s: %v", rests, err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			store, lib = openStore(t, dir), defaultLibrary(t)
			d = dispatch(t, lib, store, dispatcher.Options{})
			if _, err := d.Resume(t.Context(), "2"); err != nil {
				t.Fatal(err)
			}
		}
		q, _ := answered(t, lib, store, "2", "mirrors and mazes") // that is completed, or begins
		states[rests] = encode(t, q)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for rests, state := range states {
		if state != states[""] {
			t.Errorf("rested at %q the run ends with\n%s\nwant\n%s", rests, state, states[""])
		}
	}
}
