package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// failsInside is a graph with everything that holds a frame, in each of which a visit called fails
// fails: of two that follow each other in an Embed and an EachGraph, of the second iteration in a
// Loop, of the second item of an Each. Somebody follows each of these failures.
func failsInside(t testing.TB, fails string) *dag.Graph[Tale] {
	t.Helper()
	inner := func(name string) *dag.Graph[Dive] {
		b := dag.New[Dive](name)
		step := func(name string, after ...dag.Edge[Dive]) dag.Edge[Dive] {
			return dag.Step(b, name, func(_ context.Context, s *Dive) error {
				if name == fails && s.Name.Get() != "well" {
					return errWeather
				}
				s.Paths.Append(name)
				return nil
			}, after...)
		}
		step("second", step("first"))
		return frozen(t, b)
	}
	b, round := dag.New[Tale]("fails"), dag.New[Tale]("round")
	dag.Step(round, "turn", func(_ context.Context, s *Tale) error {
		if s.Count.Get() == 1 {
			return errWeather
		}
		s.Count.Add(1)
		return nil
	})
	some := func(*Tale) []string { return []string{"well", "ill"} }
	for name, failed := range map[string]dag.Edge[Tale]{
		"sub": dag.Embed(b, "sub", inner("sub"),
			func(_ *Tale, to *Dive) { to.Name.Set("ill") }, func(*Dive, *Tale) {}).Failed(),
		"each": dag.EachGraph(b, "each", some, inner("item"),
			func(_ *Tale, item string, to *Dive) { to.Name.Set(item) }, func(*Dive, string, *Tale) {}).Failed(),
		"items": dag.Each(b, "items", some, func(_ context.Context, s *Tale, item string) error {
			if item == "ill" {
				return errWeather
			}
			s.Said.Append(item)
			return nil
		}).Failed(),
		"loop": dag.Loop(b, "loop", frozen(t, round), func(s *Tale) bool { return s.Count.Get() > 2 }, 5).Failed(),
	} {
		dag.Step(b, name+"-failed", func(_ context.Context, s *Tale) error { s.Tags.Add(name); return nil }, failed)
	}
	return frozen(t, b)
}

// A frame that has ended since something in it failed is read as it ended, with what failed, also
// if no superstep of it has. What failed in an iteration is in the last one.
func TestStateOfAFrameThatFailed(t *testing.T) {
	for step, fails := range []string{"first", "second"} {
		var store memory.Store
		d := process(t, failsInside(t, fails), &store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		if err != nil || res.State.Tags.Len() != 4 {
			t.Fatalf("%d failures were followed, %v", res.State.Tags.Len(), err)
		}
		reads := func(address string, superstep int, failed string, read dispatcher.Result[struct{}], err error) {
			t.Helper()
			switch {
			case err != nil:
				t.Errorf("%s: %v", address, err)
			case failed == "" && len(read.Failures) == 0:
			case len(read.Failures) != 1 || read.Failures[0].Path != failed:
				t.Errorf("%s: failures %+v, want that of %s", address, read.Failures, failed)
			}
			if read.Superstep != superstep {
				t.Errorf("%s: superstep %d, want %d", address, read.Superstep, superstep)
			}
		}
		for _, c := range []struct {
			address string
			ended   int
			failed  string
		}{{"sub", step, "sub/" + fails}, {"each/2", step, "each/2/" + fails}, {"each/1", 2, ""}} {
			res, err := dispatcher.StateOf[Dive](t.Context(), d, run, c.address)
			reads(c.address, c.ended, c.failed, dispatcher.Result[struct{}]{Superstep: res.Superstep, Failures: res.Failures}, err)
			if got, want := res.State.Paths.Slice(), []string{"first", "second"}[:c.ended]; !slices.Equal(got, want) || res.State.Name.Get() == "" || res.Frame != c.address {
				t.Errorf("%s is read as %q: %q of %q, want %q", c.address, res.Frame, got, res.State.Name.Get(), want)
			}
		}
		for _, c := range []struct {
			address, frame string
			ended          int
			failed         string
		}{
			{"loop", "loop/2", 0, "loop/2/turn"}, {"loop/2", "loop/2", 0, "loop/2/turn"}, {"loop/1", "loop/1", 1, ""},
			{"items", "items", 0, "items/2"}, {"each", "each", 0, "each/2/" + fails},
		} {
			res, err := dispatcher.StateOf[Tale](t.Context(), d, run, c.address)
			reads(c.address, c.ended, c.failed, dispatcher.Result[struct{}]{Superstep: res.Superstep, Failures: res.Failures}, err)
			if res.Frame != c.frame {
				t.Errorf("%s is read as %q, want %q", c.address, res.Frame, c.frame)
			}
		}
		for _, none := range []string{"loop/3", "each/3", "each/0"} {
			if res, err := dispatcher.StateOf[Tale](t.Context(), d, run, none); !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("%s has not begun: %+v, %v", none, res, err)
			}
		}
		if err := d.Rewind(t.Context(), run, "0", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		if res, err := dispatcher.StateOf[Dive](t.Context(), d, run, "sub"); !errors.Is(err, checkpoint.ErrCursor) {
			t.Errorf("rewound to before it: %+v, %v", res, err)
		}
	}
}

// A frame that was open where a fork began, and failed there before a superstep of it has ended, is
// read as well: the log of the fork does not say that it was entered.
func TestStateOfAFrameThatFailedInAFork(t *testing.T) {
	inner := func(name string, asks bool) *dag.Graph[Dive] {
		b := dag.New[Dive](name)
		first := dag.Step(b, "first", func(ctx context.Context, s *Dive) error {
			if !asks {
				s.Paths.Append("first")
				return nil
			}
			if _, err := dag.Ask[bool](ctx, "sure", nil); err != nil {
				return err
			}
			return errWeather
		})
		dag.Step(b, "second", func(_ context.Context, s *Dive) error { s.Paths.Append("second"); return nil }, first)
		return frozen(t, b)
	}
	b := dag.New[Tale]("fails")
	dag.Embed(b, "good", inner("good", false), func(*Tale, *Dive) {}, func(*Dive, *Tale) {})
	bad := dag.Embed(b, "bad", inner("bad", true), func(*Tale, *Dive) {}, func(*Dive, *Tale) {})
	each := dag.EachGraph(b, "each", func(*Tale) []string { return []string{"one"} }, inner("item", true),
		func(*Tale, string, *Dive) {}, func(*Dive, string, *Tale) {})
	dag.Step(b, "bad-failed", func(_ context.Context, s *Tale) error { s.Tags.Add("bad"); return nil }, bad.Failed())
	dag.Step(b, "each-failed", func(_ context.Context, s *Tale) error { s.Tags.Add("each"); return nil }, each.Failed())
	var store memory.Store
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	forks, err := d.Fork(t.Context(), run, "good@1", dispatcher.ForkOptions[Tale]{N: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, fork := range forks {
		res, err := d.Resume(t.Context(), fork)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		var answers []dispatcher.RunOption
		for _, i := range res.Interrupts {
			answers = append(answers, dispatcher.Answering(i.ID, true))
		}
		if res, err = d.Resume(t.Context(), fork, answers...); err != nil || res.State.Tags.Len() != 2 {
			t.Fatalf("%d failures were followed, %v", res.State.Tags.Len(), err)
		}
		for _, frame := range []string{"bad", "each/1"} {
			res, err := dispatcher.StateOf[Dive](t.Context(), d, fork, frame)
			if err != nil || res.Frame != frame || len(res.Failures) != 1 || res.Failures[0].Path != frame+"/first" {
				t.Errorf("%s is read as %q with failures %+v, %v", frame, res.Frame, res.Failures, err)
			}
		}
		if res, err := dispatcher.StateOf[Tale](t.Context(), d, fork, "each"); err != nil || res.Frame != "each" || len(res.Failures) != 1 {
			t.Errorf("each is read as %q with failures %+v, %v", res.Frame, res.Failures, err)
		}
		if res, err := dispatcher.StateOf[Dive](t.Context(), d, fork, "good"); err != nil || res.Superstep != 2 {
			t.Errorf("good is read at superstep %d, %v", res.Superstep, err)
		}
	}
	if _, err := dispatcher.StateOf[Dive](t.Context(), d, forks[0], "none"); !errors.Is(err, checkpoint.ErrCursor) {
		t.Errorf("a frame that the graph has not: %v", err)
	}
}
