// Package search finds books by the words of a question.
//
// An [Index] answers three lookups, each with its own ranking: [Index.FullText] looks at titles,
// subjects and descriptions, [Index.Author] at authors and [Index.Subject] at subjects alone. A
// query is free text, such as "What's a book about a labyrinth?"; [Terms] tells which of its words
// count. A book is a hit if it has any of them, and the more of the rarer ones, the higher it
// ranks.
//
// Lookups are deterministic: the same books and query give the same hits in the same order.
package search

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite", with FTS5

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

// Each lookup has a table of its own, because bm25 measures a row against the whole of its table:
// in a shared one, a long description would push its author's name down.
// Names are not stemmed: Adams is not Adam.
const schema = `
CREATE VIRTUAL TABLE texts    USING fts5(title, subjects, about, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE authors  USING fts5(name,                   tokenize = 'unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE subjects USING fts5(phrases,                tokenize = 'porter unicode61 remove_diacritics 2');`

// Rows are numbered by title and author, so that ordering by rowid settles equal scores.
// SQLite's bm25 is the lower the better.
const (
	// A subject is a judgement that the book is about it. A title may be a metaphor, a sentence may
	// name what is only scenery.
	byText    = `SELECT rowid, -bm25(texts, 2.0, 4.0, 2.0) AS score FROM texts WHERE texts MATCH ? ORDER BY score DESC, rowid LIMIT ?`
	byAuthor  = `SELECT rowid, -bm25(authors) AS score FROM authors WHERE authors MATCH ? ORDER BY score DESC, rowid LIMIT ?`
	bySubject = `SELECT rowid, -bm25(subjects) AS score FROM subjects WHERE subjects MATCH ? ORDER BY score DESC, rowid LIMIT ?`
)

// An Index is a searchable list of books, held in memory. Its methods may be called concurrently.
type Index struct {
	// db is a private in-memory database, which lives exactly as long as its connection.
	// Invariant: there is one connection, and the driver never sees a context that can end;
	// it would interrupt the connection, now or a query later, and the pool would then discard it.
	db    *sql.DB
	books []catalogue.Book // the book of row n is books[n-1]; never changed
}

// A Hit is a book that a lookup found. The higher its score, the better it matches.
// Scores of different lookups can't be compared.
type Hit struct {
	Book  catalogue.Book
	Score float64
}

// New returns an index of books, which it copies. The caller closes it.
func New(ctx context.Context, books []catalogue.Book) (*Index, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, fmt.Errorf("search: open: %w", err)
	}
	db.SetMaxOpenConns(1)
	x := &Index{db: db, books: make([]catalogue.Book, len(books))}
	for i, b := range books {
		x.books[i] = clone(b)
	}
	slices.SortStableFunc(x.books, func(a, b catalogue.Book) int {
		return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(a.Author, b.Author))
	})
	if err := x.fill(ctx); err != nil {
		db.Close() // nothing is lost with it
		return nil, fmt.Errorf("search: build the index: %w", err)
	}
	return x, nil
}

// Close frees the index. Lookups fail from then on.
func (x *Index) Close() error { return x.db.Close() }

// FullText returns at most limit books whose title, subjects or description have a term of query,
// the best first; equal ones are in the order of title and author.
// There are none if the query has no terms or limit is not positive.
func (x *Index) FullText(ctx context.Context, query string, limit int) ([]Hit, error) {
	return x.find(ctx, byText, query, limit)
}

// Author is [Index.FullText] over the names of authors alone.
func (x *Index) Author(ctx context.Context, query string, limit int) ([]Hit, error) {
	return x.find(ctx, byAuthor, query, limit)
}

// Subject is [Index.FullText] over subjects alone.
func (x *Index) Subject(ctx context.Context, query string, limit int) ([]Hit, error) {
	return x.find(ctx, bySubject, query, limit)
}

// fill makes and fills the tables in one transaction.
func (x *Index) fill(ctx context.Context) error {
	endless := context.WithoutCancel(ctx)
	tx, err := x.db.BeginTx(endless, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if _, err := tx.ExecContext(endless, schema); err != nil {
		return err
	}
	var inserts [3]*sql.Stmt
	for i, q := range []string{
		`INSERT INTO texts(rowid, title, subjects, about) VALUES (?1, ?2, ?4, ?5)`,
		`INSERT INTO authors(rowid, name) VALUES (?1, ?3)`,
		`INSERT INTO subjects(rowid, phrases) VALUES (?1, ?4)`,
	} {
		if inserts[i], err = tx.PrepareContext(endless, q); err != nil {
			return err
		}
	}
	for i, b := range x.books {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// Commas keep the words of two subjects apart for the reader; the tokenizer drops them.
		subjects := strings.Join(b.Subjects, ", ")
		for _, s := range inserts {
			if _, err := s.ExecContext(endless, i+1, b.Title, b.Author, subjects, b.About); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

// find waits for the connection as long as ctx allows. The query itself is not cut short:
// it has few terms and no disk, and see Index.db.
func (x *Index) find(ctx context.Context, lookup, query string, limit int) ([]Hit, error) {
	conn, err := x.db.Conn(ctx)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	defer conn.Close() // back to the pool
	terms := Terms(query)
	if len(terms) == 0 || limit <= 0 {
		return nil, nil
	}
	hits, err := x.hits(conn.QueryContext(context.WithoutCancel(ctx), lookup, match(terms), limit))
	if err != nil {
		return nil, fmt.Errorf("search: %q: %w", query, err)
	}
	return hits, nil
}

// hits takes what QueryContext returned, and closes it.
func (x *Index) hits(rows *sql.Rows, err error) ([]Hit, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var hits []Hit
	for rows.Next() {
		var row int
		var score float64
		if err := rows.Scan(&row, &score); err != nil {
			return nil, err
		}
		hits = append(hits, Hit{Book: clone(x.books[row-1]), Score: score})
	}
	return hits, rows.Err()
}

// clone keeps the index's subjects out of the hands of callers.
func clone(b catalogue.Book) catalogue.Book {
	b.Subjects = slices.Clone(b.Subjects)
	return b
}
