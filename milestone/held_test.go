package milestone_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
)

// Held are runs of which the tag of that number, counted down, can't be written, once.
type held struct {
	milestone.Runs
	at int
}

func (h *held) Tag(ctx context.Context, run, address, name string, options ...dispatcher.RunOption) error {
	if h.at--; h.at == 0 {
		return errOffline
	}
	return h.Runs.Tag(ctx, run, address, name, options...)
}

// A tag that could not be written is written by the next Name, and so are those behind it.
func TestATagThatCouldNotBeWrittenIsWrittenLater(t *testing.T) {
	for at := 1; ; at++ {
		d := dispatch(t, task(t, func(string) {}), new(memory.Store))
		if _, err := d.Run(t.Context(), "r", nil); err != nil {
			t.Fatal(err)
		}
		runs := &held{d, at}
		n := namer(t, runs)
		if _, err := n.Name(t.Context(), "r"); runs.at > 0 { // there are no more tags
			if at == 1 {
				t.Fatalf("nothing was named: %v", err)
			}
			break
		} else if !errors.Is(err, errOffline) {
			t.Fatal(err)
		}
		if _, err := n.Name(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		got := tags(t, d, "r")
		other := dispatch(t, task(t, func(string) {}), new(memory.Store))
		if _, err := other.Run(t.Context(), "r", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := namer(t, other).Name(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		if all := tags(t, other, "r"); !slices.Equal(got, all) {
			t.Errorf("without tag %d at first there are the names %q, want %q", at, got, all)
		}
	}
}

// Torn are runs of which the reading of that number, counted down, fails, once.
type torn struct {
	milestone.Runs
	at int
}

func (r *torn) Events(ctx context.Context, run string, listen dispatcher.Listen) iter.Seq2[dispatcher.Event, error] {
	if r.at--; r.at == 0 {
		return func(yield func(dispatcher.Event, error) bool) { yield(dispatcher.Event{}, errOffline) }
	}
	return r.Runs.Events(ctx, run, listen)
}

// undecided is a superstep in which somebody decides the first time, and nothing when it is done
// again, and a loop asks between its first and its second node.
func undecided(t *testing.T) *dispatcher.Dispatcher[Task] {
	t.Helper()
	decided := false
	inner := dag.New[Task]("inner")
	dag.Step(inner, "second", asking("on"), dag.Step(inner, "first", func(context.Context, *Task) error { return nil }))
	b := dag.New[Task]("outer")
	dag.Step(b, "decide", func(ctx context.Context, s *Task) error {
		if decided {
			return nil
		}
		decided = true
		return decides("way")(ctx, s)
	})
	dag.Loop(b, "loop", build(t, inner), func(*Task) bool { return true }, 1)
	d, err := dispatcher.New(build(t, b), new(memory.Store), dispatcher.Options{Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A rewind that could not be followed at first, since what it goes back to could not be read, is
// followed by the next Name.
func TestNameFollowsARewindBehindAnError(t *testing.T) {
	for at, failed := 1, true; failed; at++ {
		p := paired(t, undecided(t), milestone.Decision(), milestone.Node("decide"))
		waits(t, goesOn(t, p.Dispatcher))
		p.rewind(t, "0")
		waits(t, goesOn(t, p.Dispatcher))
		if err := goesOn(t, p.Dispatcher, "on"); err != nil {
			t.Fatal(err)
		}
		runs := &torn{p.Dispatcher, at}
		n, err := milestone.New(runs, p.rules...)
		if err != nil {
			t.Fatal(err)
		}
		found, err := n.Name(t.Context(), "r")
		if failed = err != nil; failed && !errors.Is(err, errOffline) {
			t.Fatal(err)
		}
		runs.at = 0
		rest, err := n.Name(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := paired(t, p.Dispatcher, p.rules...).Name(t.Context(), "r")
		if err != nil || len(fresh) == 0 || !slices.Equal(append(found, rest...), fresh) {
			t.Errorf("behind an error of reading %d: %v and %v, want %v, %v", at, found, rest, fresh, err)
		}
	}
}

// What was done before a part of the log that was trimmed unread is not taken for what is done
// behind it: who has read that names what one does who reads the rest alone.
func TestAReadingGoesOnBehindATrim(t *testing.T) {
	fails := true
	nothing := func(context.Context, *Task) error { return nil }
	b := dag.New[Task]("task")
	first := dag.Step(b, "decide", decides("way"))
	flaky := dag.Step(b, "flaky", func(context.Context, *Task) error {
		if fails {
			return errOffline
		}
		return nil
	})
	dag.Step(b, "third", nothing, dag.Step(b, "second", nothing, first, flaky))
	d := dispatch(t, build(t, b), new(memory.Store))
	rules := []milestone.Rule{milestone.Decision(), milestone.Recovery(), milestone.Node("third")}
	n := paired(t, d, rules...)
	if err := goesOn(t, d); !errors.Is(err, errOffline) {
		t.Fatal(err)
	}
	n.found(t)
	fails = false
	if err := goesOn(t, d); err != nil {
		t.Fatal(err)
	}
	if err := d.Trim(t.Context(), "r", dispatcher.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	fresh, err := paired(t, d, rules...).Name(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := n.Name(t.Context(), "r"); err != nil || !slices.Equal(found, fresh) {
		t.Errorf("named %v, %v; who reads what is left names %v", found, err, fresh)
	}
}

// A fork whose origin is damaged takes what it begins with as given, as one whose origin is gone.
func TestForkWhoseOriginIsDamaged(t *testing.T) {
	store := new(memory.Faulty)
	d := dispatch(t, task(t, func(string) {}), store)
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	fork := forked(t, d, "r", "3", true)
	store.Spoil("r", checkpoint.PartLog)
	if got := changes(t, d, fork); len(got) > 0 {
		t.Errorf("the names are %q", got)
	}
}

// A run that had failed, and then waits before it gets to the end of a superstep, recovers there.
func TestRecoveryOfARunThatWaitsFirst(t *testing.T) {
	fails := true
	b := dag.New[Task]("task")
	dag.Step(b, "call", func(ctx context.Context, s *Task) error {
		if fails {
			return errOffline
		}
		return asking("on")(ctx, s)
	})
	p := paired(t, dispatch(t, build(t, b), new(memory.Store)), milestone.Recovery())
	if err := goesOn(t, p.Dispatcher); !errors.Is(err, errOffline) {
		t.Fatal(err)
	}
	fails = false
	waits(t, goesOn(t, p.Dispatcher))
	p.found(t)
	if err := goesOn(t, p.Dispatcher, "on"); err != nil {
		t.Fatal(err)
	}
	p.found(t, "recovery", "recovery call")
}

// What a rewind has left behind counts for nothing in a run that goes back once more, to behind it:
// be it to the entry of that rewind, or to a checkpoint since.
func TestRewoundTwiceLeavesBehindWhatWasAbandoned(t *testing.T) {
	p := paired(t, undecided(t), milestone.Decision(), milestone.Node("decide"))
	waits(t, goesOn(t, p.Dispatcher))
	p.found(t)
	p.rewind(t, "0")
	rewound := p.head(t)
	waits(t, goesOn(t, p.Dispatcher))
	p.found(t)
	for _, to := range []string{"loop/1@1", rewound} {
		p.rewind(t, to)
		waits(t, goesOn(t, p.Dispatcher))
		p.found(t)
	}
	if err := goesOn(t, p.Dispatcher, "on"); err != nil {
		t.Fatal(err)
	}
	p.found(t, "node decide")
}
