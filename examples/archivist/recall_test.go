package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

func recall(t *testing.T, lib *Library, question string) *Inquiry {
	t.Helper()
	q := new(Inquiry)
	q.Query.Set(question)
	if err := lib.Recall(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return q
}

func questions(q *Inquiry) []string {
	var all []string
	for _, e := range q.Recalled.All() {
		all = append(all, e.Question)
	}
	return all
}

func TestRecall(t *testing.T) {
	lib := defaultLibrary(t)
	cited := Citation{"Labyrinths", "Jorge Luis Borges", 1962}
	lib.runs = past(
		before("8", "islands", cited),
		before("7", "a book about mirrors", cited),
		before("6", "nobody found anything"),
		before("5", "mirrors, please", cited), // the same words as 7
		before("4", "a MIRROR", cited),
		before("3", "doubles", cited),
		before("2", "twins", cited),
		before("1", "ghosts", cited),
	)
	q := recall(t, lib, "Islands?")
	want := []string{"a book about mirrors", "a MIRROR", "doubles", "twins", "ghosts"}
	if got := questions(q); !slices.Equal(got, want) {
		t.Errorf("recalled %q, want %q", got, want)
	}
	if got := q.Before.Get(); got != "8" {
		t.Errorf("asked before in run %q, want 8", got)
	}
}

// Questions that have no word to search for are the same if they have the same words.
func TestQuestionsWithoutTerms(t *testing.T) {
	lib := defaultLibrary(t)
	lib.runs = past(before("2", "How do you do?"), before("1", "who  ARE you?"))
	if q := recall(t, lib, "Who are you?"); q.Before.Get() != "1" {
		t.Errorf("asked before in run %q, want 1", q.Before.Get())
	}
}

func TestRecallPassesOverRunsThatCantBeRead(t *testing.T) {
	lib := defaultLibrary(t)
	lib.runs = func(context.Context, int) iter.Seq2[Earlier, error] {
		return func(yield func(Earlier, error) bool) {
			_ = yield(Earlier{}, &unreadableError{"broken", checkpoint.ErrCorrupt}) &&
				yield(before("whole", "mirrors", Citation{"Labyrinths", "Jorge Luis Borges", 1962}), nil)
		}
	}
	q := recall(t, lib, labyrinth)
	if got := questions(q); !slices.Equal(got, []string{"mirrors"}) {
		t.Errorf("recalled %q, want the run that can be read", got)
	}
	if q.Omitted.Len() != 1 || !strings.Contains(q.Omitted.At(0), "broken") {
		t.Errorf("omitted %q, want the broken run by name", q.Omitted.Slice())
	}
	lib.runs = func(context.Context, int) iter.Seq2[Earlier, error] {
		return func(yield func(Earlier, error) bool) { yield(Earlier{}, checkpoint.ErrClosed) }
	}
	if err := lib.Recall(t.Context(), new(Inquiry)); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("without a store Recall returned %v, want %v", err, checkpoint.ErrClosed)
	}
}

func TestEarlierFindsWhatARelatedQuestionCited(t *testing.T) {
	lib := defaultLibrary(t)
	s := sent("mirrors", Memory)
	labyrinths := Citation{"Labyrinths", "Jorge Luis Borges", 1962}
	s.Recalled.Append(
		before("3", "a mirror of time", labyrinths, Citation{"Sold To Another Shelf", "", 0}),
		before("2", "islands", Citation{"Piranesi", "Susanna Clarke", 2020}),
		before("1", "mirrors and mazes", Citation{"Ficciones", "Jorge Luis Borges", 1944}, labyrinths),
	)
	if err := lib.Memory(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range s.Finds.All() {
		got = append(got, fmt.Sprint(f.Scout, f.Rank, f.Book.Title))
	}
	if want := []string{"earlier1Labyrinths", "earlier2Ficciones"}; !slices.Equal(got, want) {
		t.Errorf("finds %q, want %q", got, want)
	}
}

// The archive yields completed runs of this very graph, newest first, and not the run that asks.
func TestArchive(t *testing.T) {
	var store memory.Store
	lib := defaultLibrary(t)
	d := dispatch(t, lib, &store, dispatcher.Options{})
	ask := func(run, question string, want error) {
		t.Helper()
		_, err := d.Run(t.Context(), run, func(q *Inquiry) { q.Query.Set(question) })
		if !errors.Is(err, want) {
			t.Fatalf("run %s: %v, want %v", run, err, want)
		}
	}
	ask("first", "mirrors", nil)
	ask("waiting", "", dispatcher.ErrInterrupted)
	ask("second", "islands", nil)
	ask("idle", "hello", nil)

	var asking []string
	lib.runs = func(ctx context.Context, most int) iter.Seq2[Earlier, error] {
		return func(yield func(Earlier, error) bool) {
			for e, err := range archiveOf(t, lib, d, &store).completed(ctx, most) {
				asking = append(asking, fmt.Sprintf("%s %s %t", e.Run, e.Question, len(e.Cited) > 0))
				if !yield(e, err) {
					return
				}
			}
		}
	}
	ask("third", labyrinth, nil)
	want := []string{"idle hello false", "second islands true", "first mirrors true"}
	if !slices.Equal(asking, want) {
		t.Errorf("the archive yields %q, want %q", asking, want)
	}
}

// A run of which nothing can be told hides none that is older.
func TestArchivePassesByARunThatIsDamaged(t *testing.T) {
	store, lib := new(memory.Faulty), defaultLibrary(t)
	d := dispatch(t, lib, store, dispatcher.Options{})
	for _, run := range []string{"first", "second", "third", "fourth"} {
		if _, err := d.Run(t.Context(), run, func(q *Inquiry) { q.Query.Set("mirrors") }); err != nil {
			t.Fatal(err)
		}
	}
	store.Spoil("third", checkpoint.PartInfo)
	for most, want := range map[int][]string{2: {"fourth", "third"}, 3: {"fourth", "third", "second"}, 9: {"fourth", "third", "second", "first"}} {
		var got []string
		for e, err := range archiveOf(t, lib, d, store).completed(t.Context(), most) {
			var damaged *unreadableError
			if errors.As(err, &damaged) {
				e.Run = damaged.run
			}
			if got = append(got, e.Run); (err != nil) != (e.Run == "third") || err != nil && damaged == nil {
				t.Errorf("yields %s, %v", e.Run, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d runs it yields %q, want %q", most, got, want)
		}
	}
}

func TestArchiveLeavesOutRunsOfOtherGraphs(t *testing.T) {
	var store memory.Store
	lib := defaultLibrary(t)
	d := dispatch(t, lib, &store, dispatcher.Options{})
	if _, err := d.Run(t.Context(), "old", func(q *Inquiry) { q.Query.Set("mirrors") }); err != nil {
		t.Fatal(err)
	}
	a := archiveOf(t, lib, d, &store)
	a.digest = "sha256:of another version"
	for e, err := range a.completed(t.Context(), 10) {
		t.Errorf("yields %v, %v", e, err)
	}
}

// A run knows what it recalled, and nothing that was asked since.
func TestAResumeRecallsNothingNew(t *testing.T) {
	answer := func(between bool) string {
		var store memory.Store
		lib := defaultLibrary(t)
		d := dispatch(t, lib, &store, dispatcher.Options{InterruptBefore: []string{"classify"}})
		lib.runs = archiveOf(t, lib, d, &store).completed
		plain := dispatch(t, lib, &store, dispatcher.Options{})
		_, err := d.Run(t.Context(), "held", func(q *Inquiry) { q.Query.Set("a book about mirrors") })
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatalf("the run was not held: %v", err)
		}
		if between {
			_, err := plain.Run(t.Context(), "between", func(q *Inquiry) { q.Query.Set("mirrors in space") })
			if err != nil {
				t.Fatal(err)
			}
		}
		res, err := d.Resume(t.Context(), "held")
		if err != nil {
			t.Fatal(err)
		}
		return res.State.Answer.Get()
	}
	if undisturbed, resumed := answer(false), answer(true); undisturbed != resumed {
		t.Errorf("a run that came later changed the answer from\n%s\nto\n%s", undisturbed, resumed)
	}
}
