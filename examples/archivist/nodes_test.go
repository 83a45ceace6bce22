package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

// A node is a function: these tests call it.

const labyrinth = "What's a book about a labyrinth?"

func openLibrary(t *testing.T, books []catalogue.Book) *Library {
	t.Helper()
	lib, err := newLibrary(t.Context(), books, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lib.Close(); err != nil {
			t.Error(err)
		}
	})
	return lib
}

// inquire returns an inquiry that has come as far as the shortlist.
func inquire(t *testing.T, lib *Library, question string) *Inquiry {
	t.Helper()
	q := new(Inquiry)
	q.Query.Set(question)
	if _, err := Classify(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, node := range []func(context.Context, *Inquiry) error{
		Ask, lib.Recall, lib.Search, lib.Authors, lib.Subjects, lib.Earlier, Gather, Rank,
	} {
		if err := node(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

func past(all ...Earlier) func(context.Context, int) iter.Seq2[Earlier, error] {
	return func(_ context.Context, most int) iter.Seq2[Earlier, error] {
		return func(yield func(Earlier, error) bool) {
			for _, e := range all[:min(most, len(all))] {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func TestAskNeedsAVisitOnlyWithoutAQuestion(t *testing.T) {
	q := new(Inquiry)
	q.Query.Set("borges")
	if err := Ask(t.Context(), q); err != nil {
		t.Errorf("with a question: %v", err)
	}
	q.Query.Set(" \n")
	if err := Ask(t.Context(), q); !errors.Is(err, dag.ErrNoVisit) {
		t.Errorf("with a blank one: %v, want %v", err, dag.ErrNoVisit)
	}
}

func TestIntents(t *testing.T) {
	for question, want := range map[string]Intent{
		labyrinth:                              Search,
		"labyrinth":                            Search,
		"Borges":                               Search,
		"1984":                                 Search,
		"9/11":                                 Search,
		"the war of 1939-1945":                 Search,
		"Who wrote Dune?":                      Search,
		"Something sad about the sea":          Search,
		"football":                             Search,
		"Is there a book about the weather?":   Search,
		"What did Ursula K. Le Guin write?":    Search,
		"Können Sie mir etwas über Prag sagen": Search,
		"What's the weather like today?":       OffTopic,
		"How do I cook pasta?":                 OffTopic,
		"What time is it?":                     OffTopic,
		"Tell me a joke":                       OffTopic,
		"What is 2 + 2?":                       OffTopic,
		"7*6":                                  OffTopic,
		"hello":                                OffTopic,
		"Thanks, good night!":                  OffTopic,
		"Who are you?":                         OffTopic,
		"?!":                                   OffTopic,
	} {
		if got := intentOf(question); got != want {
			t.Errorf("intentOf(%q) = %s, want %s", question, got, want)
		}
	}
}

func TestEqualHitsShareARank(t *testing.T) {
	lib := openLibrary(t, []catalogue.Book{
		{Title: "A", Subjects: []string{"islands"}},
		{Title: "B", Subjects: []string{"islands"}},
		{Title: "C", Subjects: []string{"islands", "a long list of other things"}},
	})
	q := new(Inquiry)
	q.Query.Set("islands")
	if err := lib.Subjects(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range q.Finds.All() {
		got = append(got, fmt.Sprint(f.Scout, f.Rank, f.Book.Title))
	}
	if want := []string{"subjects1A", "subjects1B", "subjects3C"}; !slices.Equal(got, want) {
		t.Errorf("finds %v, want %v", got, want)
	}
}

func TestScoutsStopWhenTheirContextDoes(t *testing.T) {
	lib := openLibrary(t, catalogue.Default())
	lib.slow = time.Hour
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	for name, node := range map[string]func(context.Context, *Inquiry) error{
		"library": lib.Search, "authors": lib.Authors, "subjects": lib.Subjects, "earlier": lib.Earlier,
		"compose": lib.Compose,
	} {
		q := new(Inquiry)
		q.Query.Set(labyrinth)
		if err := node(ctx, q); !errors.Is(err, reason) {
			t.Errorf("%s returned %v, want the cause of the cancel", name, err)
		}
	}
}

func TestGatherKeepsEachBookOnce(t *testing.T) {
	a, b := catalogue.Book{Title: "A", Author: "X"}, catalogue.Book{Title: "A", Author: "Y"}
	q := new(Inquiry)
	q.Finds.Append(Find{"library", 1, a}, Find{"library", 2, b}, Find{"subjects", 1, b}, Find{"earlier", 4, a})
	if err := Gather(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(q.Candidates.Slice())
	want := fmt.Sprint([]Candidate{
		{Book: a, Places: []Place{{"library", 1}, {"earlier", 4}}},
		{Book: b, Places: []Place{{"library", 2}, {"subjects", 1}}},
	})
	if got != want {
		t.Errorf("candidates %s, want %s", got, want)
	}
}

func candidate(title string, year int, places ...Place) Candidate {
	return Candidate{Book: catalogue.Book{Title: title, Year: year}, Places: places}
}

var rankings = []struct {
	rule     string
	question string
	in       []Candidate
	want     string
}{
	{"two scouts are better than one first place", "x", []Candidate{
		candidate("one", 0, Place{"library", 1}),
		candidate("two", 0, Place{"library", 2}, Place{"subjects", 3}),
	}, "two one"},
	{"a memory counts half", "x", []Candidate{
		candidate("remembered", 0, Place{"earlier", 1}),
		candidate("found", 0, Place{"library", 50}),
	}, "found remembered"},
	{"of equals the older is first, one of unknown age last", "x", []Candidate{
		candidate("unknown", 0, Place{"library", 1}),
		candidate("young", 2001, Place{"library", 1}),
		candidate("old", -400, Place{"library", 1}),
	}, "old young unknown"},
	{"titles settle the rest", "x", []Candidate{
		candidate("b", 0, Place{"library", 1}),
		candidate("a", 0, Place{"library", 1}),
	}, "a b"},
	{"a book that is called for comes first", "Who wrote Dune?", []Candidate{
		candidate("The Woman in the Dunes", 1962, Place{"library", 1}),
		candidate("Dune", 1965, Place{"library", 2}),
	}, "Dune The Woman in the Dunes"},
	{"a subject is no title", "a book about dune", []Candidate{
		candidate("The Woman in the Dunes", 1962, Place{"library", 1}),
		candidate("Dune", 1965, Place{"library", 2}),
	}, "The Woman in the Dunes Dune"},
}

func TestRanking(t *testing.T) {
	for _, c := range rankings {
		q := new(Inquiry)
		q.Query.Set(c.question)
		q.Candidates.Append(c.in...)
		if err := Rank(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		var titles []string
		for _, s := range q.Shortlist.All() {
			titles = append(titles, s.Book.Title)
		}
		if got := strings.Join(titles, " "); got != c.want {
			t.Errorf("%s: shortlist %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestShortlistIsTheBestFew(t *testing.T) {
	q := inquire(t, openLibrary(t, catalogue.Default()), labyrinth)
	if q.Shortlist.Len() != listed {
		t.Fatalf("shortlist of %d, want %d", q.Shortlist.Len(), listed)
	}
	for i, c := range q.Shortlist.All() {
		if c.Book.Title != q.Candidates.At(i).Book.Title {
			t.Errorf("shortlist has %q at %d, candidates %q", c.Book.Title, i, q.Candidates.At(i).Book.Title)
		}
		if i > 0 && c.Score > q.Shortlist.At(i-1).Score {
			t.Errorf("%q is better than the book before it", c.Book.Title)
		}
	}
}

func TestAMemoryAloneIsNoEvidence(t *testing.T) {
	for _, c := range []struct {
		scouts []string
		want   Evidence
	}{
		{nil, Nothing},
		{[]string{"earlier"}, Nothing},
		{[]string{"earlier", "authors"}, Enough},
		{[]string{"library"}, Enough},
	} {
		q := new(Inquiry)
		for i, scout := range c.scouts {
			book := catalogue.Book{Title: fmt.Sprint(i)}
			q.Shortlist.Append(Candidate{Book: book, Places: []Place{{scout, 1}}})
		}
		if got, err := Cite(t.Context(), q); got != c.want || err != nil {
			t.Errorf("Cite with finds of %v = %v, %v, want %v", c.scouts, got, err, c.want)
		}
	}
}

// The question of the README shows the loop at work, whatever was asked before.
func TestFirstDraftIsRefusedAndSecondApproved(t *testing.T) {
	lib := openLibrary(t, catalogue.Default())
	memories := map[string][]Earlier{
		"an empty store":     nil,
		"a related question": {{"a", "labyrinths on the moon", []Citation{{"Rogue Moon", "Algis Budrys", 1960}}}},
		"the same question":  {{"a", "labyrinth", []Citation{{"Labyrinths", "Jorge Luis Borges", 1962}}}},
	}
	for name, earlier := range memories {
		lib.runs = past(earlier...)
		q := inquire(t, lib, labyrinth)
		for attempt, want := range []bool{false, true} {
			if err := lib.Compose(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			if err := Validate(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			if approved(q) != want {
				t.Errorf("%s: draft %d approved: %t, want %t (%s)",
					name, attempt+1, approved(q), want, q.FailureCause.Get())
			}
		}
	}
}

func TestDraftsThatAreRefused(t *testing.T) {
	known := catalogue.Book{Title: "Ficciones", Author: "Jorge Luis Borges", Year: 1944, About: "Stories."}
	undated := catalogue.Book{Title: "Undated", Author: "Nobody"}
	list := []Candidate{{Book: known}, {Book: undated}}
	say := func(change func(*Quote)) Draft {
		said := quote(known)
		change(&said)
		return Draft{[]Quote{quote(undated), said}}
	}
	for name, c := range map[string]struct {
		draft Draft
		want  string
	}{
		"good":             {say(func(*Quote) {}), ""},
		"empty":            {Draft{}, "quotes nothing"},
		"invented title":   {say(func(s *Quote) { s.Title = "Ficciones II" }), "not on the shortlist"},
		"another author":   {say(func(s *Quote) { s.Author = "Umberto Eco" }), "not on the shortlist"},
		"invented year":    {say(func(s *Quote) { s.Year = 1945 }), "says otherwise"},
		"invented words":   {say(func(s *Quote) { s.About = "A thriller." }), "says otherwise"},
		"left out a year":  {say(func(s *Quote) { s.Year = 0 }), "says otherwise"},
		"one book, twice":  {Draft{[]Quote{quote(known), quote(known)}}, "twice"},
		"case is no title": {say(func(s *Quote) { s.Title = "ficciones" }), "not on the shortlist"},
	} {
		got := refusal(c.draft, list)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: refusal %q, want %q", name, got, c.want)
		}
	}
}
