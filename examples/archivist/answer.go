package main

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// signature is under every answer, so that nobody takes it for more than it is.
const signature = "I quote and rank what the catalogue says; I am no language model."

// Respond gives the one response that every inquiry ends with.
func (lib *Library) Respond(_ context.Context, q *Inquiry) error {
	var answer string
	switch {
	case q.Intent.Get() == OffTopic:
		answer = offTopic
	case q.Attempts.Get() == 0:
		answer = lib.nothing(q)
	case !q.Approved.Get():
		answer = lib.refused(q)
	default:
		draft := q.Draft.Get()
		answer = lib.quoted(q, draft)
		for _, said := range draft.Quotes {
			q.Citations.Append(said.Citation)
		}
	}
	q.Answer.Set(strings.TrimSpace(answer))
	return nil
}

var offTopic = paragraphs("That is not a question that my catalogue can answer. "+
	"I know books: ask for a subject, an author or a title, such as “a book about the sea”.", signature)

func (lib *Library) nothing(q *Inquiry) string {
	if q.Terms.Len() == 0 {
		return paragraphs("There is no word in that question to search for. "+
			"Name a subject, an author or a title.", signature)
	}
	return paragraphs(fmt.Sprintf("I searched %s for %s and found nothing. Another word for it may help.",
		lib.size(), wanted(q)), signature)
}

func (lib *Library) refused(q *Inquiry) string {
	return paragraphs(fmt.Sprintf("I found books for %s, but none of %d drafts kept to them: %s. "+
		"I would rather say nothing than something that is not so.",
		wanted(q), q.Attempts.Get(), q.FailureCause.Get()), signature)
}

// quoted is the answer that an approved draft becomes.
func (lib *Library) quoted(q *Inquiry, d Draft) string {
	best, rest := d.Quotes[0], d.Quotes[1:]
	parts := []string{fmt.Sprintf("The best match for %s among %s is %s.", wanted(q), lib.size(), best.Citation)}
	if best.About != "" {
		parts = append(parts, printable(best.About))
	}
	answer := paragraphs(strings.Join(parts, " "))
	if len(rest) > 0 {
		answer += "\nAlso worth a look:\n"
		for _, said := range rest {
			answer += "\n" + wrap(strings.TrimSpace(said.Citation.String()+". "+printable(said.About)), "  - ", "    ")
		}
	}
	return answer + "\n" + paragraphs(append(memories(q, d), signature)...)
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

func (lib *Library) size() string {
	if len(lib.shelf) == 1 {
		return "1 book"
	}
	return fmt.Sprintf("%d books", len(lib.shelf))
}

// printable takes control characters, which could do things to a terminal, out of text that comes
// from a catalogue or a question.
func printable(text string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(clean), " ")
}

func shortened(text string) string {
	const most = 80
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// paragraphs wraps texts and puts blank lines between them.
func paragraphs(texts ...string) string {
	var all []string
	for _, t := range texts {
		all = append(all, wrap(t, "", ""))
	}
	return strings.Join(all, "\n")
}

// columns is the width of an answer. It does not depend on the terminal: an answer is part of the
// run, and the same everywhere.
const columns = 78

// wrap breaks text into lines that begin with indent, the first one with first.
func wrap(text, first, indent string) string {
	var b strings.Builder
	line, empty := first, true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			b.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return b.String() + line + "\n"
}
