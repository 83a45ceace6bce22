package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// signature is under every answer, so that nobody takes it for more than it is.
const signature = "I quote and rank what the catalogue says; I am no language model."

// Respond gives the one response that every inquiry ends with.
func (lib *Library) Respond(ctx context.Context, q *Inquiry) error {
	failures := dag.Failures(ctx)
	q.note(failures)
	draft, answer := lib.answer(q, len(failures) > 0)
	answer, err := approvedBy(ctx, q, strings.TrimSpace(answer))
	if err != nil {
		return err
	}
	q.Citations.Append(cited(q, draft)...)
	q.Answer.Set(strings.TrimSpace(answer))
	return nil
}

// answer is what is to be said, and the draft that it is made of, if it is.
func (lib *Library) answer(q *Inquiry, failed bool) (Draft, string) {
	switch intent := q.Intent.Get(); {
	case failed:
		return Draft{}, paragraphs(apology, signature)
	case intent == Unsafe:
		return Draft{}, paragraphs(unsafeRefusal, signature)
	case intent == OffTopic:
		return Draft{}, paragraphs(offTopicRefusal, signature)
	case intent == Visits:
		return Draft{}, visited(q)
	case q.Attempts.Get() == 0:
		return Draft{}, lib.nothing(q)
	case !q.Approved.Get():
		return Draft{}, lib.refused(q)
	}
	return q.Draft.Get(), lib.quoted(q, q.Draft.Get())
}

const (
	offTopicRefusal = "That is not a question that my catalogue can answer. " +
		"I know books: ask for a subject, an author or a title, such as “a book about the sea”."
	unsafeRefusal = "I can't help with that: somebody could come to harm. If it is you who is in danger, " +
		"please talk to somebody near you, or call the emergency services. I am glad to look for books on anything else."
	apology = "I am sorry: something in me failed while I looked, so I have no answer to give. " +
		"Please ask again."
)

func (lib *Library) nothing(q *Inquiry) string {
	if q.Terms.Len() == 0 {
		return paragraphs("There is no word in that question to search for. "+
			"Name a subject, an author or a title.", signature)
	}
	text := fmt.Sprintf("I searched %s for %s and found nothing.", lib.searched(q), wanted(q))
	if q.Missing.Len() > 0 {
		return paragraphs(text+" But not everything could be searched, so please ask again later.", signature)
	}
	return paragraphs(text+" Another word for it may help.", signature)
}

func (lib *Library) refused(q *Inquiry) string {
	return paragraphs(fmt.Sprintf("I found books for %s, but none of %d drafts kept to them: %s. "+
		"I would rather say nothing than something that is not so.",
		wanted(q), q.Attempts.Get(), q.FailureCause.Get()), signature)
}

// visited tells what was asked before.
func visited(q *Inquiry) string {
	before := q.RecalledContext.Get().PriorIntents
	if len(before) == 0 {
		return paragraphs("You have not asked me anything before.", signature)
	}
	digest := q.MemoryDigest.Get()
	answer := paragraphs("I remember "+digest.Summary+" The newest first:") + "\n"
	for _, p := range before {
		answer += wrap(fmt.Sprintf("“%s” (%s)", shortened(printable(p.Question)), p.Intent), "  - ", "    ")
	}
	if len(digest.RecentBooks) > 0 {
		var books []string
		for _, c := range digest.RecentBooks[:min(3, len(digest.RecentBooks))] {
			books = append(books, c.String())
		}
		answer += "\n" + paragraphs("The books that I named last are "+listing(books)+".")
	}
	return answer + "\n" + paragraphs(signature)
}
