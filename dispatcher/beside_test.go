package dispatcher_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// happensAt has something happen before the n-th call of a store, from now on.
func happensAt(s *memory.Faulty, n int, what func(s *memory.Store)) {
	var calls atomic.Int64 // also of who reads what was posted, beside the run
	tick := func() {
		if calls.Add(1) == int64(n) {
			what(&s.Store)
		}
	}
	s.FailRead = func(context.Context, string, string) error { tick(); return nil }
	s.Fail = func(context.Context, memory.Write) memory.Fault { tick(); return memory.None }
}

// besideLine is a line of nodes, of which the second has an effect and the last asks, again in each
// turn.
func besideLine(t *testing.T) *dag.Graph[Tale] {
	b := dag.New[Tale]("line")
	first := dag.Step(b, "first", nothing[Tale])
	pays := dag.Step(b, "pays", func(ctx context.Context, s *Tale) error {
		_, err := dag.Effect(ctx, "pay", 7, func(context.Context, int) (string, error) { return "paid", nil })
		s.Said.Append("paid")
		return err
	}, first)
	third := dag.Step(b, "third", nothing[Tale], pays)
	fourth := dag.Step(b, "fourth", nothing[Tale], third)
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		_, err := dag.Ask[int](ctx, "n", "how many?")
		return err
	}, fourth)
	return frozen(t, b)
}

// besideCalls are the calls that only look at a run, or look at it before they write.
var besideCalls = map[string]func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error{
	"State": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.State(ctx, id)
		return err
	},
	"StateOf": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := dispatcher.StateOf[Tale](ctx, d, id, "")
		return err
	},
	"At": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.At(ctx, id, "")
		return err
	},
	"At a tag": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.At(ctx, id, "tag:good")
		return err
	},
	"Open": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.Open(ctx, id)
		return err
	},
	"Lineage": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.Lineage(ctx, id)
		return err
	},
	"Blame": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.Blame(ctx, id, "")
		return err
	},
	"Diff": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.Diff(ctx, id, "tag:good", "")
		return err
	},
	"Fork": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.Fork(ctx, id, "", dispatcher.ForkOptions[Tale]{})
		return err
	},
	"Fork of a tag": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.Fork(ctx, id, "tag:good", dispatcher.ForkOptions[Tale]{})
		return err
	},
	"Rewind": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		return d.Rewind(ctx, id, "tag:good", dispatcher.RewindOptions{})
	},
	"Rewind to the last": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		return d.Rewind(ctx, id, "", dispatcher.RewindOptions{})
	},
	"Answer": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		return d.Answer(ctx, id, "", 1)
	},
	"Tag": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		return d.Tag(ctx, id, "tag:good", "better")
	},
	"Note": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		return d.Note(ctx, id, "seen", 1, dispatcher.Message("m"))
	},
	"History": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		for _, err := range d.History(ctx, id) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"HistoryOf": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		_, err := d.HistoryOf(ctx, id, dispatcher.HistoryFilter{})
		return err
	},
	"Events": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
		for _, err := range d.Events(ctx, id, dispatcher.Listen{Since: dispatcher.Now, States: true}) {
			if err != nil {
				return err
			}
		}
		return nil
	},
}

// A call that looks at a run which is trimmed meanwhile, be it a fork, or one that goes on before
// that, tells of the run as it is then; of one that is deleted it is ErrNotFound. None of them
// takes it for damaged.
func TestLooksBesideATrim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, looksBesideATrim) // a store that is asked for the lease that its caller has takes its time
}

func looksBesideATrim(t *testing.T) {
	g := besideLine(t)
	keep := func(last int) dispatcher.Retention { return dispatcher.Retention{Last: last, Tagged: true} }
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, dispatcher.ErrInterrupted) && !errors.Is(err, checkpoint.ErrBusy) {
			t.Fatal(err)
		}
	}
	goesOn := func(t *testing.T, d *dispatcher.Dispatcher[Tale], id string) {
		if err := d.Answer(t.Context(), id, "", 1); errors.Is(err, dispatcher.ErrNotAwaited) {
			return // somebody else did
		}
		_, err := d.Run(t.Context(), id, nil)
		must(t, err)
	}
	prepared := map[string]*memory.Faulty{}
	for _, id := range []string{run, "fork", "whole fork"} {
		prepared[id] = &memory.Faulty{}
		owner := callsDispatcher(t, g, prepared[id], dispatcher.Options{})
		_, err := owner.Run(t.Context(), run, nil)
		must(t, err)
		must(t, owner.Tag(t.Context(), run, "1", "good"))
		if id == run {
			must(t, owner.Trim(t.Context(), run, keep(3)))
			continue
		}
		forkOne(t, owner, "1", id, dispatcher.ReuseOrLive)
		_, err = owner.Run(t.Context(), id, nil)
		must(t, err)
		must(t, owner.Tag(t.Context(), id, "3", "good"))
		if id == "fork" {
			must(t, owner.Trim(t.Context(), id, keep(2)))
		}
	}
	for what, happens := range map[string]func(t *testing.T, s *memory.Store, d *dispatcher.Dispatcher[Tale], id string){
		"trimmed": func(t *testing.T, _ *memory.Store, d *dispatcher.Dispatcher[Tale], id string) {
			must(t, d.Trim(t.Context(), id, keep(1)))
		},
		"trimmed further on": func(t *testing.T, _ *memory.Store, d *dispatcher.Dispatcher[Tale], id string) {
			goesOn(t, d, id)
			must(t, d.Trim(t.Context(), id, keep(1)))
		},
		"deleted": func(t *testing.T, s *memory.Store, _ *dispatcher.Dispatcher[Tale], id string) {
			must(t, s.Delete(t.Context(), id))
		},
	} {
		for id, was := range prepared {
			for name, call := range besideCalls {
				for n, hit := 1, true; hit; n++ {
					hit = false
					s := was.Crash(0)
					happensAt(s, n, func(s *memory.Store) {
						hit = true
						happens(t, s, callsDispatcher(t, g, s, dispatcher.Options{}), id)
					})
					err := call(t.Context(), callsDispatcher(t, g, s, dispatcher.Options{}), id)
					switch {
					case err == nil:
					case what == "deleted" && errors.Is(err, dispatcher.ErrNotFound):
					case name == "Answer" && what == "trimmed further on" && // it has its answer, be it this one
						(errors.Is(err, dispatcher.ErrNotAwaited) || errors.Is(err, checkpoint.ErrCommitUnknown)):
					case name == "Events" && what == "trimmed further on" && errors.Is(err, checkpoint.ErrTrimmed): // it has missed some
					default:
						t.Errorf("%s of the %s that is %s before call %d of the store: %v", name, id, what, n, err)
					}
				}
			}
		}
	}
}

// A base that is not in the store is damage, and an entry that was trimmed before is not there:
// nobody looks again without end.
func TestLooksAtWhatIsGone(t *testing.T) {
	t.Parallel()
	g := besideLine(t)
	s := &memory.Faulty{}
	d := callsDispatcher(t, g, s, dispatcher.Options{})
	if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	for _, err := range d.Events(t.Context(), run, dispatcher.Listen{Since: 2, States: true}) {
		if !errors.Is(err, checkpoint.ErrTrimmed) {
			t.Errorf("what was trimmed is %v", err)
		}
	}
	looks := 0
	s.FailRead = func(_ context.Context, method, _ string) error {
		if method == "Base" {
			looks++
			return checkpoint.ErrNotFound
		}
		return nil
	}
	if _, err := d.At(t.Context(), run, ""); !errors.Is(err, checkpoint.ErrCorrupt) || looks != 1 {
		t.Errorf("without its base the run is %v behind %d looks", err, looks)
	}
}
