package dispatcher_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A what-if fork does nothing outside before the first consequence of its edit: up to there, and
// wherever the input of an effect is not touched by it, what the origin did is taken.
func TestForkEditIsFirstMetWhereItMatters(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		bank := &forkBank{}
		b := dag.New[Tale]("agent")
		plan := dag.Step(b, "plan", forkAsks(bank, "plan", func(*Tale) string { return "" }))
		search := dag.Step(b, "search", forkAsks(bank, "search", func(s *Tale) string {
			tool, _ := s.Notes.Get("tool")
			return tool
		}), plan)
		dag.Step(b, "answer", forkAsks(bank, "answer", func(s *Tale) string { return strings.Join(s.Said.Slice(), "|") }), search)
		d := callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("w"); s.Notes.Put("tool", "books") })
		completes(t, res, err)
		for _, c := range []struct {
			edit  func(*Tale)
			asked []string
		}{
			{func(s *Tale) { s.Word.Set("of no consequence") }, nil},
			{func(s *Tale) { s.Notes.Put("tool", "maps") }, []string{"search maps", "answer plan |word of plan |search maps|word of search maps"}},
		} {
			bank.asked = nil
			before := kept(t, store, run)
			ids, err := d.Fork(t.Context(), run, "0", dispatcher.ForkOptions[Tale]{
				N: 2, Edit: c.edit, Effects: dispatcher.ReuseOrLive, Reason: "what if",
			}, dispatcher.Author("ann"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := d.Run(t.Context(), ids[1], nil)
			completes(t, res, err)
			if !slices.Equal(bank.asked, c.asked) {
				t.Errorf("outside was asked %q, want %q", bank.asked, c.asked)
			}
			if !slices.Equal(before, kept(t, store, run)) {
				t.Error("the fork changed the run")
			}
			for e, err := range store.Read(t.Context(), ids[0], 2, 0) {
				if err != nil || e.Kind != checkpoint.Edited || !strings.Contains(string(e.Data), `"author":"ann","reason":"what if"`) {
					t.Errorf("the fork's log goes on with %s %s, %v", e.Kind, e.Data, err)
				}
			}
			then, err := d.State(t.Context(), ids[0])
			if err != nil || then.Status != checkpoint.StatusPending {
				t.Errorf("the other fork is %s, %v", then.Status, err)
			}
		}
	})
}

func forkAsks(bank *forkBank, verb string, about func(*Tale) string) part {
	return func(ctx context.Context, s *Tale) error {
		prompt := verb + " " + about(s)
		word, err := dag.Effect(ctx, "model", prompt, bank.word, dag.Replayable)
		s.Said.Append(prompt, word)
		return err
	}
}

// An edit that can't be makes no fork.
func TestForkEditRefused(t *testing.T) {
	t.Parallel()
	var store memory.Store
	bank := &forkBank{}
	d := process(t, forkChain(t, bank, "a", "b"), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	var fault *dispatcher.FaultError
	unchanged(t, &store, run, func() {
		ids, err := d.Fork(t.Context(), run, "1", dispatcher.ForkOptions[Tale]{
			Into: []string{"x"}, Edit: func(*Tale) { panic("no") },
		})
		if !errors.As(err, &fault) || fault.Kind != "edit" || ids != nil {
			t.Errorf("the fork is %q, %v", ids, err)
		}
	})
	if _, err := store.Stat(t.Context(), "x"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("the fork is there: %v", err)
	}
}

// A checkpoint that was abandoned is marked, and found by its address alone; the last one is the
// last that was not.
func TestAbandonedCheckpointsAreMarked(t *testing.T) {
	t.Parallel()
	var store memory.Store
	var w witness
	d := process(t, rewindLine(t, &w, "a", "b", "c"), &store, dispatcher.Options{InterruptBefore: []string{"c"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
	if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	var marks []bool
	var last dispatcher.Checkpoint
	for p, err := range d.History(t.Context(), run) {
		if err != nil {
			t.Fatal(err)
		}
		marks, last = append(marks, p.Abandoned), p
	}
	if !slices.Equal(marks, []bool{false, true}) {
		t.Errorf("abandoned are %v", marks)
	}
	if _, err := d.At(t.Context(), run, "2"); !errors.Is(err, checkpoint.ErrCursor) {
		t.Errorf("superstep 2, which was abandoned, is %v", err)
	}
	if then, err := d.At(t.Context(), run, last.Address()); err != nil || then.Superstep != 2 {
		t.Errorf("%s is of superstep %d, %v", last.Address(), then.Superstep, err)
	}
	forkOne(t, d, "", "fork", dispatcher.Live)
	if then, err := d.State(t.Context(), "fork"); err != nil || then.Superstep != 1 {
		t.Errorf("a fork of now is of superstep %d, %v", then.Superstep, err)
	}
	if err := d.Rewind(t.Context(), run, last.Address(), dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err) // what was abandoned can be gone back to
	}
	for p, err := range d.History(t.Context(), run) {
		if err != nil || p.Abandoned {
			t.Errorf("%s is abandoned, %v", p.Address(), err)
		}
	}
	if then, err := d.At(t.Context(), run, "2"); err != nil || then.Superstep != 2 {
		t.Errorf("superstep 2 is %d, %v", then.Superstep, err)
	}
	if then, err := d.State(t.Context(), run); err != nil || then.Superstep != 2 {
		t.Errorf("the run is of superstep %d, %v", then.Superstep, err)
	}
}

// Forks have the labels of the run, but for those that are its own, or those that they are given;
// bad ones make no fork.
func TestForkLabels(t *testing.T) {
	t.Parallel()
	var store memory.Store
	var w witness
	d := process(t, asking(t, &w, closedChan()), &store, dispatcher.Options{})
	labels := map[string]string{"team": "red", "pawl.own.debt": "much"}
	if _, err := d.Run(t.Context(), run, nil, dispatcher.Labels(labels)); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	for _, c := range []struct{ given, want map[string]string }{
		{nil, map[string]string{"team": "red"}},
		{map[string]string{}, nil},
		{map[string]string{"try": "1", "pawl.own.debt": "little"}, map[string]string{"try": "1", "pawl.own.debt": "little"}},
	} {
		ids, err := d.Fork(t.Context(), run, "", dispatcher.ForkOptions[Tale]{Labels: c.given})
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.State(t.Context(), ids[0])
		info, ierr := store.Stat(t.Context(), ids[0])
		if err != nil || ierr != nil || !maps.Equal(info.Labels, c.want) || !maps.Equal(res.Labels, c.want) {
			t.Errorf("a fork with %v has %v and %v, want %v; %v, %v", c.given, info.Labels, res.Labels, c.want, err, ierr)
		}
	}
	var option *dispatcher.OptionError
	bad := dispatcher.ForkOptions[Tale]{Into: []string{"bad"}, Labels: map[string]string{"": "empty"}}
	if _, err := d.Fork(t.Context(), run, "", bad); !errors.As(err, &option) {
		t.Errorf("a bad label: %v", err)
	}
	if _, err := store.Stat(t.Context(), "bad"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("a fork with a bad label: %v", err)
	}
}
