package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// both asks in two nodes beside each other, pays if it is told to, and may lose what came of that.
func both(t *testing.T, store checkpoint.Store, loses bool) *dispatcher.Dispatcher[parcel] {
	t.Helper()
	b := dag.New[parcel]("both")
	for _, name := range []string{"ann", "eve"} {
		dag.Step(b, name, func(ctx context.Context, p *parcel) error {
			if _, err := dag.Ask[bool](ctx, "sure", "?"); err != nil {
				return err
			}
			p.Steps.Append(name)
			return nil
		})
	}
	dag.Step(b, "pay", func(ctx context.Context, _ *parcel) error {
		_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
			if loses {
				return 0, errLost
			}
			return 1, nil
		}, dag.InDoubt(dag.DoubtAsks))
		return err
	})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return process(t, g, store, dispatcher.Options{})
}

// A run that was answered and not gone on with is recovered, if the supervisor is to: however much
// was said of it since, and whatever else it waits for. One of which nothing was answered since it
// came to rest is left as it is, and is not told of.
func TestRecoverOfRunsThatWereAnswered(t *testing.T) {
	ctx := t.Context()
	answer := func(d *dispatcher.Dispatcher[parcel], run, path string) error {
		res, err := d.State(ctx, run)
		if err != nil && !errors.Is(err, dispatcher.ErrInterrupted) {
			return err
		}
		for _, i := range res.Interrupts {
			if i.Path == path {
				return d.Answer(ctx, run, i.ID, true)
			}
		}
		return fmt.Errorf("nothing waits at %s: %+v", path, res.Interrupts)
	}
	note := func(d *dispatcher.Dispatcher[parcel], run string, times int) (err error) {
		for i := range times {
			err = errors.Join(err, d.Note(ctx, run, "note", i))
		}
		return err
	}
	runs := map[string]struct {
		loses bool
		since func(d *dispatcher.Dispatcher[parcel], run string) error
		goes  bool
		steps []string
	}{
		"nothing was said": {since: func(*dispatcher.Dispatcher[parcel], string) error { return nil }},
		"much was noted":   {since: func(d *dispatcher.Dispatcher[parcel], run string) error { return note(d, run, 100) }},
		"one was answered": {goes: true, since: func(d *dispatcher.Dispatcher[parcel], run string) error { return answer(d, run, "eve") }},
		"answered, and much was noted": {goes: true, since: func(d *dispatcher.Dispatcher[parcel], run string) error {
			return errors.Join(answer(d, run, "eve"), note(d, run, 100))
		}},
		"all were answered": {goes: true, steps: []string{"ann", "eve"}, since: func(d *dispatcher.Dispatcher[parcel], run string) error {
			return errors.Join(answer(d, run, "eve"), answer(d, run, "ann"))
		}},
		"gone on with since": {since: func(d *dispatcher.Dispatcher[parcel], run string) error {
			err := answer(d, run, "eve")
			if _, rested := d.Continue(ctx, run); !errors.Is(rested, dispatcher.ErrInterrupted) {
				return rested
			}
			return errors.Join(err, note(d, run, 3))
		}},
		"a doubt was resolved": {loses: true, goes: true, since: func(d *dispatcher.Dispatcher[parcel], run string) error {
			return d.Resolve(ctx, run, "pay", "pay", dispatcher.NotHappened("looked"))
		}},
		"answered, and trimmed": {goes: true, steps: []string{"ann", "eve"}, since: func(d *dispatcher.Dispatcher[parcel], run string) error {
			return errors.Join(answer(d, run, "eve"), answer(d, run, "ann"), d.Trim(ctx, run, dispatcher.Retention{Last: 1}))
		}},
	}
	for _, option := range []bool{false, true} {
		var store memory.Store
		d := both(t, &store, false)
		var want []string
		before := map[string]uint64{}
		for run, of := range runs {
			if _, err := both(t, &store, of.loses).Run(ctx, run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatalf("%s: %v", run, err)
			}
			if err := of.since(d, run); err != nil {
				t.Fatalf("%s: %v", run, err)
			}
			info, err := store.Stat(ctx, run)
			if err != nil {
				t.Fatal(err)
			}
			if before[run] = info.Head.Seq; of.goes && option {
				want = append(want, run)
			}
		}
		slices.Sort(want)
		s := supervise(t, &store, supervisor.Options{Answered: option}, d)
		r, err := s.Recover(ctx)
		if err != nil || !slices.Equal(r.Rested, want) || len(r.Failed)+len(r.Left)+len(r.Busy) > 0 {
			t.Errorf("Recover = %+v, %v; want that %q rest", r, err, want)
		}
		for run, of := range runs {
			info, err := store.Stat(ctx, run)
			if goes := of.goes && option; err != nil || info.Owner != "" || (info.Head.Seq > before[run]) != goes {
				t.Errorf("%s: %+v, %v; it was at entry %d", run, info, err, before[run])
			}
			status := checkpoint.StatusInterrupted
			if option && of.steps != nil {
				status = checkpoint.StatusCompleted
				if res, err := d.State(ctx, run); err != nil || !slices.Equal(res.State.Steps.Slice(), of.steps) {
					t.Errorf("%s: it went to %q, %v", run, res.State.Steps.Slice(), err)
				}
			}
			if info.Status != status {
				t.Errorf("%s: it is %s, want %s", run, info.Status, status)
			}
		}
		if again, err := s.Recover(ctx); err != nil || len(again.Rested) > 0 {
			t.Errorf("once more Recover = %+v, %v", again, err)
		}
	}
}

// An answer that nobody has taken into the log counts as one: it was posted, as to a run that
// somebody has, who died.
func TestRecoverOfARunWithAnAnswerThatWasPosted(t *testing.T) {
	var store memory.Store
	d := asking(t, &store)
	if _, err := d.Run(t.Context(), "run", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	lease, err := store.Acquire(t.Context(), "run", checkpoint.Amender("somebody"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() { answered <- d.Answer(ctx, "run", "", true) }() // ends with ctx at the latest
	for posted := false; !posted; {
		posts, err := store.Posts(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		posted = len(posts) > 0
	}
	cancel()
	<-answered
	if err := store.Release(t.Context(), lease); err != nil { // as a process that died
		t.Fatal(err)
	}
	s := supervise(t, &store, supervisor.Options{Answered: true}, d)
	if r, err := s.Recover(t.Context()); err != nil || !slices.Equal(r.Rested, []string{"run"}) {
		t.Errorf("Recover = %+v, %v", r, err)
	}
	if all := statuses(t, &store); all["run"] != checkpoint.StatusCompleted {
		t.Errorf("it is %s", all["run"])
	}
}

// What keeps the end of a log from being read is told of its run; what ends with the context is
// none of that, and neither is a run that is gone.
func TestRecoverLooksAtLogsThatCantBeRead(t *testing.T) {
	store := &memory.Faulty{}
	d := asking(t, store)
	for _, run := range []string{"a", "b"} {
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		if err := d.Answer(t.Context(), run, "", true); err != nil {
			t.Fatal(err)
		}
	}
	s := supervise(t, store, supervisor.Options{Answered: true}, d)
	gone, cancel := context.WithCancelCause(t.Context())
	var fails error
	store.FailRead = func(_ context.Context, method, run string) error {
		if method != "Read" || run != "a" {
			return nil
		}
		if fails == nil {
			cancel(errLost)
			return gone.Err()
		}
		return fails
	}
	if r, err := s.Recover(gone); !errors.Is(err, errLost) || len(r.Failed) > 0 {
		t.Errorf("Recover whose context ends = %+v, %v", r, err)
	}
	for _, fails = range []error{checkpoint.ErrCorrupt, checkpoint.ErrNotFound} {
		r, err := s.Recover(t.Context())
		if want := fails == checkpoint.ErrCorrupt; err != nil || (errors.Is(failed(r)["a"], fails) && len(r.Failed) == 1) != want {
			t.Errorf("%v: Recover = %+v, %v", fails, r, err)
		}
	}
	if all := statuses(t, store); all["a"] != checkpoint.StatusInterrupted || all["b"] != checkpoint.StatusCompleted {
		t.Errorf("they are %v", all)
	}
}
