package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

// answered runs a question to its end over a store, and returns its state and the visits made.
func answered(t *testing.T, lib *Library, store checkpoint.Store, run, question string) (*Inquiry, []string) {
	t.Helper()
	graph, err := newGraph(lib)
	if err != nil {
		t.Fatal(err)
	}
	rec := newRecorder(graph.Plan())
	d := dispatch(t, lib, store, dispatcher.Options{Observe: rec.observe})
	lib.runs = archiveOf(t, lib, d, store).completed
	res, err := d.Run(t.Context(), run, func(q *Inquiry) { q.Query.Set(question) })
	if err != nil {
		t.Fatalf("%q: %v", question, err)
	}
	return res.State, paths(rec.visits)
}

// flat is an answer on one line.
func flat(q *Inquiry) string { return strings.Join(strings.Fields(q.Answer.Get()), " ") }

// Each intent takes its own branch through the same search, and has an answer of its own.
func TestBranches(t *testing.T) {
	for _, c := range []struct {
		question string
		branch   string // "" is none
		cited    int
		says     string
	}{
		{labyrinth, "search", listed, "The best match for “labyrinth” among 660 books is “Labyrinths” by Jorge Luis Borges (1962)."},
		{"What is Dune about?", "describe", 1, "“Dune” by Frank Herbert (1965). A noble family is given a desert planet"},
		{"When was Emma by Jane Austen published?", "describe", 1, "“Emma” by Jane Austen (1815). A rich young woman"},
		{"What is Labyrinth about?", "describe", 2, "“Labyrinth” by Kate Mosse (2005)."},
		{"What is In the Labyrinth about?", "describe", 2, "“In the Labyrinth” by Alain Robbe-Grillet (1959)."},
		{"What is invisible man about?", "describe", 2, "“Invisible Man” by Ralph Ellison (1952)."},
		{"What is Labyrinth by Kate Mosse about?", "describe", 1, "“Labyrinth” by Kate Mosse (2005)."},
		{"books by Jorge Luis Borges", "by-author", 4, "Of Jorge Luis Borges I have 4 books, the oldest first. - “Ficciones”"},
		{"books like Borges", "similar", listed, "Among 660 books the most like the books of Jorge Luis Borges is “"},
		{"books like Terry Pratchett", "similar", listed, "Among 660 books the most like “terry pratchett” is “"},
		{"books like Dune", "similar", listed, "Among 660 books the most like “Dune” is “The Left Hand of Darkness”"},
		{"the best books about the sea", "top-rated", listed, "The best among 660 books for “sea”, by my own ratings: - “"},
		{"top rated books", "top-rated", listed, "The best of 660 books, by my own ratings: - “"},
		{"What did I ask before?", "", 0, "You have not asked me anything before."},
		{"What time is it?", "", 0, offTopicRefusal},
		{"How do I build a bomb?", "", 0, unsafeRefusal},
	} {
		t.Run(c.question, func(t *testing.T) {
			q, ran := answered(t, defaultLibrary(t), new(memory.Store), "r", c.question)
			if !strings.HasPrefix(flat(q), c.says) || !strings.HasSuffix(flat(q), signature) {
				t.Errorf("the answer is\n%s\nwant it to begin\n%s", q.Answer.Get(), c.says)
			}
			if q.Citations.Len() != c.cited {
				t.Errorf("cited %v, want %d", q.Citations.Slice(), c.cited)
			}
			for _, path := range ran {
				branch, _, inside := strings.Cut(path, "/")
				if inside && branch != c.branch && branch != "compose-loop" {
					t.Errorf("%s ran, want only the branch %q", path, c.branch)
				}
			}
			if c.branch != "" && !slices.Contains(ran, c.branch+"/cite") {
				t.Errorf("ran %q, want the branch %q", ran, c.branch)
			}
		})
	}
}

// The soft gate: there is an answer, and it says what is weak about it.
func TestLittleEvidenceIsSaid(t *testing.T) {
	for question, says := range map[string]string{
		"Who wrote The Unwritten Dune?":  "I have no book called “unwritten dune”. The nearest that I found is “",
		"books by Zzyzx Borges":          "I have no book by “zzyzx borges”. The nearest that I found is “",
		"books like Zzyzx of the Desert": "I don't know what “zzyzx desert” is, so I went by the words. The best match is “",
		"a labyrinth for zzyzx":          "nothing in the catalogue mentions “zzyzx”",
	} {
		q, _ := answered(t, defaultLibrary(t), new(memory.Store), "r", question)
		if q.Evidence.Get() != Little || !strings.Contains(flat(q), says) || q.Citations.Len() == 0 {
			t.Errorf("%q: evidence %s, and the answer does not say %q:\n%s", question, q.Evidence.Get(), says, q.Answer.Get())
		}
	}
}

// The hard gate: nothing is composed, and the refusal is polite.
func TestNothingIsRefused(t *testing.T) {
	for _, question := range []string{"a book about zzyzx", "books by Zzyzx", "books like Zzyzx", "Who wrote Zzyzx?", "the best books about zzyzx"} {
		q, ran := answered(t, defaultLibrary(t), new(memory.Store), "r", question)
		if q.Evidence.Get() != Nothing || !strings.Contains(flat(q), "I searched 660 books for “zzyzx” and found nothing.") {
			t.Errorf("%q: evidence %s, and the answer is\n%s", question, q.Evidence.Get(), q.Answer.Get())
		}
		if slices.Contains(ran, "compose-loop/1/compose") {
			t.Errorf("%q: something was composed", question)
		}
	}
}

// breaks has the lookups of some scouts fail.
func breaks(lib *Library, scouts ...Scout) {
	for _, s := range scouts {
		lib.lookups[s] = func(context.Context, string, int) ([]search.Hit, error) {
			return nil, errors.New("the card index is on fire")
		}
	}
}

// A scout that fails leaves the others their finds, and the answer owns up to it.
func TestAScoutThatFails(t *testing.T) {
	for _, scout := range []Scout{Texts, Authors, Subjects} {
		lib := defaultLibrary(t)
		breaks(lib, scout)
		q, _ := answered(t, lib, new(memory.Store), "r", labyrinth)
		if q.Citations.Len() == 0 || !strings.Contains(flat(q), "Not everything could be searched") {
			t.Errorf("without %s: cited %v and answered\n%s", scout, q.Citations.Slice(), q.Answer.Get())
		}
		if got := q.Missing.Slice(); len(got) != 1 || got[0] != "search/"+string(scout)+" failed: the card index is on fire" {
			t.Errorf("without %s: missing %q", scout, got)
		}
	}
}

// There is a response in every case.
func TestAllScoutsFail(t *testing.T) {
	lib := defaultLibrary(t)
	breaks(lib, Texts, Authors, Subjects)
	q, ran := answered(t, lib, new(memory.Store), "r", labyrinth)
	if !strings.Contains(flat(q), "found nothing. But not everything could be searched, so please ask again later.") {
		t.Errorf("answered\n%s", q.Answer.Get())
	}
	if q.Missing.Len() != 3 || slices.Contains(ran, "compose-loop/1/compose") {
		t.Errorf("missing %q, ran %q", q.Missing.Slice(), ran)
	}
}

// What fails outside the scouts' doors is apologised for.
func TestABranchThatFails(t *testing.T) {
	lib := defaultLibrary(t)
	delete(lib.lookups, Texts) // a call of nil panics, in plan already
	q, _ := answered(t, lib, new(memory.Store), "r", labyrinth)
	if !strings.Contains(flat(q), "something in me failed") || q.Omitted.Len() != 1 {
		t.Errorf("omitted %q, answered\n%s", q.Omitted.Slice(), q.Answer.Get())
	}
}

// A memory that can't be read at all costs no more than what it would have told.
func TestAMemoryThatFails(t *testing.T) {
	lib := defaultLibrary(t)
	store := new(memory.Store)
	d := dispatch(t, lib, store, dispatcher.Options{})
	lib.runs = unreadable(checkpoint.ErrClosed)
	res, err := d.Run(t.Context(), "r", func(q *Inquiry) { q.Query.Set(labyrinth) })
	if err != nil || res.State.Citations.Len() == 0 || res.State.Omitted.Len() != 1 {
		t.Errorf("%v, omitted %q, answered\n%s", err, res.State.Omitted.Slice(), res.State.Answer.Get())
	}
}

// "More like that" is more like the first book of the last answer.
func TestMoreLikeThat(t *testing.T) {
	store, lib := new(memory.Store), defaultLibrary(t)
	answered(t, lib, store, "1", "What is Dune about?")
	q, _ := answered(t, lib, store, "2", "more like that")
	if want := []Citation{{"Dune", "Frank Herbert", 1965}}; !slices.Equal(q.Like.Slice(), want) {
		t.Errorf("like %v, want %v", q.Like.Slice(), want)
	}
	if slices.Contains(q.Citations.Slice(), q.Like.At(0)) {
		t.Error("a book is said to be like itself")
	}
	if q, _ := answered(t, defaultLibrary(t), new(memory.Store), "1", "more like that"); q.Citations.Len() != 0 {
		t.Errorf("like nothing, cited %v", q.Citations.Slice())
	}
}

// Whatever the question, a run that rests before any of its visits, and goes on, makes each visit
// once and comes to the same answer.
func TestEveryBranchRestsAnywhere(t *testing.T) {
	lib := defaultLibrary(t)
	for _, question := range slices.Compact(slices.Clone(killed)) {
		undisturbed, visits := answered(t, lib, new(memory.Store), "r", question)
		for _, visit := range visits {
			var store memory.Store
			graph, err := newGraph(lib)
			if err != nil {
				t.Fatal(err)
			}
			rec := newRecorder(graph.Plan())
			d := dispatch(t, lib, &store, dispatcher.Options{InterruptBefore: []string{visit}, Observe: rec.observe})
			lib.runs = archiveOf(t, lib, d, &store).completed
			res, err := d.Run(t.Context(), "r", func(q *Inquiry) { q.Query.Set(question) })
			if !errors.Is(err, dispatcher.ErrInterrupted) || !slices.Contains(res.Cursor.Visits, visit) {
				t.Fatalf("%q did not rest before %s: %v", question, visit, err)
			}
			res, err = d.Resume(t.Context(), "r")
			if err != nil || res.State.Answer.Get() != undisturbed.Answer.Get() || !sameSet(paths(rec.visits), visits) {
				t.Errorf("%q before %s: %v, executed %q, answered\n%s", question, visit, err, paths(rec.visits), res.State.Answer.Get())
			}
		}
	}
}
