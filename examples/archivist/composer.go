package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// eager is by how many books the first draft is longer than the shortlist, as an author writes
// who starts before the editor has chosen.
const eager = 1

// Compose writes a draft. The first one quotes from all candidates; those that follow a refusal
// quote the shortlist.
func (lib *Library) Compose(ctx context.Context, q *Inquiry) error {
	if err := lib.pause(ctx); err != nil {
		return err
	}
	from := q.Shortlist.Slice()
	if q.Attempts.Get() == 0 {
		from = q.Candidates.Slice()
		from = from[:min(q.Shortlist.Len()+eager, len(from))]
	}
	var d Draft
	for _, c := range from {
		d.Quotes = append(d.Quotes, quote(c.Book))
	}
	q.Draft.Set(d)
	q.Attempts.Add(1)
	return nil
}

// Validate approves a draft in which every book is on the shortlist, once, and every word about it
// is the catalogue's. It trusts no composer: what it checks could be invented.
func Validate(_ context.Context, q *Inquiry) error {
	cause := refusal(q.Draft.Get(), q.Shortlist.Slice())
	q.FailureCause.Set(cause)
	q.Approved.Set(cause == "")
	return nil
}

// refusal says why a draft is refused, or "".
func refusal(d Draft, shortlist []Candidate) string {
	if len(d.Quotes) == 0 {
		return "it quotes nothing"
	}
	var wrong []string
	seen := make(map[Citation]bool)
	for _, said := range d.Quotes {
		i := slices.IndexFunc(shortlist, func(c Candidate) bool {
			return c.Book.Title == said.Title && c.Book.Author == said.Author
		})
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Sprintf("%q is not on the shortlist", said.Title))
		case quote(shortlist[i].Book) != said:
			wrong = append(wrong, fmt.Sprintf("the catalogue says otherwise of %q", said.Title))
		case seen[said.Citation]:
			wrong = append(wrong, fmt.Sprintf("%q is quoted twice", said.Title))
		}
		seen[said.Citation] = true
	}
	return strings.Join(wrong, "; ")
}
