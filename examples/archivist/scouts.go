package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

// A Scout is somebody who looks for books, by the name of its node.
type Scout string

const (
	Texts    Scout = "library"  // whole entries of the catalogue
	Authors  Scout = "authors"  // names of authors
	Subjects Scout = "subjects" // subjects
	Memory   Scout = "earlier"  // what was cited to earlier questions
	Ratings  Scout = "ratings"  // the best of all books
	Online   Scout = "online"   // Open Library
)

const (
	textFinds    = 12
	authorFinds  = 12
	subjectFinds = 20 // a popular subject has many books that are equally good
	memoryFinds  = 12
	ratingFinds  = 12
)

// A scoutNode is a scout as a node of the search.
type scoutNode struct {
	name   Scout
	look   func(context.Context, *Quest) error
	policy dag.Policy
}

// scouts are all there are, in the order in which their finds join.
func (lib *Library) scouts() []scoutNode {
	return []scoutNode{
		{name: Texts, look: lib.Texts}, {name: Authors, look: lib.Authors}, {name: Subjects, look: lib.Subjects},
		{name: Memory, look: lib.Memory}, {name: Ratings, look: lib.Ratings},
		{Online, lib.Online, lib.onlinePolicy()},
	}
}

// Texts looks at whole entries of the catalogue. A book that is called for by its title comes
// first, even if no word of the title is one to search for.
func (lib *Library) Texts(ctx context.Context, s *Quest) error {
	w, first := s.Wish.Get(), 0
	if w.Intent == Describe {
		for _, b := range lib.byTitle(w.Subject) {
			s.Finds.Append(Find{Texts, 1, b})
			first++
		}
	}
	return lib.scout(ctx, s, Texts, first, textFinds)
}

// Authors looks at the names of authors.
func (lib *Library) Authors(ctx context.Context, s *Quest) error {
	return lib.scout(ctx, s, Authors, 0, authorFinds)
}

// Subjects looks at subjects.
func (lib *Library) Subjects(ctx context.Context, s *Quest) error {
	return lib.scout(ctx, s, Subjects, 0, subjectFinds)
}

// Memory looks at what was cited to earlier questions that share a word with this one.
func (lib *Library) Memory(ctx context.Context, s *Quest) error {
	if err := lib.pause(ctx); err != nil {
		return err
	}
	var found []Find
	seen := make(map[Citation]bool)
	for _, e := range s.Recalled.All() {
		if !related(e.Question, s.Words.Get()) {
			continue
		}
		for _, c := range e.Cited {
			book, ok := lib.shelf[c]
			if !ok || seen[c] || len(found) == memoryFinds {
				continue // not in this catalogue, or cited before
			}
			seen[c] = true
			found = append(found, Find{Memory, len(found) + 1, book})
		}
	}
	s.Finds.Append(found...)
	return nil
}

// Ratings looks at the best of all books.
func (lib *Library) Ratings(ctx context.Context, s *Quest) error {
	if err := lib.pause(ctx); err != nil {
		return err
	}
	best := slices.Clone(lib.books)
	slices.SortStableFunc(best, func(a, b catalogue.Book) int {
		return cmp.Compare(lib.stars[cite(b)], lib.stars[cite(a)])
	})
	for i, b := range best[:min(ratingFinds, len(best))] {
		s.Finds.Append(Find{Ratings, i + 1, b})
	}
	return nil
}

// scout appends what a lookup finds, ranked behind the first ones. Hits of the same score share a
// rank, so that their order, which means nothing, counts for nothing.
func (lib *Library) scout(ctx context.Context, s *Quest, name Scout, first, limit int) error {
	if err := lib.pause(ctx); err != nil {
		return err
	}
	hits, err := lib.lookups[name](ctx, s.Words.Get(), limit)
	if err != nil {
		return err
	}
	rank := 0
	for i, hit := range hits {
		if i == 0 || hit.Score != hits[i-1].Score {
			rank = first + i + 1
		}
		s.Finds.Append(Find{name, rank, hit.Book})
	}
	return nil
}

// pause takes as long as a service would that is not on this machine.
func (lib *Library) pause(ctx context.Context) error {
	if lib.slow == 0 {
		return nil
	}
	timer := time.NewTimer(lib.slow)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// related reports whether two questions share a term, in the singular or the plural.
func related(a, b string) bool {
	words := make(map[string]bool)
	for _, t := range search.Terms(a) {
		words[singular(t)] = true
	}
	for _, t := range search.Terms(b) {
		if words[singular(t)] {
			return true
		}
	}
	return false
}

func singular(word string) string {
	if len(word) < 4 {
		return word
	}
	return strings.TrimSuffix(word, "s")
}
