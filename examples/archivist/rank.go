package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

const (
	listed = 5  // books that a shortlist has at most, if the settings don't say
	works  = 12 // those of one author
)

// Gather makes candidates of the finds: each book once, in the order in which it was first found.
// Which scouts failed is noted; what the others found counts.
func Gather(ctx context.Context, s *Quest) error {
	for _, f := range dag.Failures(ctx) {
		s.Missing.Append(fmt.Sprintf("%s failed: %s", f.Path, f.Message))
	}
	var all []Candidate
	at := make(map[Citation]int)
	for _, f := range s.Finds.All() {
		i, ok := at[cite(f.Book)]
		if !ok {
			i = len(all)
			at[cite(f.Book)] = i
			all = append(all, Candidate{Book: f.Book})
		}
		if !foundBy(all[i], f.Scout) { // its best place counts
			all[i].Places = append(all[i].Places, Place{f.Scout, f.Rank})
		}
	}
	s.Candidates.Replace(all)
	return nil
}

func foundBy(c Candidate, scouts ...Scout) bool {
	return slices.ContainsFunc(c.Places, func(p Place) bool { return slices.Contains(scouts, p.Scout) })
}

// Rank puts the candidates in order, and the best on the shortlist: of a book or an author that is
// called for by name nothing else, if it was found.
func (lib *Library) Rank(ctx context.Context, s *Quest) error {
	settings, err := settingsOf(ctx)
	if err != nil {
		return err
	}
	w := s.Wish.Get()
	list := slices.DeleteFunc(s.Candidates.Slice(), func(c Candidate) bool { return likened(s, c) })
	for i := range list {
		list[i].Score = lib.score(w, s.Words.Get(), list[i])
	}
	slices.SortFunc(list, better)
	short := list[:min(cmp.Or(settings.Books, listed), len(list))]
	if called, rest := calledFor(w, list); len(called) > 0 {
		list = append(called, rest...)
		short = called[:min(cmp.Or(settings.Books, works), len(called))]
	}
	s.Candidates.Replace(list)
	s.Shortlist.Replace(short)
	return nil
}

// likened reports whether a candidate is what others shall be similar to.
func likened(s *Quest, c Candidate) bool {
	for _, b := range s.Like.All() {
		if cite(b) == cite(c.Book) {
			return true
		}
	}
	return false
}

// calledFor parts the candidates that a question calls for by name from the rest. An author's are
// in the order of their years. A book of the very title comes before one whose title differs in
// words that don't count.
func calledFor(w Wish, list []Candidate) (called, rest []Candidate) {
	for _, c := range list {
		switch {
		case w.Intent == Describe && entitled(c.Book, w.Subject),
			w.Intent == ByAuthor && named(w.Subject, c.Book.Author):
			called = append(called, c)
		default:
			rest = append(rest, c)
		}
	}
	switch w.Intent {
	case ByAuthor:
		slices.SortStableFunc(called, older)
	case Describe:
		title, _ := byline(w.Subject)
		differs := func(c Candidate) int {
			if strings.EqualFold(c.Book.Title, title) {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(called, func(a, b Candidate) int { return cmp.Compare(differs(a), differs(b)) })
	}
	return called, rest
}

// better is the order of candidates. Of equally good ones the older comes first, which has been
// read for longer; titles settle the rest, so that the order never depends on chance.
func better(a, b Candidate) int {
	return cmp.Or(
		cmp.Compare(b.Score, a.Score),
		older(a, b),
		cmp.Compare(a.Book.Title, b.Book.Title),
		cmp.Compare(a.Book.Author, b.Book.Author),
	)
}

// older puts those of an unknown year last.
func older(a, b Candidate) int {
	year := func(c Candidate) int { return cmp.Or(c.Book.Year, math.MaxInt) }
	return cmp.Compare(year(a), year(b))
}

// score is how good a candidate is. Scores of different lookups can't be compared, so it goes by
// ranks: a book is good if several scouts think so, and better if they rank it high. Whoever asks
// for the best books gets them by their ratings, as far as they are about what was asked.
func (lib *Library) score(w Wish, words string, c Candidate) float64 {
	if w.Intent == TopRated {
		stars := lib.stars[cite(c.Book)]
		if !foundBy(c, Subjects, Ratings) {
			stars -= 5 // behind all that are
		}
		return stars
	}
	sum := fusion(c)
	if titled(words, c.Book.Title) {
		sum++ // more than ranks can add up to
	}
	return sum
}

// damping is the usual constant of reciprocal rank fusion. It keeps a single first place from
// outweighing two good ones.
const damping = 60

// fusion adds up the places of a candidate. What an earlier question found supports a book, but
// does not decide: it counts half.
func fusion(c Candidate) float64 {
	sum := 0.0
	for _, p := range c.Places {
		s := 1 / float64(damping+p.Rank)
		if p.Scout == Memory {
			s /= 2
		}
		sum += s
	}
	return sum
}

var asksAbout = regexp.MustCompile(`(?i)\b(about|on|like)\b`)

// titled reports whether the question is for the book of this title: it has the words of the title
// and no others, and it is not for a book about them.
func titled(question, title string) bool {
	terms := search.Terms(title)
	return len(terms) > 0 && slices.Equal(terms, search.Terms(question)) && !asksAbout.MatchString(question)
}

// Evidence is whether there is something to answer with.
type Evidence string

const (
	Enough  Evidence = "enough"
	Little  Evidence = "little"  // the soft gate: there is an answer, and it says what is weak
	Nothing Evidence = "nothing" // the hard gate: there is none
)

// Cite looks at what stands behind the shortlist. A memory alone is nothing. Little it is if the
// book or author that was called for is not among it, or if the catalogue does not know most of the
// words.
func Cite(_ context.Context, s *Quest) error {
	w, short := s.Wish.Get(), s.Shortlist.Slice()
	called, _ := calledFor(w, short)
	evidence := Enough
	switch {
	case !slices.ContainsFunc(short, func(c Candidate) bool { return foundBy(c, Texts, Authors, Subjects, Ratings, Online) }):
		evidence = Nothing
	case (w.Intent == Describe || w.Intent == ByAuthor) && len(called) == 0,
		w.Intent == Similar && s.Like.Len() == 0,
		w.Intent == TopRated && !foundBy(short[0], Subjects, Ratings),
		s.Unknown.Len() > 0 && 2*s.Unknown.Len() >= len(search.Terms(s.Words.Get())):
		evidence = Little
	}
	s.Evidence.Set(evidence)
	return nil
}

// Weigh is the gate before the composer: nothing is composed that no book stands behind.
func Weigh(_ context.Context, q *Inquiry) (Evidence, error) {
	return cmp.Or(q.Evidence.Get(), Nothing), nil
}
