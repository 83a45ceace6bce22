package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// trimShop is a graph whose second node pays, unless what it buys is free.
func trimShop(t *testing.T, m *till) *dag.Graph[Tale] {
	b := dag.New[Tale]("shop")
	pays := dag.Step(b, "pays", func(ctx context.Context, s *Tale) error {
		if s.Word.Get() == "free" {
			return nil
		}
		return m.buys(ctx, s)
	}, dag.Step(b, "enters", nothing[Tale]))
	dag.Step(b, "leaves", nothing[Tale], pays)
	return frozen(t, b)
}

// refusedAsTrimmed holds that an effect was refused, since what it returned may have been trimmed.
func refusedAsTrimmed(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, dag.ErrEffectRefused) {
		t.Errorf("the fork returns %v, want that its effect is refused", err)
	}
	advises(t, err, "has no result left for this input, and may have had one, which was trimmed: fork Live to do the effect in any case")
}

// What a run has paid for is not paid for again by a fork that is to take over what it paid, though
// what tells of it was trimmed: it is refused, in a fork of the fork too, wherever that is, unless
// the fork is to pay in any case. A fork from before the trim has what it needs.
func TestForkBehindATrimPaysNothingAgain(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var m till
		d := callsDispatcher(t, trimShop(t, &m), store, o)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if err := d.Tag(t.Context(), run, "1", "entered"); err != nil {
			t.Fatal(err)
		}
		forkOne(t, d, "tag:entered", "before", dispatcher.ReuseOrLive)
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
			t.Fatal(err)
		}
		for i, how := range []dispatcher.EffectsOfFork{dispatcher.ReuseOrRefuse, dispatcher.ReuseOrLive} {
			id := fmt.Sprint("fork ", i)
			forkOne(t, d, "tag:entered", id, how)
			if _, err := d.Fork(t.Context(), id, "", dispatcher.ForkOptions[Tale]{Into: []string{id + " of it"}, Effects: dispatcher.ReuseOrLive}); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{id, id + " of it"} {
				_, err := callsDispatcher(t, trimShop(t, &m), store, o).Run(t.Context(), id, nil)
				refusedAsTrimmed(t, err)
				sameMachine(t, d, id)
			}
		}
		res, err = d.Run(t.Context(), "before", nil)
		completes(t, res, err)
		if got := notes(res.State)["pays"]; got != "1" || len(m.keys) != 1 {
			t.Errorf("the fork from before the trim has payment %s, and paid are %q", got, m.keys)
		}
		forkOne(t, d, "tag:entered", "live", dispatcher.Live)
		res, err = d.Run(t.Context(), "live", nil)
		completes(t, res, err)
		if got := notes(res.State)["pays"]; got != "2" || len(m.keys) != 2 {
			t.Errorf("the live fork has payment %s, and paid are %q", got, m.keys)
		}
	})
}

// In turns of which nothing was trimmed a fork does what is new, though something was of turns
// before: also where the run has gone back from a later one. What an earlier build has trimmed does
// not tell how far that was.
func TestForkBehindATrimPaysInLaterTurns(t *testing.T) {
	t.Parallel()
	free := func(s *Tale) { s.Word.Set("free") }
	for name, c := range map[string]struct {
		turns   int  // of the run
		rewound bool // to the first one
		again   bool // trimmed, in one turn more
		old     bool // by an earlier build
		refused int  // the last turn in which the fork may not pay
	}{
		"one turn":             {turns: 1, refused: 1},
		"one turn, again":      {turns: 1, again: true, refused: 2},
		"three turns":          {turns: 3, refused: 3},
		"gone back":            {turns: 3, rewound: true, refused: 3},
		"gone back, again":     {turns: 3, rewound: true, again: true, refused: 3},
		"of an earlier build":  {turns: 2, old: true, refused: 2},
		"gone back under that": {turns: 2, rewound: true, old: true, refused: 9}, // in all turns
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m till
			var store checkpoint.Store = new(memory.Store)
			if c.old {
				store = oldTrimmer{new(memory.Store)}
			}
			d := callsDispatcher(t, trimShop(t, &m), store, dispatcher.Options{})
			does := func(res *dispatcher.Result[Tale], err error) {
				t.Helper()
				completes(t, res, err)
			}
			trims := func() {
				t.Helper()
				if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
					t.Fatal(err)
				}
			}
			does(d.Run(t.Context(), run, nil))
			if err := d.Tag(t.Context(), run, "1", "entered"); err != nil {
				t.Fatal(err)
			}
			for range c.turns - 1 {
				does(d.Turn(t.Context(), run, nil))
			}
			if c.rewound {
				if err := d.Rewind(t.Context(), run, "tag:entered", dispatcher.RewindOptions{}); err != nil {
					t.Fatal(err)
				}
				does(d.Run(t.Context(), run, nil))
			}
			if trims(); c.again {
				does(d.Turn(t.Context(), run, nil))
				trims()
			}
			for _, first := range []int{c.refused, c.refused + 1} { // turn in which the fork is to pay
				paid, o := len(m.keys), dispatcher.ForkOptions[Tale]{Effects: dispatcher.ReuseOrLive}
				if first > 1 {
					o.Edit = free
				}
				ids, err := d.Fork(t.Context(), run, "tag:entered", o)
				if err != nil {
					t.Fatal(err)
				}
				res, err := d.Run(t.Context(), ids[0], nil)
				for turn := 2; turn < first; turn++ {
					does(res, err)
					res, err = d.Turn(t.Context(), ids[0], free)
				}
				if first > 1 {
					does(res, err)
					res, err = d.Turn(t.Context(), ids[0], func(s *Tale) { s.Word.Set("dear") })
				}
				if refused := first == c.refused || c.refused == 9; refused {
					refusedAsTrimmed(t, err)
				} else {
					paid++
					does(res, err)
				}
				if len(m.keys) != paid {
					t.Errorf("in turn %d of the fork %d payments were made, want %d", first, len(m.keys), paid)
				}
			}
		})
	}
}
