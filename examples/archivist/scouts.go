package main

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

// A Library is what nodes work with: the catalogue and its index, and the runs of the past.
type Library struct {
	index *search.Index
	shelf map[Citation]catalogue.Book
	// runs yields completed inquiries, newest first; of a run that can't be read an
	// *unreadableError.
	runs func(ctx context.Context, most int) iter.Seq2[Earlier, error]
	slow time.Duration // latency of a service that a scout or the composer would call
}

// newLibrary indexes books. Close the library in the end.
func newLibrary(ctx context.Context, books []catalogue.Book, slow time.Duration) (*Library, error) {
	index, err := search.New(ctx, books)
	if err != nil {
		return nil, err
	}
	lib := &Library{index: index, shelf: make(map[Citation]catalogue.Book, len(books)), slow: slow}
	for _, b := range books {
		lib.shelf[cite(b)] = b
	}
	lib.runs = func(context.Context, int) iter.Seq2[Earlier, error] {
		return func(func(Earlier, error) bool) {} // no past
	}
	return lib, nil
}

// Close frees the index.
func (lib *Library) Close() error { return lib.index.Close() }

const (
	textFinds    = 12
	authorFinds  = 12
	subjectFinds = 20 // a popular subject has many books that are equally good
	earlierFinds = 12
)

// Search looks at whole entries of the catalogue.
func (lib *Library) Search(ctx context.Context, q *Inquiry) error {
	return lib.scout(ctx, q, "library", lib.index.FullText, textFinds)
}

// Authors looks at the names of authors.
func (lib *Library) Authors(ctx context.Context, q *Inquiry) error {
	return lib.scout(ctx, q, "authors", lib.index.Author, authorFinds)
}

// Subjects looks at subjects.
func (lib *Library) Subjects(ctx context.Context, q *Inquiry) error {
	return lib.scout(ctx, q, "subjects", lib.index.Subject, subjectFinds)
}

// Earlier looks at what was cited to earlier questions that share a word with this one.
func (lib *Library) Earlier(ctx context.Context, q *Inquiry) error {
	if err := lib.pause(ctx); err != nil {
		return err
	}
	question := q.Query.Get()
	var found []Find
	seen := make(map[Citation]bool)
	for _, e := range q.Recalled.All() {
		if !related(e.Question, question) {
			continue
		}
		for _, c := range e.Cited {
			book, ok := lib.shelf[c]
			if !ok || seen[c] || len(found) == earlierFinds {
				continue // not in this catalogue, or cited before
			}
			seen[c] = true
			found = append(found, Find{Scout: "earlier", Rank: len(found) + 1, Book: book})
		}
	}
	q.Finds.Append(found...)
	return nil
}

// scout appends what a lookup finds. Hits of the same score share a rank, so that their order,
// which means nothing, counts for nothing.
func (lib *Library) scout(
	ctx context.Context, q *Inquiry, name string,
	lookup func(context.Context, string, int) ([]search.Hit, error), limit int,
) error {
	if err := lib.pause(ctx); err != nil {
		return err
	}
	hits, err := lookup(ctx, q.Query.Get(), limit)
	if err != nil {
		return err
	}
	rank := 0
	for i, hit := range hits {
		if i == 0 || hit.Score != hits[i-1].Score {
			rank = i + 1
		}
		q.Finds.Append(Find{Scout: name, Rank: rank, Book: hit.Book})
	}
	return nil
}

// pause takes as long as a service would that is not on this machine.
func (lib *Library) pause(ctx context.Context) error {
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
