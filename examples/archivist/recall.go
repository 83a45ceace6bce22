package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

const (
	recalled = 5  // earlier questions whose books a run remembers
	searched = 50 // runs looked at
	mentions = 10 // of them, and of their books, that a run is told about
)

// Recall remembers earlier inquiries. What it read is kept in the state, so a run that is resumed
// later knows no more than one that was not.
//
// An earlier run of the same question is noted and its books have no say: they would only vote for
// what the question found itself, and it would be answered differently every time.
func (lib *Library) Recall(ctx context.Context, q *Inquiry) error {
	m := recollection{question: q.Query.Get(), cited: make(map[Citation]bool), intents: make(map[Intent]int)}
	for earlier, err := range lib.runs(ctx, searched) {
		var run *unreadableError
		switch {
		case errors.As(err, &run):
			q.Omitted.Append(run.Error()) // a damaged run is no reason to answer nobody any more
			continue
		case err != nil:
			return err
		case same(earlier.Question, q.Query.Get()):
			q.Before.Set(cmp.Or(q.Before.Get(), earlier.Run))
		case len(earlier.Cited) > 0 && q.Recalled.Len() < recalled && !remembers(q, earlier.Question):
			kept := earlier
			kept.Listed = nil // RecentCandidates has the newest
			q.Recalled.Append(kept)
		}
		m.learn(earlier)
	}
	q.RecalledContext.Set(m.context())
	q.MemoryDigest.Set(m.digest())
	return nil
}

func remembers(q *Inquiry, question string) bool {
	for _, e := range q.Recalled.All() {
		if same(e.Question, question) {
			return true
		}
	}
	return false
}

// same reports whether two questions search for the same words, or are the same if they have none.
func same(a, b string) bool { return titleKey(a) == titleKey(b) }

// An archive is a store of runs, and what can read them.
type archive struct {
	store      checkpoint.Store
	dispatcher *dispatcher.Dispatcher[Inquiry]
	digest     string // of the graph
}

// An unreadableError says which earlier run could not be read, and why.
type unreadableError struct {
	run string
	err error
}

func (e *unreadableError) Error() string {
	return fmt.Sprintf("earlier run %s can't be read: %v", e.run, e.err)
}

func (e *unreadableError) Unwrap() error { return e.err }

// completed yields the inquiries of at most most completed runs, newest first. The run that asks is
// none of them, because it is not completed. Runs of other versions of the graph are left out.
func (a *archive) completed(ctx context.Context, most int) iter.Seq2[Earlier, error] {
	return func(yield func(Earlier, error) bool) {
		f := checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusCompleted}, Graph: a.dispatcher.Graph(), Limit: most}
		left := most
		for info, err := range checkpoint.Runs(ctx, a.store, f) {
			on := true
			switch {
			case err != nil && info.Run == "":
				on = yield(Earlier{}, err)
			case err != nil:
				on = yield(Earlier{}, &unreadableError{info.Run, err})
			case info.Digest == a.digest:
				on = yield(a.read(ctx, info.Run))
			}
			if left--; !on || left == 0 {
				return
			}
		}
	}
}

func (a *archive) read(ctx context.Context, run string) (Earlier, error) {
	res, err := a.dispatcher.State(ctx, run)
	switch {
	case ctx.Err() != nil:
		return Earlier{}, context.Cause(ctx)
	case err != nil:
		return Earlier{}, &unreadableError{run, err}
	}
	question := strings.TrimSpace(res.State.Query.Get())
	return Earlier{
		Run: run, Question: question, Intent: res.State.Intent.Get(),
		Cited: res.State.Citations.Slice(), Listed: res.State.Shortlist.Slice(),
	}, nil
}
