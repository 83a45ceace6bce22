package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

// Ask makes sure that there is a question. A blank answer is no question either, so it is asked
// for again, under another key: the answer to a key stays what it is.
func Ask(ctx context.Context, q *Inquiry) error {
	for n := 1; strings.TrimSpace(q.Query.Get()) == ""; n++ {
		text, err := dag.Ask[string](ctx, fmt.Sprintf("question-%d", n), "What would you like to read about?")
		if err != nil {
			return err
		}
		q.Query.Set(text)
	}
	return nil
}

// An Intent is what a question wants.
type Intent string

const (
	Search   Intent = "search"    // books on a subject
	Describe Intent = "describe"  // one book
	ByAuthor Intent = "by-author" // books of an author
	Similar  Intent = "similar"   // books like another
	TopRated Intent = "top-rated" // the best books
	Visits   Intent = "visits"    // what was asked before
	OffTopic Intent = "off-topic" // something that no catalogue of books knows
	Unsafe   Intent = "unsafe"    // something that nobody should be helped with
)

var intents = []Intent{Search, Describe, ByAuthor, Similar, TopRated, Visits, OffTopic, Unsafe}

// Classify tells what a question wants, and of what. The language model is asked if there is one.
func (lib *Library) Classify(ctx context.Context, q *Inquiry) (Intent, error) {
	if lib.model == nil {
		return lib.ClassifyByWords(ctx, q)
	}
	q.note(dag.Failures(ctx))
	intent, subject, err := lib.modelIntent(ctx, q)
	if err != nil {
		return "", err
	}
	q.classify(intent, subject)
	return intent, decided(ctx, intent, subject, "the language model says so")
}

// ClassifyByWords goes by the words of the question, where nobody else can tell.
func (lib *Library) ClassifyByWords(ctx context.Context, q *Inquiry) (Intent, error) {
	q.note(dag.Failures(ctx))
	intent, subject := lib.intentOf(q.Query.Get())
	q.classify(intent, subject)
	return intent, decided(ctx, intent, subject, "its words say so")
}

// decided notes what the question was taken for, for the record of the run.
func decided(ctx context.Context, intent Intent, subject, why string) error {
	return dag.Decide(ctx, dag.Decision{
		ID: "intent", Description: fmt.Sprintf("take the question as %s of %q", intent, subject), Rationale: why,
		OverridableBy: []dag.Authority{dag.Human},
	})
}

func (q *Inquiry) classify(intent Intent, subject string) {
	q.Intent.Set(intent)
	q.Subject.Set(subject)
	q.Terms.Replace(search.Terms(subject))
}

// note keeps what failed and was done without.
func (q *Inquiry) note(failures []dag.Failure) {
	for _, f := range failures {
		q.Omitted.Append(fmt.Sprintf("%s failed: %s", f.Path, f.Message))
	}
}
