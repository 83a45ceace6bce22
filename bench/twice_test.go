//go:build rivals

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/pawltest"
)

// A script is a worker whose lives are written down. The last one is done.
type script []lived

func (s *script) live(int) (lived, error) {
	l := (*s)[0]
	*s = (*s)[1:]
	l.done = len(*s) == 0
	return l, nil
}

// none is of a life that nobody cares of how long it is.
func none() int { return 0 }

func visits(from, to int) (vs []int) {
	for v := from; v < to; v++ {
		vs = append(vs, v)
	}
	return vs
}

// Every visit that begins is counted, and those of a life that had begun in an earlier one.
func TestTally(t *testing.T) {
	w := script{{began: visits(0, 12)}, {began: visits(8, 20)}, {began: visits(19, visitsNeeded)}}
	var got tally
	if err := got.survive(&w, none); err != nil {
		t.Fatal(err)
	}
	if want := (tally{works: 1, died: 2, executed: visitsNeeded + 4 + 1, again: 4}); got != want {
		t.Errorf("survive counts %+v, want %+v", got, want)
	}
}

// What begins again must have been in flight at the kill before it: a visit that was durable then,
// or that began twice in the same life, is counted as forgotten.
func TestTallyOfWhatWasInFlight(t *testing.T) {
	for _, test := range []struct {
		name string
		w    script
		want tally
	}{
		{
			"what was in flight",
			script{{began: visits(0, 16), durable: visits(0, 11)}, {began: visits(11, 24), durable: visits(0, 16)}, {began: visits(16, visitsNeeded)}},
			tally{died: 2, executed: visitsNeeded + 5 + 8, again: 8, amid: 1},
		},
		{
			"two that were durable, one of which lay behind one in flight",
			script{{began: visits(0, 16), durable: append(visits(0, 10), 15)}, {began: visits(9, visitsNeeded)}},
			tally{died: 1, executed: visitsNeeded + 7, again: 7, amid: 1, forgot: 2},
		},
		{
			"one twice in a life",
			script{{began: visits(0, 16), durable: visits(0, 8)}, {began: append(visits(8, visitsNeeded), 9)}},
			tally{died: 1, executed: visitsNeeded + 8 + 1, again: 9, forgot: 1},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got tally
			if err := got.survive(&test.w, none); err != nil {
				t.Fatal(err)
			}
			if test.want.works = 1; got != test.want {
				t.Errorf("survive counts %+v, want %+v", got, test.want)
			}
		})
	}
}

// A pawl that forgets the durable visits of an open stage executes no more again than are side by
// side, but more than were in flight.
func TestAfterOneKill(t *testing.T) {
	for _, test := range []struct {
		name  string
		begin func() worker
		ok    bool
	}{
		{"pawl", func() worker { return newPawlWork() }, true},
		{"forgets the open stage", func() worker { return forgetful{newPawlWork()} }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := payer{kills: 5, begin: test.begin}
				if err := p.pay(session{charts: new(charts)}); err != nil {
					t.Fatal(err)
				}
				if r := p.afterOneKill(); r.OK != test.ok || r.Value == 0 || r.Value > sideBySide || p.amid == 0 {
					t.Errorf("%+v, want one that is ok: %v; %+v", r, test.ok, p.tally)
				}
			})
		})
	}
}

// A forgetful is a pawl that keeps of a stage nothing but that it has ended.
type forgetful struct{ *pawlWork }

func (w forgetful) live(end int) (lived, error) {
	l, err := w.pawlWork.live(end)
	if err != nil || l.done {
		return l, err
	}
	ctx := context.Background()
	var log []checkpoint.Entry
	kept := 0 // up to where a stage has ended, or the first began
	for e, err := range w.store.Read(ctx, "work", 0, 0) {
		if err != nil {
			return l, err
		}
		if e.Kind == checkpoint.Superstep || kept == len(log) && e.Kind != checkpoint.Done {
			kept = len(log) + 1
		}
		e.Delta, e.Outer, e.Data = slices.Clone(e.Delta), slices.Clone(e.Outer), slices.Clone(e.Data)
		log = append(log, e)
	}
	store := new(memory.Store)
	lease, err := store.Acquire(ctx, "work", "forgetful")
	if err != nil {
		return l, err
	}
	if _, err := store.Append(ctx, lease, checkpoint.Head{}, log[:kept]); err != nil {
		return l, err
	}
	w.store.Store = store
	return l, store.Release(ctx, lease)
}

func newPawlWork() *pawlWork { return &pawlWork{pawltest.Mortal{Store: new(memory.Store)}} }

// To execute nothing again is the best, after a kill.
func TestNothingAgain(t *testing.T) {
	r := atMost("twice/again", series{0}, "visits", sideBySide, "again")
	if got := r.after(3); !got.OK || got.Note != r.Note {
		t.Errorf("after 3 kills %+v, want one that is ok", got)
	}
	if got := r.after(0); got.OK || got.Note != "no kill counted; at most; again" {
		t.Errorf("after no kill %+v, want one that is not", got)
	}
}

// Who leaves out work doesn't pay less.
func TestTallyWantsAllOfTheWork(t *testing.T) {
	w := script{{began: visits(0, 12)}, {began: visits(13, visitsNeeded)}}
	err := new(tally).survive(&w, none)
	if err == nil || !strings.Contains(err.Error(), "without visit 12") {
		t.Errorf("survive = %v, want an error that names visit 12", err)
	}
}

// Everyone whose work is killed in its second stage goes on with that stage or behind it, with what
// was stored of the first: no more is executed again than was in flight.
func TestWorkersGoOn(t *testing.T) {
	for name, w := range workers(t) {
		t.Run(name, func(t *testing.T) {
			const end = sideBySide + 4
			first, err := w.live(end)
			if n := len(first.began); err != nil || first.done || n < end || n > 2*sideBySide {
				t.Fatalf("the first life began %d visits, done: %v, %v; want %d to %d, and no end", n, first.done, err, end, 2*sideBySide)
			}
			second, err := w.live(2 * visitsNeeded)
			if err != nil || !second.done {
				t.Fatalf("the second life: done: %v, %v", second.done, err)
			}
			if v := slices.Min(second.began); v < sideBySide {
				t.Errorf("visit %d of the first stage began again", v)
			}
			if n, least := len(second.began), visitsNeeded-end; n < least || n > least+4 {
				t.Errorf("the second life began %d visits, want %d to %d", n, least, least+4)
			}
		})
	}
}

// A life ends with its end-th visit and those behind it in flight. What began before is durable,
// and all that the next life begins is the rest.
func TestLifeEndsAmidAStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const end = sideBySide + 4
		w := newPawlWork()
		first, err := w.live(end)
		if err != nil || first.done || len(first.began) != 2*sideBySide {
			t.Fatalf("the first life: %+v, %v; want both stages begun, and no end", first, err)
		}
		if !sameVisits(first.durable, first.began[:end-1]) {
			t.Errorf("durable are %v, want %v", first.durable, first.began[:end-1])
		}
		second, err := w.live(2 * visitsNeeded)
		if err != nil || !second.done {
			t.Fatalf("the second life: %+v, %v", second, err)
		}
		if want := append(first.began[end-1:], visits(2*sideBySide, visitsNeeded)...); !sameVisits(second.began, want) {
			t.Errorf("the second life began %v, want %v", second.began, want)
		}
	})
}

// sameVisits compares without regard to the order.
func sameVisits(a, b []int) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Without node there is a row that says so, and no line.
func TestTwiceWithoutLangGraph(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := session{dir: t.TempDir(), charts: new(charts)}
	rows, err := paidByLangGraph(s)
	if want := []row{absent("twice/langgraph", "node is not there")}; err != nil || !slices.Equal(rows, want) {
		t.Errorf("paidByLangGraph = %+v, %v; want %+v", rows, err, want)
	}
	if lines := s.charts.twice.lines; len(lines) != 0 {
		t.Errorf("lines %v, want none", lines)
	}
}

// workers are all that are there.
func workers(t *testing.T) map[string]worker {
	all := map[string]worker{"pawl": newPawlWork()}
	for _, mode := range einoModes {
		all[mode.name] = einoWork{mode, einoMap{}}
	}
	js, err := startLangGraph(t.TempDir())
	if err != nil {
		t.Logf("without LangGraph.js: %v", err)
		return all
	}
	t.Cleanup(func() {
		if err := js.close(); err != nil {
			t.Error(err)
		}
	})
	all["langgraph"] = langGraphWork{js, 1}
	return all
}
