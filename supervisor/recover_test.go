package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// leave makes runs of d and leaves them running after their first step, as a process that
// dies does.
func leave(t *testing.T, d *dispatcher.Dispatcher[parcel], drain chan struct{}, runs ...string) {
	t.Helper()
	for _, run := range runs {
		res, err := d.Run(t.Context(), run, nil, dispatcher.Drain(drain), dispatcher.Labels(map[string]string{"tenant": run[:1]}))
		if !errors.Is(err, dispatcher.ErrDrain) {
			t.Fatalf("run %q is %s, %v, and not left running", run, res.Status, err)
		}
	}
}

// left is a graph in which the first step of a run closes or finds closed what makes it drain.
func left(t *testing.T, name string, steps int, store checkpoint.Store, runs ...string) {
	t.Helper()
	drain := make(chan struct{})
	var once sync.Once
	g := line(t, name, steps, func(context.Context, int) error { once.Do(func() { close(drain) }); return nil })
	d := process(t, g, store, dispatcher.Options{})
	leave(t, d, drain, runs...)
}

// failed lists the runs that could not be recovered, with what their errors are.
func failed(r supervisor.Recovery) map[string]error {
	all := map[string]error{}
	for _, e := range r.Failed {
		all[e.Run] = e.Err
	}
	return all
}

// Recover goes on with every run that was left running, never begun, or rewound, of all pages, and
// with no other; once more it finds nothing to do.
func TestRecoverFindsEveryRunThatWasLeft(t *testing.T) {
	quiet(t)
	var store memory.Store
	var want []string
	for i := range 250 {
		want = append(want, fmt.Sprintf("a-%03d", i))
	}
	left(t, "line", 3, &store, want...)
	left(t, "other", 2, &store, "b-0")
	begin := process(t, line(t, "line", 3, nil), &store, dispatcher.Options{InterruptBefore: []string{"step-1"}})
	for _, run := range []string{"interrupted-0", "interrupted-1"} {
		if _, err := begin.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
	}
	bad := process(t, line(t, "line", 3, func(context.Context, int) error { return errLost }), &store, dispatcher.Options{})
	if _, err := bad.Run(t.Context(), "failed", nil); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := begin.Run(gone, "cancelled", nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := begin.Run(t.Context(), "rewound", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := begin.Rewind(t.Context(), "rewound", "0", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	before := statuses(t, &store)

	lines := process(t, line(t, "line", 3, nil), &store, dispatcher.Options{})
	others := process(t, line(t, "other", 2, nil), &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{Cap: 4, Queue: 10}, lines, others)
	r, err := s.Recover(t.Context())
	if want = append(want, "b-0", "rewound"); err != nil || !slices.Equal(r.Rested, want) || len(r.Failed)+len(r.Left)+len(r.Busy) > 0 {
		t.Errorf("Recover = %+v, %v", r, err)
	}
	after := statuses(t, &store)
	for run, status := range before {
		switch {
		case slices.Contains(want, run) && after[run] != checkpoint.StatusCompleted:
			t.Errorf("run %q is %s", run, after[run])
		case !slices.Contains(want, run) && after[run] != status:
			t.Errorf("run %q was %s and is %s", run, status, after[run])
		}
	}
	if r, err := s.Recover(t.Context()); err != nil || len(r.Rested)+len(r.Failed)+len(r.Left)+len(r.Busy) > 0 {
		t.Errorf("Recover again = %+v, %v", r, err)
	}
}

// damaged is a store in which the logs of some runs are damaged: reading them fails, and so
// does listing them, if the listing says so. The keys of sealed ones are missing.
type damaged struct {
	checkpoint.Store
	reads, lists, sealed []string
}

func (s damaged) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	if slices.Contains(s.reads, run) {
		return checkpoint.Snapshot{}, &checkpoint.CorruptError{Run: run, Seq: 2, Reason: "a test"}
	}
	return s.Store.Snapshot(ctx, run, upTo)
}

func (s damaged) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := s.Store.List(ctx, f)
	for i, info := range page {
		if slices.Contains(s.lists, info.Run) {
			return page[:i], &checkpoint.CorruptError{Run: info.Run, Reason: "a test"}
		}
		if slices.Contains(s.sealed, info.Run) {
			return page[:i], checkpoint.Corrupt(info.Run, 2, checkpoint.ErrKey)
		}
	}
	return page, err
}

// A completed run for which input waits is not brought back: whoever submits it has the input
// taken.
func TestRecoverLeavesInputThatWaits(t *testing.T) {
	var store memory.Store
	d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
	if _, err := d.Run(t.Context(), "run", nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Enqueue(t.Context(), "run", func(*parcel) {}); err != nil {
		t.Fatal(err)
	}
	s := supervise(t, &store, supervisor.Options{}, d)
	if r, err := s.Recover(t.Context()); err != nil || len(r.Rested)+len(r.Failed)+len(r.Left)+len(r.Busy) > 0 {
		t.Errorf("Recover = %+v, %v, want nothing", r, err)
	}
	if res, err := submit(t, s, d, "", "run").Wait(t.Context()); err != nil || res.Turn != 2 {
		t.Errorf("who submits the run gets turn %d, %v, want the second", res.Turn, err)
	}
}

// A run that can't go on is reported with its reason, keeps nobody else from it, and is still
// there the next time; then, with another program, it goes on.
func TestRecoverReportsWhatItCannot(t *testing.T) {
	quiet(t)
	var store memory.Store
	left(t, "line", 3, &store, "a-0", "changed", "damaged", "a-1", "unlisted", "a-2", "sealed", "live")
	left(t, "unknown", 3, &store, "unknown")
	left(t, "renamed", 4, &store, "shorter")
	if _, err := store.Acquire(t.Context(), "live", "another process"); err != nil {
		t.Fatal(err)
	}
	hurt := damaged{&store, []string{"damaged"}, []string{"unlisted"}, []string{"sealed"}}
	d := process(t, line(t, "line", 3, nil), hurt, dispatcher.Options{})
	for range 2 {
		s := supervise(t, hurt, supervisor.Options{}, d)
		r, err := s.Recover(t.Context())
		if err != nil || !slices.Equal(r.Busy, []string{"live"}) || len(r.Left) > 0 {
			t.Errorf("Recover = %+v, %v", r, err)
		}
		got := failed(r)
		if len(got) != 5 || !errors.Is(got["damaged"], checkpoint.ErrCorrupt) || !errors.Is(got["sealed"], checkpoint.ErrKey) || !errors.Is(got["unlisted"], checkpoint.ErrCorrupt) ||
			!errors.Is(got["unknown"], supervisor.ErrUnknownGraph) || !errors.Is(got["shorter"], supervisor.ErrUnknownGraph) {
			t.Errorf("Recover could not: %v", got)
		}
	}
	whole := supervise(t, &store, supervisor.Options{},
		process(t, line(t, "line", 3, nil), &store, dispatcher.Options{}),
		process(t, line(t, "unknown", 3, nil), &store, dispatcher.Options{}),
		process(t, line(t, "renamed", 4, nil), &store, dispatcher.Options{}))
	r, err := whole.Recover(t.Context())
	if err != nil || !slices.Equal(r.Rested, []string{"damaged", "sealed", "shorter", "unknown", "unlisted"}) || len(r.Failed) > 0 {
		t.Errorf("Recover = %+v, %v", r, err)
	}
}

// A run whose graph has another past is refused by its dispatcher, reported, and left.
func TestRecoverOfAChangedGraph(t *testing.T) {
	var store memory.Store
	left(t, "line", 3, &store, "run")
	b := dag.New[parcel]("line")
	dag.Step(b, "another", func(context.Context, *parcel) error { return nil })
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	changed := process(t, g, &store, dispatcher.Options{})
	var told []supervisor.Event
	observe := func(e supervisor.Event) {
		if e.Kind == supervisor.Recovered {
			told = append(told, e)
		}
	}
	s := supervise(t, &store, supervisor.Options{Observe: observe}, changed)
	for range 2 {
		r, err := s.Recover(t.Context())
		if e := told[len(told)-1]; e.Err == nil || e.Run != "run" || e.Key != "line" {
			t.Errorf("told %v, for %q", e, e.Key)
		}
		var refused *dispatcher.GraphChangedError
		if err != nil || len(r.Failed) != 1 || !errors.As(r.Failed[0], &refused) || r.Failed[0].Graph != "line" {
			t.Errorf("Recover = %+v, %v", r, err)
		}
	}
	if all := statuses(t, &store); all["run"] != checkpoint.StatusRunning {
		t.Errorf("the run is %s", all["run"])
	}
}

// vanishing is a store in which the last run of each page is deleted behind the listing.
type vanishing struct {
	checkpoint.Store
	left int
}

func (s *vanishing) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := s.Store.List(ctx, f)
	if s.left--; s.left >= 0 && len(page) > 0 {
		err = errors.Join(err, s.Delete(ctx, page[len(page)-1].Run))
	}
	return page, err
}

// Runs that are deleted while they are listed are no errors and hide no others.
func TestRecoverWhileRunsVanish(t *testing.T) {
	quiet(t)
	var store memory.Store
	var runs []string
	for i := range 230 {
		runs = append(runs, fmt.Sprintf("a-%03d", i))
	}
	left(t, "line", 2, &store, runs...)
	shrinks := &vanishing{&store, 2}
	d := process(t, line(t, "line", 2, nil), shrinks, dispatcher.Options{})
	s := supervise(t, shrinks, supervisor.Options{}, d)
	r, err := s.Recover(t.Context())
	if err != nil || len(r.Rested) < 228 || len(r.Failed) > 0 {
		t.Errorf("Recover = %d rested, %v, %v", len(r.Rested), r.Failed, err)
	}
	for run, status := range statuses(t, &store) {
		if status != checkpoint.StatusCompleted {
			t.Errorf("run %q is %s", run, status)
		}
	}
}

var errListing = errors.New("the listing fails")

type unlistable struct{ checkpoint.Store }

func (unlistable) List(context.Context, checkpoint.Filter) ([]checkpoint.Info, error) {
	return nil, errListing
}

// Errors of listing are returned; the end of the context is too, and then the runs go on.
func TestRecoverEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "a-0", "a-1", "a-2", "a-3", "a-4")
		g := line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil })
		d, blind := process(t, g, &store, dispatcher.Options{}), process(t, g, unlistable{&store}, dispatcher.Options{})
		if _, err := supervise(t, unlistable{&store}, supervisor.Options{}, blind).Recover(t.Context()); !errors.Is(err, errListing) {
			t.Errorf("Recover = %v", err)
		}
		s := supervise(t, &store, supervisor.Options{Cap: 1, Queue: 1}, d)
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		r, err := s.Recover(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || len(r.Rested) != 1 || len(r.Left) == 0 || len(r.Failed) > 0 {
			t.Errorf("Recover = %+v, %v", r, err)
		}
		r, err = s.Recover(t.Context())
		if err != nil || len(r.Failed)+len(r.Left) > 0 {
			t.Errorf("Recover = %+v, %v", r, err)
		}
		for run, status := range statuses(t, &store) {
			if status != checkpoint.StatusCompleted {
				t.Errorf("run %q is %s", run, status)
			}
		}
	})
}

// Runs are recovered in turns by their label, in their places in the queue, beside runs that
// are submitted.
func TestRecoverTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "b-0", "a-2", "a-1", "a-0") // newest first
		var order diary
		d := process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1, Label: "tenant", Observe: func(e supervisor.Event) {
			if e.Kind == supervisor.Began {
				order.note(e.Key + " " + e.Run)
			}
		}}, d)
		ended := make(chan error, 1)
		go func() {
			_, err := s.Recover(t.Context())
			ended <- err
		}()
		synctest.Wait()
		completes(t, submit(t, s, d, "c", "new"))
		if err := <-ended; err != nil {
			t.Error(err)
		}
		order.expect(t, "a a-0", "a a-1", "b b-0", "c new", "a a-2")
	})
}

// A run that was listed, and can't be queued since the context ends, is told of as left.
func TestRecoverTellsOfTheRunAtWhichItEnds(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "a-0", "a-1")
	ctx, cancel := context.WithCancel(t.Context())
	ends := listing{&store, cancel}
	s := supervise(t, ends, supervisor.Options{}, process(t, line(t, "line", 2, nil), ends, dispatcher.Options{}))
	r, err := s.Recover(ctx)
	if !errors.Is(err, context.Canceled) || !slices.Equal(r.Left, []string{"a-1"}) || len(r.Rested)+len(r.Failed)+len(r.Busy) > 0 {
		t.Errorf("Recover = %+v, %v, want that a-1 is left", r, err)
	}
}

// listing is a store that has something happen behind each listing.
type listing struct {
	checkpoint.Store
	then func()
}

func (s listing) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	defer s.then()
	return s.Store.List(ctx, f)
}

// Who joins a run that is to be recovered, and that has come to rest before its turn, is told its
// status.
func TestJoiningARecoveryOfARunThatRests(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "run")
	goes, busy := make(chan struct{}), make(chan struct{})
	blocked := process(t, line(t, "other", 1, func(context.Context, int) error { close(busy); <-goes; return nil }), &store, dispatcher.Options{})
	d := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{})
	queued := make(chan struct{})
	s := supervise(t, &store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) {
		if e.Kind == supervisor.Queued && e.Run == "run" {
			close(queued)
		}
	}}, d, blocked)
	first := submit(t, s, blocked, "", "first")
	<-busy
	recovered := make(chan supervisor.Recovery, 1)
	go func() {
		r, err := s.Recover(t.Context())
		if err != nil {
			t.Error(err)
		}
		recovered <- r
	}()
	<-queued
	task := submit(t, s, d, "", "run")
	other := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{InterruptBefore: []string{"step-1"}})
	if _, err := other.Continue(t.Context(), "run"); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	close(goes)
	res, err := task.Wait(t.Context())
	if res.Status != checkpoint.StatusInterrupted || !errors.Is(err, dispatcher.ErrInterrupted) || res.State.Steps.Len() != 1 {
		t.Errorf("who has joined gets %q, %s, %v, want that it is interrupted behind its first step", res.Status, res.State.Steps, err)
	}
	if r := <-recovered; !slices.Equal(r.Rested, []string{"run"}) {
		t.Errorf("Recover = %+v", r)
	}
	completes(t, first)
}

// asking asks before its second step.
func asking(t *testing.T, store checkpoint.Store) *dispatcher.Dispatcher[parcel] {
	t.Helper()
	return process(t, line(t, "line", 2, func(ctx context.Context, step int) (err error) {
		if step == 1 {
			_, err = dag.Ask[bool](ctx, "sure", "?")
		}
		return err
	}), store, dispatcher.Options{})
}

// Who joins a run that is to be recovered has it gone on with, as who submits one that rests: also
// if it has come to rest before its turn, and was answered.
func TestJoiningARecoveryGoesOnWithTheRun(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "run")
	d, other := asking(t, &store), asking(t, &store)
	var s *supervisor.Supervisor
	var task *supervisor.Task[struct{}]
	s = supervise(t, &store, supervisor.Options{Observe: func(e supervisor.Event) {
		if e.Kind != supervisor.Queued {
			return
		}
		_, err := other.Continue(t.Context(), "run")
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Error(err)
		}
		if err := other.Answer(t.Context(), "run", "", true); err != nil {
			t.Error(err)
		}
		if task, err = s.Continue(t.Context(), "", "run"); err != nil {
			t.Error(err)
		}
	}}, d)
	if r, err := s.Recover(t.Context()); err != nil || !slices.Equal(r.Rested, []string{"run"}) {
		t.Errorf("Recover = %+v, %v", r, err)
	}
	if res, err := task.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
		t.Errorf("who has joined gets %q, %v, want that it is completed", res.Status, err)
	}
}

// A mute runner has no result beside its error.
type mute struct{ *dispatcher.Dispatcher[parcel] }

func (mute) Continue(context.Context, string, ...dispatcher.RunOption) (*dispatcher.Result[struct{}], error) {
	return nil, errLost
}

// Who has joined the recovery of a run that rests by then is told which run it is, also if its
// Runner has no result.
func TestJoiningARecoveryOfARunnerWithoutAResult(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "run")
	d := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{})
	var s *supervisor.Supervisor
	var task *supervisor.Task[struct{}]
	s = supervise(t, &store, supervisor.Options{Observe: func(e supervisor.Event) {
		if e.Kind != supervisor.Queued {
			return
		}
		err := d.Cancel(t.Context(), "run", nil)
		if err != nil {
			t.Error(err)
		}
		if task, err = s.Continue(t.Context(), "", "run"); err != nil {
			t.Error(err)
		}
	}}, mute{d})
	if _, err := s.Recover(t.Context()); err != nil {
		t.Error(err)
	}
	if res, err := task.Wait(t.Context()); !errors.Is(err, errLost) || res.Run != "run" {
		t.Errorf("who has joined gets the result of run %q, %v", res.Run, err)
	}
}

// A run that somebody has submitted is gone on with, also if another Recover comes upon it before
// its turn.
func TestRecoverOfARunThatWasSubmitted(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "run")
	synctest.Test(t, func(t *testing.T) {
		d := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		hold := make(chan struct{})
		gated(t, s, d, hold)
		first := recovering(t, s)
		synctest.Wait()
		task := submit(t, s, d, "", "run")
		second := recovering(t, s)
		synctest.Wait()
		if err := d.Cancel(t.Context(), "run", errLost); err != nil {
			t.Fatal(err)
		}
		close(hold)
		if res, err := task.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
			t.Errorf("who has submitted the run gets %q, %v, want that it is completed", res.Status, err)
		}
		for _, r := range []supervisor.Recovery{<-first, <-second} {
			if !slices.Equal(r.Rested, []string{"run"}) {
				t.Errorf("Recover = %+v", r)
			}
		}
	})
}

// Who joins a run when it was its turn, and it was left at rest, is told how it rests, and gets its
// state.
func TestJoiningARecoveryThatIsOver(t *testing.T) {
	for _, status := range []checkpoint.Status{checkpoint.StatusInterrupted, checkpoint.StatusCancelled} {
		t.Run(string(status), func(t *testing.T) {
			var store memory.Store
			left(t, "line", 2, &store, "run")
			other := asking(t, &store)
			rests := listing{&store, func() {
				if _, err := other.Continue(t.Context(), "run"); !errors.Is(err, dispatcher.ErrInterrupted) {
					t.Error(err)
				}
				if status != checkpoint.StatusCancelled {
					return
				}
				if err := other.Cancel(t.Context(), "run", errLost); err != nil {
					t.Error(err)
				}
			}}
			d := asking(t, rests)
			var s *supervisor.Supervisor
			var task *supervisor.Task[parcel]
			s = supervise(t, rests, supervisor.Options{Observe: func(e supervisor.Event) {
				if e.Kind == supervisor.Ended && task == nil {
					task = submit(t, s, d, "", "run")
				}
			}}, d)
			if r, err := s.Recover(t.Context()); err != nil || !slices.Equal(r.Rested, []string{"run"}) {
				t.Errorf("Recover = %+v, %v", r, err)
			}
			res, err := task.Wait(t.Context())
			var rest *dispatcher.Rest
			if res.Status != status || !errors.As(err, &rest) || rest.Status != status || res.State.Steps.Len() != 1 {
				t.Errorf("who has joined gets %q, %s, %v, want that it is %s behind its first step", res.Status, res.State.Steps, err, status)
			}
		})
	}
}

// appending is a store whose next append tells that it has begun, and ends a second later.
type appending struct {
	*memory.Store
	began chan struct{} // closed then; nil: not the next
}

func (s *appending) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	if began := s.began; began != nil {
		s.began = nil
		close(began)
		lasts(time.Second)
	}
	return s.Store.Append(ctx, l, after, entries)
}

// A run of which somebody says something at that moment is recovered all the same; one that is
// cancelled then stays so.
func TestRecoverBesideAnAmendment(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, d *dispatcher.Dispatcher[parcel]) error{
		"note":   func(ctx context.Context, d *dispatcher.Dispatcher[parcel]) error { return d.Note(ctx, "run", "a.b", 1) },
		"tag":    func(ctx context.Context, d *dispatcher.Dispatcher[parcel]) error { return d.Tag(ctx, "run", "0", "n") },
		"cancel": func(ctx context.Context, d *dispatcher.Dispatcher[parcel]) error { return d.Cancel(ctx, "run", nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &appending{Store: new(memory.Store)}
			left(t, "line", 2, store, "run")
			began := make(chan struct{})
			store.began = began
			by := process(t, line(t, "line", 2, nil), store, dispatcher.Options{})
			said := make(chan error, 1)
			go func() { said <- call(t.Context(), by) }() // waited for below
			<-began
			s := supervise(t, store, supervisor.Options{}, process(t, line(t, "line", 2, nil), store, dispatcher.Options{}))
			r, err := s.Recover(t.Context())
			if err != nil || !slices.Equal(r.Rested, []string{"run"}) || len(r.Busy)+len(r.Failed)+len(r.Left) > 0 {
				t.Errorf("Recover beside a %s = %+v, %v", name, r, err)
			}
			if err := <-said; err != nil {
				t.Errorf("the %s: %v", name, err)
			}
			want := checkpoint.StatusCompleted
			if name == "cancel" {
				want = checkpoint.StatusCancelled
			}
			if got := statuses(t, store)["run"]; got != want {
				t.Errorf("beside a %s the run comes to be %s, want %s", name, got, want)
			}
		})
	}
}

// A run that is cancelled behind the look at it, before its turn has the lease, is not recovered.
func TestRecoverOfARunThatIsCancelledMeanwhile(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "run")
	g := line(t, "line", 2, nil)
	by := process(t, g, &store, dispatcher.Options{})
	cancels := runner{process(t, g, &store, dispatcher.Options{}), func() {
		if err := by.Cancel(t.Context(), "run", nil); err != nil {
			t.Error(err)
		}
	}}
	r, err := supervise(t, &store, supervisor.Options{}, cancels).Recover(t.Context())
	if err != nil || !slices.Equal(r.Rested, []string{"run"}) {
		t.Errorf("Recover = %+v, %v", r, err)
	}
	if got := statuses(t, &store)["run"]; got != checkpoint.StatusCancelled {
		t.Errorf("the run is %s", got)
	}
}

// A runner has something happen before each Continue.
type runner struct {
	*dispatcher.Dispatcher[parcel]
	before func()
}

func (r runner) Continue(ctx context.Context, run string, o ...dispatcher.RunOption) (*dispatcher.Result[struct{}], error) {
	r.before()
	return r.Dispatcher.Continue(ctx, run, o...)
}

// A run that somebody amends for longer than that is waited for is no live one: it could not go on,
// and is there the next time.
func TestRecoverBesideAnAmendmentThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "run")
		l, err := store.Acquire(t.Context(), "run", checkpoint.Amender("somebody"))
		if err != nil {
			t.Fatal(err)
		}
		s := supervise(t, &store, supervisor.Options{}, process(t, line(t, "line", 2, nil), &store, dispatcher.Options{}))
		r, err := s.Recover(t.Context())
		if err != nil || len(r.Busy) > 0 || !errors.Is(failed(r)["run"], dispatcher.ErrBusy) {
			t.Errorf("Recover = %+v, %v", r, err)
		}
		if err := store.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Recover(t.Context()); err != nil || !slices.Equal(r.Rested, []string{"run"}) {
			t.Errorf("Recover = %+v, %v", r, err)
		}
	})
}

// What a hook has returned says nothing of the run: it can't go on, whatever the error wraps.
func TestAHookThatIsRefusedElsewhereFailsTheRecovery(t *testing.T) {
	for _, elsewhere := range []error{checkpoint.ErrNotFound, checkpoint.ErrBusy} {
		t.Run(elsewhere.Error(), func(t *testing.T) {
			var store memory.Store
			var told tally
			left(t, "line", 2, &store, "a")
			d := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{Hooks: dispatcher.Hooks{
				OnStart: func(context.Context, dispatcher.Start) error { return elsewhere },
			}})
			s := supervise(t, &store, supervisor.Options{Observe: told.observe}, d)
			r, err := s.Recover(t.Context())
			if err != nil || !errors.Is(failed(r)["a"], elsewhere) || len(r.Rested)+len(r.Left)+len(r.Busy) > 0 {
				t.Errorf("Recover = %+v, %v", r, err)
			}
			told.expect(t, 1)
		})
	}
}
