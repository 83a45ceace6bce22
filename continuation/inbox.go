package continuation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// An Arrival says what comes of a run to which something was sent.
type Arrival uint8

const (
	// WaitForRun leaves what was sent until the run is gone on with.
	WaitForRun Arrival = iota
	// Wake goes on with a run that is completed: with a turn, whose input is what was sent. If the
	// process dies or drains before that turn has begun, what was sent stays for the next Wake,
	// Run, Resume or Turn: neither Recover nor Serve looks for it.
	Wake
)

// Send leaves input for a turn of a run, as dispatcher.Dispatcher.Enqueue does, and returns when
// that is durable. Of what is sent under one id the run gets one, however often it is sent. A run
// that waits, or is at work, takes it when it has come to its end. A run that has ended badly would
// never take it: that is a [*TerminalError] and nothing has changed; what was sent before, under
// this id, the run has. With [Wake] an error may also come from going on; what was sent stays.
//
// S is the state of the Runtime's dispatcher.
func Send[S any](ctx context.Context, r *Runtime, run, id string, input func(*S), how Arrival) error {
	if r == nil {
		return &ArgumentError{"the runtime", "is nil: make one with New"}
	}
	if how > Wake {
		return &ArgumentError{"the arrival", fmt.Sprintf("is %d, which there is not: say WaitForRun or Wake", how)}
	}
	d, ok := r.d.(*dispatcher.Dispatcher[S])
	if !ok {
		return &ArgumentError{"the input", fmt.Sprintf("writes to a %T, which is not the state of the runtime's dispatcher", new(S))}
	}
	h, err := r.history(ctx, run)
	if err != nil {
		return err
	}
	if end := h.ending(); h.over && end.Reason != Completed {
		if sent, err := r.sent(ctx, h, id); sent || err != nil {
			return err
		}
		return &TerminalError{"", run, end.Reason.Status(), end.Reason}
	}
	err = d.Enqueue(ctx, run, input, dispatcher.Message(id))
	if option := (*dispatcher.OptionError)(nil); errors.As(err, &option) {
		return &ArgumentError{"the input", fmt.Sprintf("of the id %q can't be sent: %s", id, plain(err))}
	}
	if err != nil || how == WaitForRun {
		return err
	}
	return r.resume(ctx, run, ifPosted)
}

// sent reports whether input was sent to a run under an id, as far back as its log goes.
func (r *Runtime) sent(ctx context.Context, h *history, id string) (bool, error) {
	post := "turn:" + id
	if slices.Contains(h.inputs, post) {
		return true, nil
	}
	posts, err := r.store.Posts(ctx, h.run)
	return slices.ContainsFunc(posts, func(p checkpoint.Post) bool { return p.ID == post }), err
}
