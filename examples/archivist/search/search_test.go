package search_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

type lookup = func(ctx context.Context, query string, limit int) ([]search.Hit, error)

func open(t testing.TB, books []catalogue.Book) *search.Index {
	t.Helper()
	x, err := search.New(t.Context(), books)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func lookups(x *search.Index) map[string]lookup {
	return map[string]lookup{"FullText": x.FullText, "Author": x.Author, "Subject": x.Subject}
}

func titles(hits []search.Hit) []string {
	var list []string
	for _, h := range hits {
		list = append(list, h.Book.Title)
	}
	return list
}

func find(t *testing.T, f lookup, query string, limit int) []search.Hit {
	t.Helper()
	hits, err := f(t.Context(), query, limit)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func TestTheCatalogueAnswers(t *testing.T) {
	x := open(t, catalogue.Default())
	for _, c := range []struct {
		name  string
		f     lookup
		query string
		want  string // a title among the first ten
	}{
		{"FullText", x.FullText, "labyrinth", "The Name of the Rose"},
		{"FullText", x.FullText, "What's a book about a labyrinth?", "The Name of the Rose"},
		{"FullText", x.FullText, "What's a book about a labyrinth?", "Labyrinths"},
		{"FullText", x.FullText, "Can you recommend something about hunting a white whale", "Moby-Dick"},
		{"FullText", x.FullText, "a robot detective", "The Caves of Steel"},
		{"FullText", x.FullText, "travelling in time to the plague", "Doomsday Book"},
		{"FullText", x.FullText, "CHESS prodigy orphan girl", "The Queen's Gambit"},
		{"FullText", x.FullText, "monasterio, Lonnrot, monastery", "The Name of the Rose"},
		{"Author", x.Author, "Which books did Umberto Eco write?", "Baudolino"},
		{"Author", x.Author, "garcia marquez", "One Hundred Years of Solitude"},
		{"Author", x.Author, "capek", "R.U.R."},
		{"Author", x.Author, "Ursula K. Le Guin", "The Tombs of Atuan"},
		{"Author", x.Author, "O'Brian's", "Master and Commander"},
		{"Subject", x.Subject, "a labyrinth in a monastery", "The Name of the Rose"},
		{"Subject", x.Subject, "labyrinth", "House of Leaves"},
		{"Subject", x.Subject, "revolution in Russia", "Ten Days That Shook the World"},
		{"Subject", x.Subject, "memory and mathematics", "The Housekeeper and the Professor"},
	} {
		t.Run(c.name+" "+c.query, func(t *testing.T) {
			if got := titles(find(t, c.f, c.query, 10)); !slices.Contains(got, c.want) {
				t.Errorf("found %q, want %q among them", got, c.want)
			}
		})
	}
}

var small = []catalogue.Book{
	{Title: "Zero", Author: "Adams", Subjects: []string{"mazes"}, About: "Nothing to see."},
	{Title: "Mazes", Author: "Cole", Subjects: []string{"gardens"}, About: "Hedges of every kind."},
	{Title: "Alpha", Author: "Dunn", Subjects: []string{"gardens", "mazes"}},
	{Title: "Alpha", Author: "Berg", Subjects: []string{"gardens", "mazes"}},
	{Title: "Adam", Author: "Éva Maze", Subjects: []string{"names"}, About: "Somebody is lost in a maze of papers."},
	{Title: "Filler", Author: "Nobody", Subjects: []string{"bread"}, About: "Flour, water and salt."},
	{Title: "Filling", Author: "Nobody", Subjects: []string{"bread"}, About: "Butter and jam."},
	{Title: "Filled", Author: "Nobody", Subjects: []string{"bread"}, About: "Soup."},
	{Title: "Full", Author: "Nobody", Subjects: []string{"bread"}, About: "Cheese."},
	{Title: "Fuller", Author: "Nobody", Subjects: []string{"bread"}, About: "Wine."},
	{Title: "Fullest", Author: "Nobody", Subjects: []string{"bread"}, About: "Figs."},
}

func TestEachLookupHasItsFields(t *testing.T) {
	x := open(t, small)
	for _, c := range []struct {
		f     lookup
		query string
		want  []string
	}{
		{x.FullText, "maze", []string{"Adam", "Alpha", "Alpha", "Mazes", "Zero"}},
		{x.Author, "maze", []string{"Adam"}},
		{x.Author, "mazes", nil}, // names are not stemmed
		{x.Author, "eva", []string{"Adam"}},
		{x.Author, "E\u0301va", []string{"Adam"}}, // a combining accent
		{x.Subject, "maze", []string{"Alpha", "Alpha", "Zero"}},
		{x.Subject, "mazes of gardens", []string{"Alpha", "Alpha", "Mazes", "Zero"}},
		{x.Subject, "hedges", nil},
		{x.FullText, "Dunn", nil},
		{x.FullText, "unicorns", nil},
	} {
		got := titles(find(t, c.f, c.query, 100))
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q found %q, want %q", c.query, got, c.want)
		}
	}
}

func TestHitsAreOrdered(t *testing.T) {
	x := open(t, small)
	hits := find(t, x.FullText, "maze", 100)
	// A subject counts most, then a short text more than a long one.
	if got, want := titles(hits), []string{"Alpha", "Alpha", "Zero", "Mazes", "Adam"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	for i, h := range hits {
		if h.Score < 0 || math.IsNaN(h.Score) || math.IsInf(h.Score, 0) {
			t.Errorf("%q has score %v", h.Book.Title, h.Score)
		}
		if i > 0 && hits[i-1].Score < h.Score {
			t.Errorf("%q with %v stands before %q with %v", hits[i-1].Book.Title, hits[i-1].Score, h.Book.Title, h.Score)
		}
	}
	// Two books that only their author sets apart have the same score.
	i := slices.IndexFunc(hits, func(h search.Hit) bool { return h.Book.Title == "Alpha" })
	if a, b := hits[i], hits[i+1]; a.Score != b.Score || a.Book.Author != "Berg" || b.Book.Author != "Dunn" {
		t.Errorf("equal hits are %+v, %+v; want them by author", a, b)
	}
}

func TestLimit(t *testing.T) {
	x := open(t, small)
	all := find(t, x.FullText, "maze", 100)
	for limit := -1; limit <= len(all)+1; limit++ {
		want := all[:max(0, min(limit, len(all)))]
		if got := find(t, x.FullText, "maze", limit); !slices.Equal(titles(got), titles(want)) {
			t.Errorf("limit %d gives %q, want %q", limit, titles(got), titles(want))
		}
	}
}

func TestNoTermsNoHits(t *testing.T) {
	x := open(t, catalogue.Default())
	for name, f := range lookups(x) {
		for _, query := range []string{"", " \t\n", "What's that book about?", "?!()*:\"", "\x00", "\xff\xfe", "\u0301"} {
			if hits := find(t, f, query, 10); len(hits) != 0 {
				t.Errorf("%s(%q) = %q, want no hits", name, query, titles(hits))
			}
		}
	}
}

// hostile queries mean something to FTS5 or SQL, or nothing to anybody.
var hostile = []string{
	`"`, `""`, `"labyrinth`, `labyrinth"`, `lab"yrinth`, `labyrinth*`, `*`, `^labyrinth`, `-labyrinth`, `+labyrinth`,
	`NEAR`, `NEAR(labyrinth rose, 3)`, `AND`, `OR OR OR`, `labyrinth AND`, `NOT labyrinth`, `(labyrinth`, `labyrinth)`, `((((((`,
	`title:labyrinth`, `{title about}: labyrinth`, `- {title}: labyrinth`, `nosuch:labyrinth`, `rowid:1`,
	`labyrinth'; DROP TABLE texts; --`, `' OR 1=1 --`, `?1`, `:name`, `$x`, `%`, `\`, "labyrinth\x00rose", "\x00\"",
	"\xff\xfelabyrinth\xc3", "\ufeff", "\u202elabyrinth", "e\u0301\u0301\u0301", "ß", "İstanbul", "図書館", "🐋 whale", "٣", "Ⅷ", "½",
	strings.Repeat("(", 10000), strings.Repeat("labyrinth ", 10000), strings.Repeat("a", 100000),
}

func TestHostileQueries(t *testing.T) {
	x := open(t, catalogue.Default())
	for _, query := range hostile {
		for name, f := range lookups(x) {
			if _, err := f(t.Context(), query, 10); err != nil {
				t.Errorf("%s(%.40q): %v", name, query, err)
			}
		}
	}
	if got := titles(find(t, x.FullText, "labyrinth", 10)); !slices.Contains(got, "The Name of the Rose") {
		t.Errorf("afterwards labyrinth finds %q", got)
	}
}

func FuzzFullText(f *testing.F) {
	for _, query := range hostile {
		if len(query) < 100 {
			f.Add(query)
		}
	}
	// The index outlives the seeds' contexts.
	x, err := search.New(context.Background(), catalogue.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { x.Close() })
	f.Fuzz(func(t *testing.T, query string) {
		terms := search.Terms(query)
		for name, look := range lookups(x) {
			hits, err := look(t.Context(), query, 5)
			if err != nil {
				t.Fatalf("%s(%q): %v", name, query, err)
			}
			if len(hits) > 5 || len(terms) == 0 && len(hits) > 0 {
				t.Fatalf("%s(%q) = %d hits for terms %q", name, query, len(hits), terms)
			}
		}
		if again := search.Terms(strings.Join(terms, " ")); !slices.Equal(again, terms) {
			t.Fatalf("Terms(%q) = %q, whose own terms are %q", query, terms, again)
		}
	})
}

func TestDeterminism(t *testing.T) {
	books := catalogue.Default()
	first := open(t, books)
	reversed := slices.Clone(books)
	slices.Reverse(reversed)
	others := []*search.Index{first, open(t, books), open(t, reversed)}
	for _, query := range []string{"labyrinth", "love and war", "What is there on the sea?", "john"} {
		for name, f := range lookups(first) {
			want := find(t, f, query, 50)
			for range 5 {
				for _, x := range others {
					if got := find(t, lookups(x)[name], query, 50); !reflect.DeepEqual(got, want) {
						t.Fatalf("%s(%q) = %q, earlier %q", name, query, titles(got), titles(want))
					}
				}
			}
		}
	}
}

// A fickle context ends when it is asked for its Done so many times.
type fickle struct {
	context.Context
	end   func()
	after int64
	asked atomic.Int64
}

func fickleContext(ctx context.Context, after int) *fickle {
	ctx, end := context.WithCancel(ctx)
	return &fickle{Context: ctx, end: end, after: int64(after)}
}

func (f *fickle) Done() <-chan struct{} {
	if f.asked.Add(1) == f.after {
		f.end()
	}
	return f.Context.Done()
}

// Half of the goroutines have contexts that end, some of them within their query if that looks at
// them. Nobody else may notice: neither by an error, nor by a lost index.
func TestConcurrentLookups(t *testing.T) {
	x := open(t, catalogue.Default())
	want := titles(find(t, x.FullText, "labyrinth", 10))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				hits, err := x.FullText(t.Context(), "labyrinth", 10)
				if got := titles(hits); err != nil || !slices.Equal(got, want) {
					t.Errorf("found %q, %v; want %q", got, err, want)
					return
				}
			}
		})
		wg.Go(func() {
			for i := range 16 {
				ctx := fickleContext(t.Context(), 1+i%4)
				_, err := x.FullText(ctx, "science fiction love war sea history children journeys", 1000)
				ctx.end()
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("a lookup whose context has ended fails with %v", err)
				}
			}
		})
	}
	wg.Wait()
	if got := titles(find(t, x.FullText, "labyrinth", 10)); !slices.Equal(got, want) {
		t.Errorf("afterwards found %q, want %q", got, want)
	}
}

func TestEndedContexts(t *testing.T) {
	x := open(t, small)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for name, f := range lookups(x) {
		if hits, err := f(ctx, "maze", 10); !errors.Is(err, why) || hits != nil {
			t.Errorf("%s = %v, %v; want the cause", name, hits, err)
		}
	}
	if _, err := search.New(ctx, small); !errors.Is(err, why) {
		t.Errorf("New = %v, want the cause", err)
	}
	if got := find(t, x.Author, "Cole", 10); len(got) != 1 {
		t.Errorf("afterwards found %v", got)
	}
}

// The contexts of New do not bind the index that it made.
func TestIndexOutlivesTheContextOfNew(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x, err := search.New(ctx, small)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	cancel()
	if got := find(t, x.FullText, "maze", 10); len(got) != 5 {
		t.Errorf("found %q, want five", titles(got))
	}
}

func TestClose(t *testing.T) {
	x := open(t, small)
	other := open(t, small[:1])
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	for name, f := range lookups(x) {
		if _, err := f(t.Context(), "maze", 10); err == nil {
			t.Errorf("%s works on a closed index", name)
		}
	}
	// Indexes share nothing.
	if got := find(t, other.FullText, "maze", 10); len(got) != 1 {
		t.Errorf("the other index found %q", titles(got))
	}
}

func TestIndexKeepsItsOwnBooks(t *testing.T) {
	books := []catalogue.Book{{Title: "Z", Subjects: []string{"mazes"}}, {Title: "A", Subjects: []string{"mazes"}}}
	x := open(t, books)
	if books[0].Title != "Z" {
		t.Error("New sorts the books of its caller")
	}
	books[0].Subjects[0] = "changed"
	find(t, x.Subject, "mazes", 10)[0].Book.Subjects[0] = "changed"
	for _, h := range find(t, x.Subject, "mazes", 10) {
		if h.Book.Subjects[0] != "mazes" {
			t.Errorf("%q is about %q", h.Book.Title, h.Book.Subjects)
		}
	}
}

func TestNoBooks(t *testing.T) {
	x := open(t, nil)
	for name, f := range lookups(x) {
		if hits := find(t, f, "maze", 10); hits != nil {
			t.Errorf("%s = %v", name, hits)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	books := catalogue.Default()
	b.Run(fmt.Sprintf("books=%d", len(books)), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x, err := search.New(b.Context(), books)
			if err != nil {
				b.Fatal(err)
			}
			x.Close()
		}
	})
}

func BenchmarkFullText(b *testing.B) {
	x := open(b, catalogue.Default())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.FullText(b.Context(), "What's a book about a labyrinth?", 10); err != nil {
			b.Fatal(err)
		}
	}
}
