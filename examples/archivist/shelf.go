package main

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/openlibrary"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

// A Library is what nodes work with: the catalogue and its index, and the runs of the past.
type Library struct {
	index   *search.Index
	lookups map[Scout]lookup
	books   []catalogue.Book
	shelf   map[Citation]catalogue.Book
	titles  map[string][]catalogue.Book // by titleKey
	stars   map[Citation]float64
	// runs yields completed inquiries, newest first; of a run that can't be read an
	// *unreadableError.
	runs func(ctx context.Context, most int) iter.Seq2[Earlier, error]
	slow time.Duration // latency of a service that a scout or the composer would call

	online        onlineLookup // nil without -online
	onlineTimeout time.Duration

	model        writer // nil if no language model is set
	modelName    string
	modelTimeout time.Duration
}

// An onlineLookup asks Open Library.
type onlineLookup func(context.Context, openlibrary.Field, string, int) ([]catalogue.Book, error)

// A lookup returns at most limit books for the words of a query, the best first.
type lookup func(ctx context.Context, query string, limit int) ([]search.Hit, error)

// newLibrary indexes books. Close the library in the end.
func newLibrary(ctx context.Context, books []catalogue.Book, slow time.Duration) (*Library, error) {
	index, err := search.New(ctx, books)
	if err != nil {
		return nil, err
	}
	lib := &Library{
		index:   index,
		lookups: map[Scout]lookup{Texts: index.FullText, Authors: index.Author, Subjects: index.Subject},
		books:   books,
		shelf:   make(map[Citation]catalogue.Book, len(books)),
		titles:  make(map[string][]catalogue.Book, len(books)),
		stars:   make(map[Citation]float64, len(books)),
		slow:    slow,
	}
	for i, stars := range catalogue.Ratings(books) {
		b := books[i]
		lib.shelf[cite(b)], lib.stars[cite(b)] = b, stars
		lib.titles[titleKey(b.Title)] = append(lib.titles[titleKey(b.Title)], b)
	}
	lib.runs = func(context.Context, int) iter.Seq2[Earlier, error] {
		return func(func(Earlier, error) bool) {} // no past
	}
	return lib, nil
}

// Close frees the index.
func (lib *Library) Close() error { return lib.index.Close() }

// byTitle returns the books of a title, which may be followed by its author: "Emma by Jane Austen".
func (lib *Library) byTitle(name string) []catalogue.Book {
	if books := lib.titles[titleKey(name)]; len(books) > 0 {
		return books
	}
	title, author := byline(name)
	var books []catalogue.Book
	for _, b := range lib.titles[titleKey(title)] {
		if named(author, b.Author) {
			books = append(books, b)
		}
	}
	return books
}

// byline parts the author from a name of a book; there may be none.
func byline(name string) (title, author string) {
	i := strings.LastIndex(strings.ToLower(name), " by ")
	if i < 0 || i+len(" by ") > len(name) {
		return name, ""
	}
	return name[:i], name[i+len(" by "):]
}

// entitled reports whether a book has a name: its title, which may be followed by its author.
func entitled(b catalogue.Book, name string) bool {
	title, author := byline(name)
	return titleKey(b.Title) == titleKey(name) || titleKey(b.Title) == titleKey(title) && named(author, b.Author)
}

// byAuthor returns the books whose author has this name, or bears it among others.
func (lib *Library) byAuthor(name string) []catalogue.Book {
	var books []catalogue.Book
	for _, b := range lib.books {
		if named(name, b.Author) {
			books = append(books, b)
		}
	}
	return books
}

// named reports whether every word of name is one of the author's.
func named(name, author string) bool {
	words, own := search.Terms(name), search.Terms(author)
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(own, w) })
}

// titleKey is the same for titles that differ in words that don't count. Some titles have no
// others.
func titleKey(title string) string {
	if terms := search.Terms(title); len(terms) > 0 {
		return strings.Join(terms, " ")
	}
	return strings.ToLower(strings.Join(strings.Fields(title), " "))
}
