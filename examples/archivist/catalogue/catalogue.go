// Package catalogue holds the books that the archivist answers from.
//
// A catalogue is a list of books. [Default] returns the one that is built into the program;
// [Load] reads another from JSON lines:
//
//	{"title":"Ficciones","author":"Jorge Luis Borges","year":1944,"language":"Spanish","subjects":["labyrinths","libraries"],"about":"…"}
//
// Only the title is required. A field that is left out is unknown, which is better than a guess:
// an answer quotes these facts.
package catalogue

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	maxLine = 1 << 20 // bytes of one line, without its end

	// The bounds of a year catch slips such as 19844 and 1-1-1984. They are not history.
	minYear = -3000
	maxYear = 2100
)

// A Book is one work. The zero value of a field other than Title means unknown.
type Book struct {
	Title    string   `json:"title"`
	Author   string   `json:"author,omitempty"`   // in natural order; several are joined by " and "
	Year     int      `json:"year,omitempty"`     // of first publication; negative is BCE
	Language string   `json:"language,omitempty"` // of the original, by its English name
	Subjects []string `json:"subjects,omitempty"` // lower-case phrases
	About    string   `json:"about,omitempty"`    // one sentence
}

// A LineError says which line of a catalogue is wrong, and why.
type LineError struct {
	Line int // counted from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("catalogue: line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

//go:embed books.jsonl
var books []byte

// Default returns the built-in catalogue, sorted by title and then author.
// The caller owns the result.
func Default() []Book {
	list, err := Load(bytes.NewReader(books))
	if err != nil {
		panic(fmt.Sprintf("the built-in catalogue is always loadable: %v", err))
	}
	return list
}

// Load reads a catalogue of one JSON object per line, in the order of its lines.
// Blank lines are skipped. The first bad line ends the reading with a [*LineError]:
// a line that is over 1 MiB, not UTF-8 or not one JSON object, an unknown field,
// an empty title, an impossible year, or a title and author that came before in any case.
// A catalogue without books is an error, because a wrong file looks like that.
func Load(r io.Reader) ([]Book, error) {
	var list []Book
	seen := make(map[string]int) // line of the book with that key
	line := 0
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine+1) // the scanner counts the newline
	for lines.Scan() {
		line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		b, err := parse(lines.Bytes())
		if err != nil {
			return nil, &LineError{line, err}
		}
		if first, ok := seen[key(b)]; ok {
			return nil, &LineError{line, fmt.Errorf("%q is already on line %d", b.Title, first)}
		}
		seen[key(b)] = line
		list = append(list, b)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, &LineError{line + 1, errors.New("over 1 MiB")}
	case err != nil:
		return nil, fmt.Errorf("catalogue: after line %d: %w", line, err)
	case len(list) == 0:
		return nil, errors.New("catalogue: no books")
	}
	return list, nil
}

func parse(line []byte) (Book, error) {
	// encoding/json would replace invalid bytes silently.
	if !utf8.Valid(line) {
		return Book{}, errors.New("invalid UTF-8")
	}
	var b Book
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		// A bare "unexpected EOF" would read as if the file were cut.
		return Book{}, fmt.Errorf("not a book in JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Book{}, errors.New("text after the JSON object")
	}
	return b, check(b)
}

func check(b Book) error {
	if strings.TrimSpace(b.Title) == "" {
		return errors.New("empty title")
	}
	if !Possible(b.Year) {
		return fmt.Errorf("year %d is outside %d to %d", b.Year, minYear, maxYear)
	}
	return nil
}

// Possible reports whether a year may be that of a book; 0 is one that nobody knows.
func Possible(year int) bool { return minYear <= year && year <= maxYear }

// key is what two books must not share.
func key(b Book) string {
	fold := func(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
	return fold(b.Title) + "\x00" + fold(b.Author)
}
