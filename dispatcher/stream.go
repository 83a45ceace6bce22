package dispatcher

import (
	"context"
	"errors"
	"iter"
	"time"
)

// An Item is what a [Dispatcher.Stream] yields: an event, or, as the last item, the result without
// an event.
type Item[S any] struct {
	Event  Event      `json:",omitzero"`
	State  *S         `json:",omitempty"` // Listen.States: with SuperstepEnded of the run's own frame; the caller's
	Result *Result[S] `json:",omitempty"` // of the last item only, and never nil there
}

// lastLook is how long the end of the log may take to be read, if the call has had the whole grace
// period.
const lastLook = 20 * time.Millisecond

// errLeft is the cause with which a stream cancels a run that nobody looks at any more.
var errLeft = errors.New("dispatcher: the reader of the stream has left")

// stream makes a call and tells what becomes true meanwhile. left is true if whoever is told
// had enough before the end.
func (c *core) stream(ctx context.Context, id string, how mode, input func(any), l Listen, options []RunOption, tell func(*telling) bool) (rep *report, err error, left bool) {
	if err := c.called(ctx); err != nil {
		return nil, err, false
	}
	if err := l.check(); err != nil {
		return nil, err, false
	}
	if err := checkID(id); err != nil {
		return nil, err, false
	}
	var rd *reader
	rd = c.newReader(id, l, func(t *telling) bool {
		if rd.until.IsZero() {
			return tell(t)
		}
		began := time.Now()
		goes := tell(t)
		rd.until = rd.until.Add(time.Since(began)) // what the body takes is its own
		return goes
	})
	rd.early, rd.oldest = how == modeRun, true
	if c.store == nil && how == modeRun {
		how = modeStart // there is no log to go on from
	}
	w, err := c.wish(how, options)
	if err != nil {
		return nil, c.refuse(id, c.streams(how, options, err)), false
	}
	rd.early = rd.early || w.orStart
	defer rd.attach()()
	err = rd.begin(ctx)
	if err != nil && ctx.Err() != nil { // the run is begun all the same, and rests
		rd.until = time.Now().Add(c.opts.Grace)
		rd.ears.graceEnd = rd.until
		late, stop := rd.limited(context.WithoutCancel(ctx))
		err = rd.begin(late)
		stop()
	}
	if err != nil {
		return nil, c.refuse(id, w.missing(listenFrom(err))), false
	}
	of, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	ran := early{err: &FaultError{Kind: "call", Message: errGoexit.Error(), Err: errGoexit}} // if c.run ends the goroutine; read once ended is closed
	go func() {                                                                              // whichever way stream ends, it cancels it and waits for it
		defer close(ended)
		ran.rep, ran.err = c.run(of, id, how, input, append(options[:len(options):len(options)], rd.ears.option()))
	}()
	defer func() {
		cancel(errLeft)
		<-ended
	}()
	readErr := rd.read(ctx, ended)
	if readErr == errLeft {
		return nil, nil, true
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
	if rd.until.IsZero() {
		rd.until = time.Now().Add(c.opts.Grace)
	}
	<-ended // within the grace period, if ctx is done
	rep, err = ran.rep, ran.err
	if readErr != nil && ctx.Err() != nil {
		if least := time.Now().Add(lastLook); rd.until.Before(least) {
			rd.until = least
		}
		readErr = rd.read(context.WithoutCancel(ctx), ended)
	}
	if readErr == errLeft {
		return nil, nil, true
	}
	if rd.ears.retains {
		c.retain(ctx, id, rep, err)
	}
	if readErr != nil {
		err = errors.Join(err, c.refuse(id, listenFrom(readErr)))
	}
	return rep, err, false
}

// streams is why a stream refuses an option. If that is for Stream, and not for the Start that it
// comes to without a store, the store is what is missing, unless Stream has a reason of its own.
func (c *core) streams(how mode, options []RunOption, err error) error {
	var refused *OptionError
	if how != modeStart || !errors.As(err, &refused) {
		return err
	}
	if _, unfit := c.wish(modeRun, options); unfit != nil {
		return unfit
	}
	return storeless(refused.Option)
}

// Stream is [Dispatcher.Run] and tells what becomes true meanwhile: the events of the run's log
// behind listen.Since, in order and each once, and live notices between them. The last item holds
// the result, and the error that Run would have returned, joined with the reason if the events
// themselves can't be read. No other item has an error.
//
// The run goes on by itself. A slow body of the loop never holds it up and misses live notices
// only, of which a [Lagged] event tells. Leaving the loop before the last item cancels the run and
// waits until it rests. Without a store the items are those of a Start, all events are live
// notices, and a slow body may miss any of them.
//
// If the run was trimmed, as by Options.Retention, a Since of zero tells what is kept, with a
// [LogTrimmed] event among it. Any other Since behind which the log can't begin refuses the call
// with a [*checkpoint.TrimmedError] or checkpoint.ErrCursor, and nothing has changed.
//
// Reading events calls the store in the loop's own goroutine, and ends with ctx if the store heeds
// it.
func (d *Dispatcher[S]) Stream(ctx context.Context, run string, input func(*S), listen Listen, options ...RunOption) iter.Seq2[Item[S], error] {
	return d.items(ctx, run, modeRun, input, listen, options)
}

// StreamTurn is [Dispatcher.Turn], and tells what becomes true meanwhile as [Dispatcher.Stream]
// does.
func (d *Dispatcher[S]) StreamTurn(ctx context.Context, run string, input func(*S), listen Listen, options ...RunOption) iter.Seq2[Item[S], error] {
	return d.items(ctx, run, modeTurn, input, listen, options)
}

func (d *Dispatcher[S]) items(ctx context.Context, run string, how mode, input func(*S), listen Listen, options []RunOption) iter.Seq2[Item[S], error] {
	return func(yield func(Item[S], error) bool) {
		rep, err, left := d.inside().stream(ctx, run, how, erase(input), listen, options, func(t *telling) bool {
			item := Item[S]{Event: t.Event}
			item.State, _ = t.state.(*S)
			return yield(item, nil)
		})
		if !left {
			yield(Item[S]{Result: typed[S](run, rep)}, err)
		}
	}
}

// Events tells what became true in a run, whoever runs it. Each entry of its log behind
// listen.Since is one event, in order and exactly once, also where what is read becomes what is
// live, and over restarts of the run, of the reader and of the process.
//
// With listen.Tail it goes on until the loop is left or ctx is done, and tells live notices of runs
// of this dispatcher. A body that is too slow for these misses some, of which a Lagged event tells,
// and never holds up the run.
//
// An error is the last thing that is yielded:
//
//   - ErrNotFound if there is no such run, or it was deleted meanwhile;
//   - checkpoint.ErrCursor if the log ends before listen.Since;
//   - a [*checkpoint.TrimmedError] if what comes next was trimmed, as by Options.Retention beside a
//     body that is slow;
//   - the cause of ctx once that is done.
//
// Events calls the store in the loop's own goroutine.
func (d *Dispatcher[S]) Events(ctx context.Context, run string, listen Listen) iter.Seq2[Event, error] {
	return d.inside().events(ctx, run, listen)
}
