package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// cancelRun is Cancel: an entry in the log of a run at rest, a post to a live one. That may come to
// rest while it is posted to. If its lease is free by then Cancel finds it at rest, and else who
// has the lease finds the post when he has given it back, or whoever takes it next does.
func (c *core) cancelRun(ctx context.Context, id string, cause error, options []RunOption) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	by, err := c.author(options)
	if err != nil {
		return c.refuse(id, err)
	}
	how := checkpoint.Resting{By: by}
	if cause != nil {
		how.Cause = clip(fmt.Sprint(cause))
	}
	err = c.amend(ctx, id, func(m *machine, _ checkpoint.Head) ([]checkpoint.Entry, error) {
		switch m.status {
		case checkpoint.StatusCompleted:
			return nil, ErrCompleted
		case checkpoint.StatusCancelled:
			return nil, nil
		}
		return []checkpoint.Entry{{Kind: checkpoint.Cancelled, Data: encode(how)}}, nil
	})
	if !busy(err) {
		return c.refuse(id, err)
	}
	info, err := c.store.Stat(ctx, id)
	if held := info.Owner != "" && !checkpoint.Amends(info.Owner); err == nil && info.Status == checkpoint.StatusCancelled && !held {
		return nil // else whoever has the lease may be about to go on with it
	}
	p := checkpoint.Post{ID: "cancel:" + NewRunID(), Kind: checkpoint.PostCancel, Data: encode(how)}
	if err = c.store.Post(ctx, id, p); err == nil {
		if err = c.drainHeeded(ctx, id, nil); elsewhere(err) { // whoever has the run hears of it
			return nil
		}
		c.heed(id, nil) // who could not have the lease meanwhile has left what he posted
		if ctx.Err() != nil {
			return nil // it is durable
		}
	}
	if endedBy(ctx, p) {
		return nil
	}
	return c.refuse(id, err)
}

// A postedCancel is the cause of a run's context when a post has cancelled it.
type postedCancel struct {
	error
	by   string // who it was, "" if nobody has said so
	post string // its id; "" if the log tells of it
}

// endedBy reports whether p has ended ctx, as it does that of a node which cancels its own run: so
// it is durable, and was heard.
func endedBy(ctx context.Context, p checkpoint.Post) bool {
	var by *postedCancel
	return errors.As(context.Cause(ctx), &by) && by.post == p.ID
}

func (c *postedCancel) Unwrap() error { return c.error }

func postedCause(p checkpoint.Post) *postedCancel { return cancelOf(postedHow(p), p.ID) }

// cancelOf is the cause of a cancel of which a post tells, or the log: then the id is "".
func cancelOf(how checkpoint.Resting, post string) *postedCancel {
	if how.Cause == "" {
		return &postedCancel{context.Canceled, how.By, post}
	}
	return &postedCancel{errors.New(how.Cause), how.By, post}
}

// postedHow is what a posted cancel says.
func postedHow(p checkpoint.Post) (how checkpoint.Resting) {
	if json.Unmarshal(p.Data, &how) != nil { // before cancels had authors it was the cause alone
		_ = json.Unmarshal(p.Data, &how.Cause)
	}
	return how
}

// hearCancel halts the run if p is a cancel of it. It is drained when the run rests; what is posted
// beside so many others is left to the next call, which only notes it.
func (r *run) hearCancel(p checkpoint.Post) {
	if p.Kind == checkpoint.PostCancel && !r.passed(p) && len(r.drains) < postsMost && !slices.Contains(r.drains, p.ID) {
		if r.drains = append(r.drains, p.ID); r.heeded == nil {
			r.heeded = postedCause(p)
		}
		r.cancel(postedCause(p))
		r.halting = true
	}
}

func cancels(p checkpoint.Post) bool { return p.Kind == checkpoint.PostCancel }

// cancelIDs are those of the cancels among posts.
func cancelIDs(posts []checkpoint.Post) (ids []string) {
	for _, p := range posts {
		if cancels(p) {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// cancelledAs is the entry of a run at rest that drains a cancel.
func cancelledAs(p checkpoint.Post) checkpoint.Entry {
	return checkpoint.Entry{Kind: checkpoint.Cancelled, Post: p.ID, Data: encode(postedHow(p))}
}

// cancelledBy is what the cancels among posts come to, of a run that nobody is at work on: the
// first one cancels it, unless it is completed.
func (m *machine) cancelledBy(posts []checkpoint.Post) (lines []checkpoint.Entry) {
	if !slices.ContainsFunc(posts, cancels) { // as most of the time
		return nil
	}
	over := m.status == checkpoint.StatusCompleted || m.status == checkpoint.StatusCancelled
	posts = slices.Clone(posts)
	oldestFirst(posts)
	for _, p := range posts {
		if !cancels(p) {
			continue
		}
		if over || m.seen[p.ID] {
			lines = append(lines, noted(p.ID, p.Kind))
			continue
		}
		lines, over = append(lines, cancelledAs(p)), true
	}
	return lines
}

// heeded is what was posted to a run at work that nobody takes any more: its cancels, and, as
// nobody goes on with it, notes and tags of a run that is completed. Of one that rests they are
// taken by the next call, which a cursor of this one is for.
func (m *machine) heeded(posts []checkpoint.Post) (lines []checkpoint.Entry) {
	posts = slices.Clone(posts)
	oldestFirst(posts)
	for _, p := range posts {
		if m.status == checkpoint.StatusCompleted && marks(p) && !m.seen[p.ID] {
			lines = append(lines, m.drained(p))
		}
	}
	return append(lines, m.cancelledBy(posts)...)
}

// marks reports whether p says something of a run, and asks nothing of it.
func marks(p checkpoint.Post) bool {
	return p.Kind == checkpoint.PostTag || p.Kind == checkpoint.PostNote
}

// drainHeeded drains them, of a run that nobody is at work on. The observer is told of notes and
// tags; how the run has rested it knows.
func (c *core) drainHeeded(ctx context.Context, id string, code *atomic.Pointer[string]) error {
	return c.amendingFrom(ctx, id, standing{heeds: true}, func(a *amendment) error {
		posts, err := c.store.Posts(ctx, id)
		if err != nil {
			return err
		}
		a.observed()
		a.observing = code
		return a.drain(ctx, a.m.heeded(posts))
	})
}

// heed makes a run Cancelled that was cancelled while somebody had its lease and did not hear of
// it: who cancelled it was told that it will be. So it is with notes and tags of a completed run.
// Whatever fails, the post stays where it is, for who comes next.
//
// It is part of letting go of a run, and called nowhere else: by moment.giveBack, run.release and
// cameBack, and by a Cancel behind its own moment.
//
// To drain them takes the lease again, and who posts meanwhile leaves it to heed as well: so it
// looks once more behind that, until nothing new is there or the grace period is over.
//
// Code names the observer while that is told of them, for a call that waits for heed; nil if none
// does.
func (c *core) heed(id string, code *atomic.Pointer[string]) {
	var seen []string
	began := time.Now()
	for again := true; again && time.Since(began) < c.toLetGo(); { // else whoever posts without end is worked for without end
		seen, again = c.heedBeside(id, seen, code)
	}
}

// heedBeside heeds what was posted, if not all of that was seen before. It returns what it has
// seen, and whether more may be there by now.
func (c *core) heedBeside(id string, before []string, code *atomic.Pointer[string]) (seen []string, again bool) {
	ctx := &graceContext{until: time.Now().Add(c.toLetGo())} // a new one: the observer may have taken longer
	defer ctx.end()
	seen = c.unheeded(ctx, id)
	if !slices.ContainsFunc(seen, func(p string) bool { return !slices.Contains(before, p) }) {
		return seen, false
	}
	var err error
	drained := make(chan struct{})
	go func() { // an observer that ends its goroutine ends this one; heed waits for it
		defer close(drained)
		err = c.drainHeeded(ctx, id, code)
	}()
	if <-drained; code != nil {
		code.Store(nil)
	}
	return seen, err == nil // else whoever has the lease does the same
}

// unheeded are the ids of what was posted to a run at work that is for heed. What is not is left
// without a look at the log: the next call takes it, for which the machine of the run may be kept.
func (c *core) unheeded(ctx context.Context, id string) (ids []string) {
	posts, err := c.store.Posts(ctx, id)
	if err != nil {
		return nil
	}
	completed := slices.ContainsFunc(posts, marks)
	if completed {
		info, err := c.store.Stat(ctx, id)
		completed = err == nil && info.Status == checkpoint.StatusCompleted
	}
	for _, p := range posts {
		if cancels(p) || completed && marks(p) {
			ids = append(ids, p.ID)
		}
	}
	return ids
}
