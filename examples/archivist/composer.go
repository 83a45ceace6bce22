package main

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawlgo/pawl/dag"
)

// eager is by how many books the first draft is longer than the shortlist, as an author writes
// who starts before the editor has chosen.
const eager = 1

// Compose writes a draft. The language model does if there is one, but not the last that may be
// written: an answer without its words is better than none.
func (lib *Library) Compose(ctx context.Context, q *Inquiry) error {
	if err := lib.pause(ctx); err != nil {
		return err
	}
	if lib.model == nil || q.Attempts.Get() == drafts-1 {
		return lib.ComposeByRule(ctx, q)
	}
	d, err := lib.modelDraft(ctx, q)
	if err != nil {
		return err
	}
	q.Draft.Set(d)
	q.Attempts.Add(1)
	return nil
}

// ComposeByRule quotes the catalogue: from all candidates in the first draft, from the shortlist in
// those that follow a refusal, or a model that failed.
func (lib *Library) ComposeByRule(ctx context.Context, q *Inquiry) error {
	failures := dag.Failures(ctx)
	q.note(failures)
	from := q.Shortlist.Slice()
	if q.Attempts.Get() == 0 && len(failures) == 0 {
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
// is the catalogue's; and in whose lead nobody and nothing is named that neither it nor the
// question names. It trusts no composer: what it checks could be invented.
func Validate(_ context.Context, q *Inquiry) error {
	d, short := q.Draft.Get(), q.Shortlist.Slice()
	cause := refusal(d, short)
	if word := invented(d.Lead, q.Query.Get(), short); cause == "" && word != "" {
		cause = fmt.Sprintf("the lead names %q, which is in no book on the shortlist", word)
	}
	if cause == "" && utf8.RuneCountInString(d.Lead) > maxLead {
		cause = fmt.Sprintf("the lead is over %d letters", maxLead)
	}
	q.FailureCause.Set(cause)
	q.Approved.Set(cause == "")
	return nil
}

// refusal says why a draft is refused, or "".
func refusal(d Draft, shortlist []Candidate) string {
	if len(d.Quotes) == 0 {
		return "it quotes nothing"
	}
	quotes, books := make(map[Quote]bool), make(map[[2]string]bool)
	for _, c := range shortlist { // two may have one title and author, and other years
		quotes[quote(c.Book)], books[[2]string{c.Book.Title, c.Book.Author}] = true, true
	}
	var wrong []string
	seen := make(map[Citation]bool)
	for _, said := range d.Quotes {
		switch {
		case !books[[2]string{said.Title, said.Author}]:
			wrong = append(wrong, fmt.Sprintf("%q is not on the shortlist", said.Title))
		case !quotes[said]:
			wrong = append(wrong, fmt.Sprintf("the catalogue says otherwise of %q", said.Title))
		case seen[said.Citation]:
			wrong = append(wrong, fmt.Sprintf("%q is quoted twice", said.Title))
		}
		seen[said.Citation] = true
	}
	return strings.Join(wrong, "; ")
}
