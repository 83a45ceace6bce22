package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Purse is a state that must not hold more than its rule allows.
type Purse struct {
	Coins state.Sum[int]
	Said  state.List[string]
}

// errPurse is what a purse refuses with; atMost is the rule of the program, which changes
// from one to the next.
var (
	errPurse = errors.New("too many coins")
	atMost   = 100
)

func (p *Purse) Check() error {
	if p.Coins.Get() > atMost {
		return errPurse
	}
	return nil
}

// purse returns first → (one, two) → last, each of which puts coins into the purse.
func purse(t testing.TB, w *witness, coins int) *dag.Graph[Purse] {
	put := func(ctx context.Context, s *Purse) error {
		w.note(ctx)
		s.Coins.Add(coins)
		s.Said.Append(visitPath(ctx))
		return nil
	}
	b := dag.New[Purse]("purse")
	first := dag.Step(b, "first", put)
	one, two := dag.Step(b, "one", put, first), dag.Step(b, "two", put, first)
	dag.Step(b, "last", put, one, two)
	return frozen(t, b)
}

// A state that its own Check refuses is not committed: the whole superstep is taken back.
func TestCheckBeforeACommit(t *testing.T) {
	quiet(t)
	defer func(was int) { atMost = was }(atMost)
	var w witness
	var store memory.Store
	atMost = 25
	res, err := process(t, purse(t, &w, 10), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "one", "two")
	var fault *dispatcher.FaultError
	if !errors.As(err, &fault) || fault.Kind != "check" || !errors.Is(err, errPurse) {
		t.Errorf("the error is %v, want a check that failed with %v", err, errPurse)
	}
	if n := res.State.Coins.Get(); n != 10 {
		t.Errorf("the purse holds %d, want the 10 of before", n)
	}
	w.expect(t, "first", "one", "two")
	atMost = 100
	res, err = process(t, purse(t, &w, 5), &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "one", "two", "last")
	if n := res.State.Coins.Get(); n != 25 {
		t.Errorf("the purse holds %d, want 25", n)
	}
}

// A run whose state the program no longer allows doesn't go on.
func TestCheckOnResume(t *testing.T) {
	quiet(t)
	defer func(was int) { atMost = was }(atMost)
	var w witness
	var store memory.Store
	g := purse(t, &w, 10)
	o := dispatcher.Options{InterruptAfter: []string{"first"}}
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "one", "two")
	w.took()
	atMost = 5
	if _, err := process(t, g, &store, o).Resume(t.Context(), run); !errors.Is(err, errPurse) {
		t.Errorf("the resume returned %v, want %v", err, errPurse)
	}
	w.expect(t)
	atMost = 100
	res, err = process(t, g, &store, o).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "one", "two", "last")
}
