package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/openlibrary"
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

// theLibrary is that of the catalogue, indexed once. It is never closed.
var theLibrary = sync.OnceValues(func() (*Library, error) {
	return newLibrary(context.Background(), catalogue.Default(), 0)
})

// defaultLibrary is the library of the catalogue for one test, which may change all but the index.
func defaultLibrary(t *testing.T) *Library {
	t.Helper()
	shared, err := theLibrary()
	if err != nil {
		t.Fatal(err)
	}
	lib := *shared
	lib.lookups = maps.Clone(lib.lookups)
	return &lib
}

// inquire returns an inquiry that has come as far as the gate before the composer, and how it got
// through.
func inquire(t *testing.T, lib *Library, question string) (*Inquiry, Evidence) {
	t.Helper()
	q := new(Inquiry)
	q.Query.Set(question)
	if err := lib.Recall(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	intent, err := lib.Classify(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	branches := map[Intent][]Scout{
		Search: {Texts, Authors, Subjects, Memory}, Describe: {Texts}, ByAuthor: {Authors},
		Similar: {Texts, Subjects}, TopRated: {Texts, Subjects, Ratings},
	}
	if scouts, ok := branches[intent]; ok {
		s := new(Quest)
		wish(scouts...)(q, s)
		quest(t, lib, s)
		found(s, q)
	}
	evidence, err := Weigh(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return q, evidence
}

// quest searches for books.
func quest(t *testing.T, lib *Library, s *Quest) {
	t.Helper()
	planned, err := lib.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []func(context.Context, *Quest) error
	for _, scout := range lib.scouts() {
		if slices.Contains(planned, scout.name) {
			nodes = append(nodes, scout.look)
		}
	}
	for _, node := range append(nodes, Gather, lib.Rank, Cite) {
		if err := node(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// sent is a quest for words, which scouts are sent for.
func sent(words string, scouts ...Scout) *Quest {
	s := new(Quest)
	s.Wish.Set(Wish{Search, words, scouts})
	s.Words.Set(words)
	return s
}

// before is an earlier inquiry.
func before(run, question string, cited ...Citation) Earlier {
	return Earlier{Run: run, Question: question, Intent: Search, Cited: cited}
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

func TestSearchAndOffTopic(t *testing.T) {
	lib := defaultLibrary(t)
	for question, want := range map[string]Intent{
		labyrinth:                              Search,
		"labyrinth":                            Search,
		"Borges":                               Search,
		"1984":                                 Search,
		"9/11":                                 Search,
		"the war of 1939-1945":                 Search,
		"Something sad about the sea":          Search,
		"football":                             Search,
		"Is there a book about the weather?":   Search,
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
		if got, subject := lib.intentOf(question); got != want || got == Search && subject != question {
			t.Errorf("intentOf(%q) = %s, %q, want %s", question, got, subject, want)
		}
	}
}

func TestEqualHitsShareARank(t *testing.T) {
	lib := openLibrary(t, []catalogue.Book{
		{Title: "A", Subjects: []string{"islands"}},
		{Title: "B", Subjects: []string{"islands"}},
		{Title: "C", Subjects: []string{"islands", "a long list of other things"}},
	})
	s := sent("islands", Subjects)
	if err := lib.Subjects(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range s.Finds.All() {
		got = append(got, fmt.Sprint(f.Scout, f.Rank, f.Book.Title))
	}
	if want := []string{"subjects1A", "subjects1B", "subjects3C"}; !slices.Equal(got, want) {
		t.Errorf("finds %v, want %v", got, want)
	}
}

func TestScoutsStopWhenTheirContextDoes(t *testing.T) {
	lib := defaultLibrary(t)
	lib.slow = time.Hour
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	lib.online = func(context.Context, openlibrary.Field, string, int) ([]catalogue.Book, error) {
		t.Error("Open Library is asked at once, with a library that is slow")
		return nil, nil
	}
	for _, scout := range lib.scouts() {
		if err := scout.look(ctx, sent(labyrinth, scout.name)); !errors.Is(err, reason) {
			t.Errorf("%s returned %v, want the cause of the cancel", scout.name, err)
		}
	}
	if err := lib.Compose(ctx, new(Inquiry)); !errors.Is(err, reason) {
		t.Errorf("compose returned %v, want the cause of the cancel", err)
	}
}

// A cancel is no finding: a plan that could not look everything up is none.
func TestPlanStopsWhenItsContextDoes(t *testing.T) {
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	s := sent("a labyrinth for zzyzx", Texts)
	if planned, err := defaultLibrary(t).Plan(ctx, s); !errors.Is(err, reason) {
		t.Errorf("planned %v, %v, unknown %q, want the cause of the cancel", planned, err, s.Unknown.Slice())
	}
}

func TestGatherKeepsEachBookOnce(t *testing.T) {
	a, b := catalogue.Book{Title: "A", Author: "X"}, catalogue.Book{Title: "A", Author: "Y"}
	s := new(Quest)
	s.Finds.Append(Find{"library", 1, a}, Find{"library", 2, b}, Find{"subjects", 1, b}, Find{"earlier", 4, a})
	if err := Gather(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.Candidates.Slice())
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
		s := sent(c.question)
		s.Candidates.Append(c.in...)
		if err := new(Library).Rank(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		var titles []string
		for _, c := range s.Shortlist.All() {
			titles = append(titles, c.Book.Title)
		}
		if got := strings.Join(titles, " "); got != c.want {
			t.Errorf("%s: shortlist %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestShortlistIsTheBestFew(t *testing.T) {
	q, _ := inquire(t, defaultLibrary(t), labyrinth)
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
		scouts []Scout
		want   Evidence
	}{
		{nil, Nothing},
		{[]Scout{"earlier"}, Nothing},
		{[]Scout{"earlier", "authors"}, Enough},
		{[]Scout{"library"}, Enough},
	} {
		s := new(Quest)
		for i, scout := range c.scouts {
			book := catalogue.Book{Title: fmt.Sprint(i)}
			s.Shortlist.Append(Candidate{Book: book, Places: []Place{{scout, 1}}})
		}
		if err := Cite(t.Context(), s); s.Evidence.Get() != c.want || err != nil {
			t.Errorf("Cite with finds of %v = %v, %v, want %v", c.scouts, s.Evidence.Get(), err, c.want)
		}
	}
}

// The question of the README shows the loop at work, whatever was asked before.
func TestFirstDraftIsRefusedAndSecondApproved(t *testing.T) {
	lib := defaultLibrary(t)
	memories := map[string][]Earlier{
		"an empty store":     nil,
		"a related question": {before("a", "labyrinths on the moon", Citation{"Rogue Moon", "Algis Budrys", 1960})},
		"the same question":  {before("a", "labyrinth", Citation{"Labyrinths", "Jorge Luis Borges", 1962})},
	}
	for name, earlier := range memories {
		lib.runs = past(earlier...)
		q, _ := inquire(t, lib, labyrinth)
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
	first, second := catalogue.Book{Title: "Mazes", Author: "Anna Nobody", Year: 1990}, catalogue.Book{Title: "Mazes", Author: "Anna Nobody", Year: 2001}
	list := []Candidate{{Book: known}, {Book: undated}, {Book: first}, {Book: second}}
	say := func(change func(*Quote)) Draft {
		said := quote(known)
		change(&said)
		return Draft{Quotes: []Quote{quote(undated), said}}
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
		"one book, twice":  {Draft{Quotes: []Quote{quote(known), quote(known)}}, "twice"},
		"two of one title": {Draft{Quotes: []Quote{quote(second), quote(first)}}, ""},
		"case is no title": {say(func(s *Quote) { s.Title = "ficciones" }), "not on the shortlist"},
	} {
		got := refusal(c.draft, list)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: refusal %q, want %q", name, got, c.want)
		}
	}
}
