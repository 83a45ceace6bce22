// Package openlibrary searches the catalogue of Open Library (openlibrary.org) over HTTP.
//
// A [Client] asks search.json for a few fields and makes [catalogue.Book]s of what comes back.
// What it can't make sense of it leaves out, or refuses: the answer of a stranger is data.
package openlibrary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

// DefaultURL is where Open Library is.
const DefaultURL = "https://openlibrary.org"

const (
	maxAnswer  = 1 << 20 // bytes
	maxText    = 300     // bytes of a title or a name
	maxAuthors = 3       // that a book is said to be by
)

// A Client searches. The zero Client asks [DefaultURL] with http.DefaultClient. It sets no time
// limit of its own, and does not try again: that is for its caller to say.
type Client struct {
	URL  string // of the site, without a path; "" means DefaultURL
	HTTP *http.Client
}

// A Field is where a query is looked up.
type Field string

const (
	Everywhere Field = "q"
	Title      Field = "title"
	Author     Field = "author"
	Subject    Field = "subject"
)

// A StatusError is an answer other than 200 OK.
type StatusError struct {
	Status     int
	RetryAfter string // as the server put it; may be ""
}

func (e *StatusError) Error() string {
	s := "openlibrary: " + strconv.Itoa(e.Status) + " " + http.StatusText(e.Status)
	if e.RetryAfter != "" {
		s += fmt.Sprintf(" (retry after %.40q)", e.RetryAfter)
	}
	return s
}

// Temporary reports whether the same question may be answered later.
func (e *StatusError) Temporary() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= 500
}

// Search returns at most limit books, in the order of the site.
func (c *Client) Search(ctx context.Context, field Field, query string, limit int) ([]catalogue.Book, error) {
	site := c.URL
	if site == "" {
		site = DefaultURL
	}
	values := url.Values{
		string(field): {query},
		"limit":       {strconv.Itoa(limit)},
		"fields":      {"title,author_name,first_publish_year"},
	}
	address := strings.TrimSuffix(site, "/") + "/search.json?" + values.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("openlibrary: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "pawl-archivist (an example program; github.com/pawlgo/pawl)")
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("openlibrary: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, &StatusError{res.StatusCode, res.Header.Get("Retry-After")}
	}
	docs, err := decode(res.Body)
	if err != nil {
		return nil, err
	}
	return books(docs, limit), nil
}

// A doc is a work as search.json tells of it.
type doc struct {
	Title   string   `json:"title"`
	Authors []string `json:"author_name"`
	Year    int      `json:"first_publish_year"`
}

func decode(body io.Reader) ([]doc, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("openlibrary: %w", err)
	case len(text) > maxAnswer:
		return nil, errors.New("openlibrary: the answer is over 1 MiB")
	case !utf8.Valid(text):
		return nil, errors.New("openlibrary: the answer is not UTF-8")
	}
	var answer struct {
		Docs *[]doc `json:"docs"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("openlibrary: the answer is no list of books: %w", err)
	}
	if answer.Docs == nil {
		return nil, errors.New("openlibrary: the answer has no docs")
	}
	return *answer.Docs, nil
}

// books leaves out what is no book: nothing is worth a guess.
func books(docs []doc, limit int) []catalogue.Book {
	var list []catalogue.Book
	for _, d := range docs {
		b := catalogue.Book{Title: strings.TrimSpace(d.Title), Year: d.Year}
		if b.Title == "" || len(b.Title) > maxText || len(list) == limit {
			continue
		}
		if !catalogue.Possible(b.Year) {
			b.Year = 0
		}
		b.Author = strings.Join(d.Authors[:min(maxAuthors, len(d.Authors))], " and ")
		if len(b.Author) > maxText {
			b.Author = ""
		}
		list = append(list, b)
	}
	return list
}
