package main

import (
	"context"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

// wish is how a branch enters the search for books: with its question, and the scouts that may be
// sent for it.
func wish(scouts ...Scout) func(from *Inquiry, to *Quest) {
	return func(from *Inquiry, to *Quest) {
		to.Wish.Set(Wish{from.Intent.Get(), from.Subject.Get(), scouts})
		to.Recalled.Append(from.Recalled.Slice()...)
		to.Recent.Append(from.RecalledContext.Get().RecentCandidates...)
	}
}

// found is what every branch takes from the search.
func found(from *Quest, to *Inquiry) {
	to.Unknown.Append(from.Unknown.Slice()...)
	for _, b := range from.Like.All() {
		to.Like.Append(cite(b))
	}
	to.Candidates.Append(from.Candidates.Slice()...)
	to.Shortlist.Append(from.Shortlist.Slice()...)
	to.Evidence.Set(from.Evidence.Get())
	to.Missing.Append(from.Missing.Slice()...)
}

// Plan decides what is looked for, and chooses those of the scouts that may be sent which can be of
// use.
func (lib *Library) Plan(ctx context.Context, s *Quest) ([]Scout, error) {
	w := s.Wish.Get()
	words := w.Subject
	if w.Intent == Similar {
		like := lib.meant(w.Subject, s.Recent.Slice())
		if s.Like.Append(like...); len(like) > 0 {
			words = strings.Join(subjectsOf(like), " ")
		}
	}
	s.Words.Set(words)
	terms := search.Terms(words)
	if s.Like.Len() == 0 {
		s.Unknown.Append(lib.unknown(ctx, terms)...)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // what could not be looked up now can be later
	}
	return slices.DeleteFunc(w.Scouts, func(scout Scout) bool { return !lib.useful(scout, w, terms) }), nil
}

// useful reports whether a scout can find anything. Without a word there is nothing to look up,
// but for a title that is made of none ("We"), and for the best of all books.
func (lib *Library) useful(scout Scout, w Wish, terms []string) bool {
	switch scout {
	case Ratings:
		return len(terms) == 0
	case Online:
		return len(terms) > 0 && lib.online != nil
	case Texts:
		return len(terms) > 0 || w.Intent == Describe && len(lib.byTitle(w.Subject)) > 0
	}
	return len(terms) > 0
}

// unknown returns the terms that stand nowhere in the catalogue. What can't be looked up now is
// not called unknown.
func (lib *Library) unknown(ctx context.Context, terms []string) []string {
	return slices.DeleteFunc(slices.Clone(terms), func(term string) bool {
		for _, look := range []Scout{Texts, Authors} {
			if hits, err := lib.lookups[look](ctx, term, 1); err != nil || len(hits) > 0 {
				return true
			}
		}
		return false
	})
}

// meant returns the books that a person names to find similar ones: by title, by author, or as
// "that", the first of the last answer.
func (lib *Library) meant(subject string, recent []Candidate) []catalogue.Book {
	if subject == "" && len(recent) > 0 {
		return []catalogue.Book{recent[0].Book}
	}
	if books := lib.byTitle(subject); len(books) > 0 {
		return books
	}
	return lib.byAuthor(subject)
}

func subjectsOf(books []catalogue.Book) []string {
	var all []string
	for _, b := range books {
		for _, s := range b.Subjects {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}
