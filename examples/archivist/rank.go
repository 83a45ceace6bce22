package main

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"

	"github.com/pawlgo/pawl/examples/archivist/search"
)

// listed is how many books a shortlist has at most.
const listed = 5

// Gather makes candidates of the finds: each book once, in the order in which it was first found.
func Gather(_ context.Context, q *Inquiry) error {
	var all []Candidate
	at := make(map[Citation]int)
	for _, f := range q.Finds.All() {
		i, ok := at[cite(f.Book)]
		if !ok {
			i = len(all)
			at[cite(f.Book)] = i
			all = append(all, Candidate{Book: f.Book})
		}
		all[i].Places = append(all[i].Places, Place{f.Scout, f.Rank})
	}
	q.Candidates.Replace(all)
	return nil
}

// Rank puts the candidates in order, and the best on the shortlist. Scores of different lookups
// can't be compared, so it goes by ranks, by reciprocal rank fusion: a book is good if several
// scouts think so, and better if they rank it high.
func Rank(_ context.Context, q *Inquiry) error {
	list := q.Candidates.Slice()
	for i := range list {
		list[i].Score = score(list[i])
		if titled(q.Query.Get(), list[i].Book.Title) {
			list[i].Score++ // more than ranks can add up to
		}
	}
	slices.SortFunc(list, better)
	q.Candidates.Replace(list)
	q.Shortlist.Replace(list[:min(listed, len(list))])
	return nil
}

// better is the order of candidates. Of equally good ones the older comes first, which has been
// read for longer; titles settle the rest, so that the order never depends on chance.
func better(a, b Candidate) int {
	age := func(c Candidate) int { // of an unknown year: the youngest
		return cmp.Or(c.Book.Year, math.MaxInt)
	}
	return cmp.Or(
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(age(a), age(b)),
		cmp.Compare(a.Book.Title, b.Book.Title),
		cmp.Compare(a.Book.Author, b.Book.Author),
	)
}

// damping is the usual constant of reciprocal rank fusion. It keeps a single first place from
// outweighing two good ones.
const damping = 60

// score adds up the places of a candidate. What an earlier question found supports a book, but does
// not decide: it counts half.
func score(c Candidate) float64 {
	sum := 0.0
	for _, p := range c.Places {
		s := 1 / float64(damping+p.Rank)
		if p.Scout == "earlier" {
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
	Nothing Evidence = "nothing"
)

// Cite is the gate before the composer: nothing is composed that no book in the catalogue stands
// behind. A memory alone is no evidence.
func Cite(_ context.Context, q *Inquiry) (Evidence, error) {
	for _, c := range q.Shortlist.All() {
		if slices.ContainsFunc(c.Places, func(p Place) bool { return p.Scout != "earlier" }) {
			return Enough, nil
		}
	}
	return Nothing, nil
}
