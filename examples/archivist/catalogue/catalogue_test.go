package catalogue_test

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

func TestDefaultIsLargeSortedAndItsCallers(t *testing.T) {
	books := catalogue.Default()
	if len(books) < 400 {
		t.Errorf("Default has %d books, want at least 400", len(books))
	}
	// Load refuses the same title and author in any case, so sorted means sorted without equals.
	for i := 1; i < len(books); i++ {
		a, b := books[i-1], books[i]
		if a.Title > b.Title || a.Title == b.Title && a.Author >= b.Author {
			t.Errorf("%q by %q stands before %q by %q", a.Title, a.Author, b.Title, b.Author)
		}
	}
	books[0].Title, books[0].Subjects[0] = "changed", "changed"
	if again := catalogue.Default(); again[0].Title == "changed" || again[0].Subjects[0] == "changed" {
		t.Error("a change to one result of Default shows in the next")
	}
}

// phrase is a subject: lower-case words, with single spaces between them.
var phrase = regexp.MustCompile(`^[a-z']+( [a-z']+)*$`)

func TestDefaultBooksAreWellFormed(t *testing.T) {
	for _, b := range catalogue.Default() {
		for name, s := range map[string]string{
			"title": b.Title, "author": b.Author, "language": b.Language, "about": b.About,
		} {
			if s != strings.Join(strings.Fields(s), " ") {
				t.Errorf("%q: %s %q has stray space", b.Title, name, s)
			}
			if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q: %s %q has an unprintable character", b.Title, name, s)
			}
		}
		if b.Year < -800 || b.Year > 2025 {
			t.Errorf("%q: year %d", b.Title, b.Year)
		}
		checkSubjects(t, b)
		checkAbout(t, b)
	}
}

func checkSubjects(t *testing.T, b catalogue.Book) {
	t.Helper()
	if n := len(b.Subjects); n < 2 || n > 5 {
		t.Errorf("%q has %d subjects, want 2 to 5", b.Title, n)
	}
	for i, s := range b.Subjects {
		if !phrase.MatchString(s) {
			t.Errorf("%q: subject %q is not a lower-case phrase", b.Title, s)
		}
		if slices.Contains(b.Subjects[:i], s) {
			t.Errorf("%q has subject %q twice", b.Title, s)
		}
	}
}

func checkAbout(t *testing.T, b catalogue.Book) {
	t.Helper()
	if n := len(strings.Fields(b.About)); n < 10 || n > 30 {
		t.Errorf("%q: about has %d words, want 10 to 30", b.Title, n)
	}
	inner, ended := strings.CutSuffix(b.About, ".")
	if !ended || strings.Contains(inner, ". ") || strings.ContainsAny(inner, "!?") {
		t.Errorf("%q: about %q is not one sentence", b.Title, b.About)
	}
	if first := []rune(b.About)[0]; !unicode.IsUpper(first) {
		t.Errorf("%q: about %q starts in lower case", b.Title, b.About)
	}
}

// A phrase that differs from another only by a final s would split one subject in two.
func TestDefaultSubjectsAreConsistent(t *testing.T) {
	seen := make(map[string]bool)
	for _, b := range catalogue.Default() {
		for _, s := range b.Subjects {
			seen[s] = true
		}
	}
	for s := range seen {
		if seen[s+"s"] {
			t.Errorf("both %q and %q are subjects", s, s+"s")
		}
	}
}

// What the program's own documentation asks about must be there.
func TestDefaultCovers(t *testing.T) {
	count := make(map[string]int)
	for _, b := range catalogue.Default() {
		for _, s := range b.Subjects {
			count[s]++
		}
	}
	for _, s := range []string{
		"labyrinths", "the sea", "whales", "robots", "artificial intelligence", "time travel", "dystopias",
		"revolutions", "ghosts", "detective fiction", "chess", "memory", "libraries", "islands", "plague",
		"mountains", "cooking", "mathematics", "evolution", "war", "love", "journeys", "childhood",
	} {
		if count[s] < 4 {
			t.Errorf("%d books on %s, want at least 4", count[s], s)
		}
	}
}

func TestLoad(t *testing.T) {
	const in = "\n" +
		`{"title":"Beowulf"}` + "\r\n" +
		"  \t\n" +
		`{"title":"Emma","author":"Jane Austen","year":1815,"language":"English","subjects":["love"],"about":"A match."}` + "\n" +
		`{"title":"Emma","author":"Someone Else","year":-800}`
	want := []catalogue.Book{
		{Title: "Beowulf"},
		{Title: "Emma", Author: "Jane Austen", Year: 1815, Language: "English", Subjects: []string{"love"}, About: "A match."},
		{Title: "Emma", Author: "Someone Else", Year: -800},
	}
	got, err := catalogue.Load(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Load = %+v, want %+v", got, want)
	}
}

func TestLoadRefuses(t *testing.T) {
	const good = `{"title":"Emma","author":"Jane Austen"}` + "\n"
	for _, c := range []struct {
		name, in string
		line     int
		says     string
	}{
		{"not JSON", good + "\n" + "Emma", 3, "JSON"},
		{"a cut object", `{"title":"Em`, 1, "JSON"},
		{"a list", `[]`, 1, "JSON"},
		{"null", `null`, 1, "empty title"},
		{"two objects", `{"title":"A"}{"title":"B"}`, 1, "after"},
		{"a comma after the object", `{"title":"A"},`, 1, "after"},
		{"an unknown field", good + `{"title":"A","isbn":"1"}`, 2, "isbn"},
		{"a wrong type", `{"title":"A","year":"1815"}`, 1, "year"},
		{"a fraction of a year", `{"title":"A","year":1815.5}`, 1, "year"},
		{"a year too early", `{"title":"A","year":-3001}`, 1, "-3001"},
		{"a year too late", `{"title":"A","year":2101}`, 1, "2101"},
		{"a year beyond int", `{"title":"A","year":99999999999999999999}`, 1, "year"},
		{"no title", `{"author":"Jane Austen"}`, 1, "empty title"},
		{"a blank title", `{"title":" \t"}`, 1, "empty title"},
		{"invalid UTF-8", good + "{\"title\":\"\xff\"}", 2, "UTF-8"},
		{"a duplicate", good + "\n" + good, 3, "line 1"},
		{"a duplicate in another case", good + `{"title":"EMMA ","author":"jane austen"}`, 2, "line 1"},
		{"a long line", good + sized(1<<20+1), 2, "1 MiB"},
		{"a long line with an end", good + sized(1<<20+1) + "\n" + good, 2, "1 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			books, err := catalogue.Load(strings.NewReader(c.in))
			bad, ok := errors.AsType[*catalogue.LineError](err)
			if !ok || books != nil {
				t.Fatalf("Load = %d books, %v; want a LineError", len(books), err)
			}
			if bad.Line != c.line || !strings.Contains(bad.Err.Error(), c.says) {
				t.Errorf("error is %q, want line %d and %q", err, c.line, c.says)
			}
			if prefix := fmt.Sprintf("catalogue: line %d: ", c.line); !strings.HasPrefix(err.Error(), prefix) {
				t.Errorf("error is %q, want it to start with %q", err, prefix)
			}
		})
	}
}

// sized returns a line of n bytes that is a good book but for its length.
func sized(n int) string {
	const head, tail = `{"title":"A","about":"`, `"}`
	return head + strings.Repeat("a", n-len(head)-len(tail)) + tail
}

func TestLoadTakesALineOfOneMiB(t *testing.T) {
	for _, in := range []string{sized(1 << 20), sized(1<<20) + "\n" + `{"title":"B"}`} {
		if _, err := catalogue.Load(strings.NewReader(in)); err != nil {
			t.Error(err)
		}
	}
}

func TestLoadRefusesNothing(t *testing.T) {
	for _, in := range []string{"", "\n \n"} {
		if books, err := catalogue.Load(strings.NewReader(in)); err == nil {
			t.Errorf("Load(%q) = %v, want an error", in, books)
		}
	}
}

func TestLoadReportsTheReader(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader(`{"title":"A"}`+"\n"), iotest.ErrReader(broken))
	if _, err := catalogue.Load(in); !errors.Is(err, broken) {
		t.Errorf("Load = %v, want it to wrap %v", err, broken)
	}
}
