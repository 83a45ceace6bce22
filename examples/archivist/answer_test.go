package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

// respond answers a question by calling the nodes in turn.
func respond(t *testing.T, lib *Library, question string) *Inquiry {
	t.Helper()
	q, evidence := inquire(t, lib, question)
	for evidence != Nothing && !approved(q) {
		if err := lib.Compose(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if err := Validate(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if q.Attempts.Get() > drafts {
			t.Fatalf("no draft was approved: %s", q.FailureCause.Get())
		}
	}
	if err := lib.Respond(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestAnswers(t *testing.T) {
	lib := openLibrary(t, []catalogue.Book{
		{
			Title: "Works and Days", Author: "Hesiod", Year: -700,
			Subjects: []string{"farming"}, About: "Advice to an idle brother.",
		},
		{Title: "Fields", Subjects: []string{"farming"}},
		{Title: "Plain\x1b[31m Red", Author: "A\tB", Year: 1999, Subjects: []string{"paint"}},
	})
	for question, want := range map[string]string{
		"farming": "The best match for “farming” among 3 books is “Fields”.\n\nAlso worth a look:\n\n" +
			"  - “Works and Days” by Hesiod (700 BCE). Advice to an idle brother.\n\n" + signature,
		"paint": "The best match for “paint” among 3 books is “Plain [31m Red” by A B (1999).\n\n" +
			signature,
		"zeppelins": "I searched 3 books for “zeppelins” and found nothing. Another word for it may\n" +
			"help.\n\n" + signature,
		"Can you suggest books": "There is no word in that question to search for. Name a subject, an " +
			"author or\na title.\n\n" + signature,
		"What time is it?": "That is not a question that my catalogue can answer. I know books: ask for a\n" +
			"subject, an author or a title, such as “a book about the sea”.\n\n" + signature,
	} {
		if got := respond(t, lib, question).Answer.Get(); got != want {
			t.Errorf("%q is answered\n%s\nwant\n%s", question, got, want)
		}
	}
}

// Every book of every answer is on the shelf, word for word.
func TestAnswersCiteTheCatalogue(t *testing.T) {
	lib := defaultLibrary(t)
	for _, question := range []string{
		labyrinth, "borges", "the sea", "Who wrote Dune?", "memory and forgetting",
		strings.Repeat("love death ", 5000),
	} {
		q := respond(t, lib, question)
		if q.Citations.Len() == 0 {
			t.Errorf("nothing is cited to %.40q", question)
		}
		answer := strings.Join(strings.Fields(q.Answer.Get()), " ")
		for _, c := range q.Citations.All() {
			if _, ok := lib.shelf[c]; !ok {
				t.Errorf("%.40q: %s is not on the shelf", question, c)
			}
			if !strings.Contains(answer, c.String()) {
				t.Errorf("%.40q: the answer does not name %s:\n%s", question, c, answer)
			}
		}
		for line := range strings.Lines(q.Answer.Get()) {
			if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > columns {
				t.Errorf("%.40q: a line of %d columns: %s", question, n, line)
			}
		}
	}
}

func TestNoApprovedDraft(t *testing.T) {
	lib := defaultLibrary(t)
	q, _ := inquire(t, lib, labyrinth)
	q.Attempts.Set(drafts)
	q.Approved.Set(false)
	q.FailureCause.Set(`"Atlantis" is not on the shortlist`)
	if err := lib.Respond(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	answer := strings.Join(strings.Fields(q.Answer.Get()), " ")
	if !strings.Contains(answer, "none of 3 drafts kept to them") || !strings.Contains(answer, "Atlantis") {
		t.Errorf("the answer does not say why there is none:\n%s", answer)
	}
	if q.Citations.Len() != 0 {
		t.Errorf("%d books are cited", q.Citations.Len())
	}
}

func TestWrap(t *testing.T) {
	word := strings.Repeat("ä", 100)
	for text, want := range map[string]string{
		"":                                "- \n",
		"one  two\nthree":                 "- one two three\n",
		strings.Repeat("12345678 ", 9):    "- " + strings.Repeat("12345678 ", 7) + "12345678\n  12345678\n",
		"short " + word + " and the rest": "- short\n  " + word + "\n  and the rest\n",
	} {
		if got := wrap(text, "- ", "  "); got != want {
			t.Errorf("wrap(%q) =\n%s\nwant\n%s", text, got, want)
		}
	}
}

func TestLikesNamesAnAuthorOfAll(t *testing.T) {
	for _, c := range []struct {
		like []Citation
		want string
	}{
		{[]Citation{{"Dune", "Frank Herbert", 1965}}, "“Dune”"},
		{[]Citation{{"Dune", "Frank Herbert", 1965}, {"Whipping Star", "Frank Herbert", 1970}}, "the books of Frank Herbert"},
		{[]Citation{{"Dune", "Frank Herbert", 1965}, {"Dune", "Somebody Else", 1999}}, "“x”"},
		{[]Citation{{"Mazes", "", 1990}, {"Mazes", "", 2001}}, "“x”"},
	} {
		q := new(Inquiry)
		q.Terms.Append("x")
		q.Like.Append(c.like...)
		if got := likes(q); got != c.want {
			t.Errorf("of %v: likes %s, want %s", c.like, got, c.want)
		}
	}
}

func TestWantedIsShort(t *testing.T) {
	q := new(Inquiry)
	q.Terms.Append("a", "b", "c", "d", "e", "f", "g")
	if got, want := wanted(q), "“a b c d e f …”"; got != want {
		t.Errorf("wanted %s, want %s", got, want)
	}
}
