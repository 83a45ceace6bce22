package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

// quoted is the answer that an approved draft becomes.
func (lib *Library) quoted(q *Inquiry, d Draft) string {
	opening, rest, heading := lib.opening(q, d)
	answer := paragraphs(opening)
	if len(rest) > 0 {
		if heading != "" {
			answer += "\n" + heading + "\n"
		}
		for _, said := range rest {
			answer += "\n" + wrap(lib.line(q, said), "  - ", "    ")
		}
	}
	return answer + "\n" + paragraphs(append(slices.Concat(lib.doubts(q), memories(q, d)), signed(d))...)
}

// opening is the first paragraph of an answer, and what it leaves for the list under a heading.
func (lib *Library) opening(q *Inquiry, d Draft) (text string, rest []Quote, heading string) {
	best, rest := d.Quotes[0], d.Quotes[1:]
	heading = "Also worth a look:"
	if d.Lead != "" {
		return printable(d.Lead), d.Quotes, ""
	}
	known := q.Evidence.Get() != Little
	switch intent := q.Intent.Get(); {
	case intent == Describe && known:
		return best.text() + lib.particulars(best), rest, "There is also:"
	case intent == Describe:
		return fmt.Sprintf("I have no book called %s. The nearest that I found is %s",
			wanted(q), best.text()), rest, heading
	case intent == ByAuthor && known:
		return fmt.Sprintf("Of %s I have %s, the oldest first.", author(q, d), count(len(d.Quotes), "book")), d.Quotes, ""
	case intent == ByAuthor:
		return fmt.Sprintf("I have no book by %s. The nearest that I found is %s", wanted(q), best.text()), rest, heading
	case intent == Similar && q.Like.Len() > 0:
		return fmt.Sprintf("Among %s the most like %s is %s%s", lib.searched(q), likes(q), best.text(),
			lib.shared(q, best)), rest, "Also like it:"
	case intent == Similar:
		return fmt.Sprintf("I don't know what %s is, so I went by the words. The best match is %s",
			wanted(q), best.text()), rest, heading
	case intent == TopRated && q.Terms.Len() == 0:
		return fmt.Sprintf("The best of %s, by my own ratings:", lib.searched(q)), d.Quotes, ""
	case intent == TopRated:
		return fmt.Sprintf("The best among %s for %s, by my own ratings:", lib.searched(q), wanted(q)), d.Quotes, ""
	}
	return fmt.Sprintf("The best match for %s among %s is %s", wanted(q), lib.searched(q), best.text()), rest, heading
}

// text is a book as it stands in a sentence, and what the catalogue says of it.
func (said Quote) text() string {
	return strings.TrimSpace(said.Citation.String() + ". " + printable(said.About))
}

// line is a book in a list.
func (lib *Library) line(q *Inquiry, said Quote) string {
	if stars, ok := lib.stars[said.Citation]; ok && q.Intent.Get() == TopRated {
		return strings.TrimSpace(fmt.Sprintf("%s. Rated %.1f of 5. %s", said.Citation, stars, printable(said.About)))
	}
	return said.text()
}

// particulars are what else the catalogue knows of a book.
func (lib *Library) particulars(said Quote) string {
	b := lib.shelf[said.Citation]
	var text string
	if b.Language != "" {
		text += fmt.Sprintf(" It was written in %s.", printable(b.Language))
	}
	if len(b.Subjects) > 0 {
		text += fmt.Sprintf(" Its subjects are %s.", listing(b.Subjects))
	}
	return text
}

// shared says which subjects a book has in common with those that it shall be similar to.
func (lib *Library) shared(q *Inquiry, said Quote) string {
	var like []catalogue.Book
	for _, c := range q.Like.All() {
		like = append(like, lib.shelf[c])
	}
	theirs := subjectsOf(like)
	both := slices.DeleteFunc(slices.Clone(lib.shelf[said.Citation].Subjects), func(s string) bool {
		return !slices.Contains(theirs, s)
	})
	if len(both) == 0 {
		return ""
	}
	return fmt.Sprintf(" In common they have: %s.", listing(both))
}

// signed tells whose words an answer is made of.
func signed(d Draft) string {
	if d.By == "" {
		return signature
	}
	return fmt.Sprintf("The language model %s chose the books from those that I found, and wrote what is above them. "+
		"What is said of each book is the catalogue's.", printable(d.By))
}

// doubts are what an answer owns up to.
func (lib *Library) doubts(q *Inquiry) []string {
	var all []string
	if q.Intent.Get() == TopRated {
		all = append(all, "My ratings are no reader's: a book has a star to begin with, up to two for its age and up "+
			"to two for how many books of the catalogue share its subjects.")
	}
	if unknown := q.Unknown.Slice(); len(unknown) > 0 && q.Evidence.Get() == Little {
		all = append(all, fmt.Sprintf("Take it with caution: nothing in the catalogue mentions “%s”.",
			strings.Join(unknown[:min(6, len(unknown))], "” or “")))
	}
	if q.Missing.Len() > 0 {
		all = append(all, "Not everything could be searched, so there may be more.")
	}
	return all
}

// author is whose books a draft quotes, as they write themselves.
func author(q *Inquiry, d Draft) string {
	for _, said := range d.Quotes {
		if said.Author != d.Quotes[0].Author {
			return wanted(q)
		}
	}
	return printable(d.Quotes[0].Author)
}

// likes names what books shall be similar to.
func likes(q *Inquiry) string {
	like := q.Like.Slice()
	if len(like) == 1 {
		return title(like[0])
	}
	for _, c := range like {
		if c.Author == "" || c.Author != like[0].Author {
			return wanted(q)
		}
	}
	return "the books of " + printable(like[0].Author)
}

// memories thanks the earlier question that led to a book of the draft.
func memories(q *Inquiry, d Draft) []string {
	for _, e := range q.Recalled.All() {
		if !related(e.Question, q.Query.Get()) {
			continue
		}
		for _, c := range e.Cited {
			for _, said := range d.Quotes {
				if said.Citation == c {
					return []string{fmt.Sprintf("An earlier question, “%s”, led to %s too.",
						shortened(printable(e.Question)), title(c))}
				}
			}
		}
	}
	return nil
}

// String is how an answer cites a book. What is not known is left out.
func (c Citation) String() string {
	s := title(c)
	if c.Author != "" {
		s += " by " + printable(c.Author)
	}
	switch {
	case c.Year > 0:
		s += fmt.Sprintf(" (%d)", c.Year)
	case c.Year < 0:
		s += fmt.Sprintf(" (%d BCE)", -c.Year)
	}
	return s
}

func title(c Citation) string { return "“" + printable(c.Title) + "”" }

// wanted names what was searched for: the first terms, since a pasted page has many.
func wanted(q *Inquiry) string {
	terms := q.Terms.Slice()
	if len(terms) > 6 {
		terms = append(terms[:6], "…")
	}
	return "“" + strings.Join(terms, " ") + "”"
}

// searched names what was searched.
func (lib *Library) searched(q *Inquiry) string {
	size := count(len(lib.books), "book")
	for _, c := range q.Candidates.All() {
		if foundBy(c, Online) {
			return size + " and Open Library"
		}
	}
	return size
}
