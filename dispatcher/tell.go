package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

func (c *core) exists(ctx context.Context, id string) error {
	if err := checkpoint.CheckRunID(id); err != nil {
		return fmt.Errorf("dispatcher: %w", err)
	}
	if c.store == nil {
		return c.refuse(id, ErrNoStore)
	}
	if _, err := c.store.Stat(ctx, id); err != nil {
		return c.refuse(id, err)
	}
	return nil
}

// cancelRun is Cancel: an entry in the log of a run at rest, a post to a live one.
func (c *core) cancelRun(ctx context.Context, id string, cause error) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	text := ""
	if cause != nil {
		text = clip(fmt.Sprint(cause))
	}
	lease, err := c.acquire(ctx, id)
	if errors.Is(err, checkpoint.ErrBusy) {
		if info, err := c.store.Stat(ctx, id); err == nil && info.Status == checkpoint.StatusCancelled {
			return nil
		}
		p := checkpoint.Post{ID: "cancel:" + NewRunID(), Kind: postCancel, Data: encode(text)}
		return c.refuse(id, c.store.Post(ctx, id, p))
	}
	if err != nil {
		return c.refuse(id, err)
	}
	defer c.release(lease)
	m, head, err := c.load(ctx, id, 0)
	switch {
	case err != nil:
		return c.refuse(id, err)
	case m.status == checkpoint.StatusCompleted:
		return c.refuse(id, ErrCompleted)
	case m.status == checkpoint.StatusCancelled:
		return nil
	}
	_, err = c.store.Append(ctx, lease, head, []checkpoint.Entry{
		{Kind: checkpoint.Cancelled, Data: encode(checkpoint.Resting{Cause: text})},
	})
	c.hub.grown(id)
	return c.refuse(id, err)
}

// enqueue is Enqueue. Who has the lease when the run is completed takes the post.
func (c *core) enqueue(ctx context.Context, id string, input func(any), options []RunOption) error {
	w, err := c.wish(modeEnqueue, options)
	if err != nil {
		return c.refuse(id, err)
	}
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	info, err := c.store.Stat(ctx, id)
	if err == nil {
		err = c.sameName(id, info.Graph, info.Digest)
	}
	if err != nil {
		return c.refuse(id, err)
	}
	written := c.plan.Schema.New()
	var d state.Delta
	failed := protect(func() {
		if input != nil {
			input(written.Value())
		}
		d, _, err = c.delta(written)
	})
	switch {
	case failed != nil:
		return c.refuse(id, &FaultError{Kind: "input", Message: failed.Error(), Stack: failed.stack, Err: failed.err})
	case err != nil:
		return c.refuse(id, &FaultError{Kind: "input", Message: fmt.Sprint(err), Err: err})
	}
	if w.message == "" {
		w.message = NewRunID()
	}
	var t postedTurn
	if !d.IsZero() {
		t.Delta = d.AppendJSON(nil)
		t.Cells = cellsOf(t.Delta, c.plan.Schema)
	}
	post := checkpoint.Post{ID: "turn:" + w.message, Kind: postTurn, Data: encode(t)}
	err = c.store.Post(ctx, id, post)
	if errors.Is(err, checkpoint.ErrConflict) {
		err = &OptionError{"Message", fmt.Sprintf("%q names another input", w.message)}
	}
	return c.refuse(id, err)
}

// unawaited says why nobody waits for the answer to an interrupt.
func (c *core) unawaited(ctx context.Context, id, interrupt string) string {
	for e, err := range c.store.Read(ctx, id, 1, 0) {
		if err == nil && e.Kind == checkpoint.Answered && e.ID == interrupt {
			return "it was answered already"
		}
	}
	return "no such interrupt waits"
}

// answerInterrupt is Answer. Every answer is first posted, under an id made of the
// interrupt's, so that of two different ones the store refuses the second; then whoever
// has the lease, a live run or Answer itself, drains it into the log.
func (c *core) answerInterrupt(ctx context.Context, id, interrupt string, value any) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	answer, err := marshal(value)
	if err != nil {
		return &AnswerError{id, interrupt, plain(err), ErrAnswerType}
	}
	if err := c.opts.Limits.allow(answer, "the answer"); err != nil {
		return &AnswerError{id, interrupt, plain(err), err}
	}
	m, _, err := c.load(ctx, id, 0)
	if err != nil {
		return c.refuse(id, err)
	}
	p := m.waits[interrupt]
	if p == nil {
		return &AnswerError{id, interrupt, c.unawaited(ctx, id, interrupt), ErrNotAwaited}
	}
	if err := p.accepts(answer); err != nil {
		return &AnswerError{id, interrupt, plain(err), ErrAnswerType}
	}
	post := checkpoint.Post{ID: "answer:" + interrupt, Kind: postAnswer, Data: encode(postedAnswer{interrupt, answer})}
	err = c.store.Post(ctx, id, post)
	if errors.Is(err, checkpoint.ErrConflict) {
		return &AnswerError{id, interrupt, "another answer was given", ErrNotAwaited}
	}
	if err != nil {
		return c.refuse(id, err)
	}
	lease, err := c.acquire(ctx, id)
	switch {
	case err == nil:
		defer c.release(lease)
		if err := c.drainAnswer(ctx, lease, post); err != nil {
			return c.refuse(id, err)
		}
	case !errors.Is(err, checkpoint.ErrBusy):
		return c.refuse(id, err)
	}
	return c.answered(ctx, id, interrupt, answer)
}

// drainAnswer makes a posted answer an entry of a run that is at rest.
func (c *core) drainAnswer(ctx context.Context, lease checkpoint.Lease, post checkpoint.Post) error {
	id := lease.Run
	m, head, err := c.load(ctx, id, 0)
	if err != nil {
		return err
	}
	posts, err := c.store.Posts(ctx, id)
	if err != nil {
		return err
	}
	for _, p := range posts {
		if p.ID != post.ID {
			continue
		}
		e := noted(p.ID, p.Kind)
		var a postedAnswer
		if err := json.Unmarshal(p.Data, &a); err == nil && m.waits[a.Interrupt] != nil {
			e = checkpoint.Entry{Kind: checkpoint.Answered, ID: a.Interrupt, Post: p.ID, Data: a.Answer}
		}
		_, err = c.store.Append(ctx, lease, head, []checkpoint.Entry{e})
		c.hub.grown(id)
		return err
	}
	return nil
}

// answered looks whether the answer that counts, if one is in the log already, is this.
func (c *core) answered(ctx context.Context, id, interrupt string, answer json.RawMessage) error {
	for e, err := range c.store.Read(ctx, id, 1, 0) {
		if err != nil {
			return c.refuse(id, err)
		}
		if e.Kind == checkpoint.Answered && e.ID == interrupt && !bytes.Equal(e.Data, answer) {
			return &AnswerError{id, interrupt, "another answer was given", ErrNotAwaited}
		}
	}
	return nil
}
