package dispatcher_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// besideAnew has f look at a run of eight nodes that is deleted before the n-th call of the store,
// and begun anew, a while later, with other input and so many nodes. It does so for every n.
func besideAnew(t *testing.T, later time.Duration, nodes int, f func(t *testing.T, d *dispatcher.Dispatcher[Tale], n int)) {
	synctest.Test(t, func(t *testing.T) {
		graph := func(n int) *dag.Graph[Tale] { return eventsLine(slices.Repeat([]part{nothing[Tale]}, n)...)(t) }
		named := func(d *dispatcher.Dispatcher[Tale], word string) {
			res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set(word) })
			completes(t, res, err)
		}
		old := &memory.Faulty{}
		named(process(t, graph(8), old, dispatcher.Options{}), "old")
		for n, anew := 1, true; anew; n++ {
			anew = false
			s := old.Crash(0)
			happensAt(s, n, func(s *memory.Store) {
				anew = true
				if err := s.Delete(t.Context(), run); err != nil {
					t.Fatal(err)
				}
				lasts(later) // of the clock by which runs are created
				named(process(t, graph(nodes), s, dispatcher.Options{}), "new")
			})
			f(t, process(t, graph(8), s, dispatcher.Options{}), n)
		}
	})
}

// Events of a run that is deleted, and begun anew, while its log is read end with ErrNotFound: the
// other one's entries are not waited for, and not told.
func TestEventsOfARunThatIsBegunAnew(t *testing.T) {
	for _, nodes := range []int{2, 8, 9} {
		for _, later := range []time.Duration{0, time.Millisecond} {
			for _, l := range []dispatcher.Listen{{}, {Since: 3}, {Since: 3, States: true}} {
				if later == 0 && nodes > 2 {
					continue // nobody can tell them apart
				}
				besideAnew(t, later, nodes, func(t *testing.T, d *dispatcher.Dispatcher[Tale], n int) {
					began := time.Now()
					var err error
					for e, failed := range d.Events(t.Context(), run, l) {
						if err = failed; err == nil && n > 2 && e.At.After(began) { // two calls find the run that is read
							t.Errorf("%+v of %d nodes, anew before call %d of the store: %s is of another run", l, nodes, n, e)
						}
					}
					if err != nil && !errors.Is(err, dispatcher.ErrNotFound) {
						t.Errorf("%+v of %d nodes, anew before call %d of the store: %v", l, nodes, n, err)
					}
				})
			}
		}
	}
}

// State, and Open, of a run that is deleted and begun anew meanwhile tell of one of the two, and
// not of the state of one beside the head of the other.
func TestStateOfARunThatIsBegunAnew(t *testing.T) {
	for _, nodes := range []int{2, 9} {
		heads := map[string]uint64{}
		besideAnew(t, time.Millisecond, nodes, func(t *testing.T, d *dispatcher.Dispatcher[Tale], n int) {
			res, err := d.State(t.Context(), run)
			if err != nil {
				var changed *dispatcher.GraphChangedError
				if !errors.As(err, &changed) {
					t.Fatalf("anew before call %d of the store: %v", n, err)
				}
			}
			word := res.State.Word.Get()
			if heads[word] == 0 {
				heads[word] = res.Cursor.Seq
			}
			if heads[word] != res.Cursor.Seq {
				t.Errorf("anew before call %d of the store the %s one is at %d, and was at %d", n, word, res.Cursor.Seq, heads[word])
			}
		})
		if len(heads) != 2 || heads["old"] == heads["new"] {
			t.Errorf("the heads are %v", heads)
		}
	}
}

// A run that is deleted while a checkpoint of it is given a name is not found, also if it is begun
// anew: no call of the store may come between and leave a bare conflict, or a cursor that is none.
func TestTagOfARunThatIsDeletedMeanwhile(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		g := eventsLine(slices.Repeat([]part{nothing[Tale]}, 8)...)(t)
		again := eventsLine(slices.Repeat([]part{nothing[Tale]}, 2)...)(t)
		old := &memory.Faulty{}
		res, err := process(t, g, old, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		for _, address := range []string{"", "0", "2", run + "@1"} {
			for _, anew := range []bool{false, true} {
				for n, called := 1, true; called; n++ {
					called = false
					deleted, s := false, old.Crash(0)
					happensAt(s, n, func(s *memory.Store) {
						called = true
						if s.Delete(t.Context(), run) != nil { // somebody has it
							return
						}
						if deleted = true; !anew {
							return
						}
						lasts(time.Millisecond) // of the clock by which runs are created
						res, err := process(t, again, s, dispatcher.Options{}).Run(t.Context(), run, nil)
						completes(t, res, err)
					})
					err := process(t, g, s, dispatcher.Options{}).Tag(t.Context(), run, address, "it")
					if deleted && n > 1 && !errors.Is(err, dispatcher.ErrNotFound) || !deleted && err != nil {
						t.Errorf("%q, deleted (%t) before call %d of the store, begun anew (%t): %v", address, deleted, n, anew, err)
					}
				}
			}
		}
	})
}

// Where nobody can tell the run that is begun anew from the one before, the conflict says what to
// do.
func TestTagOfARunThatIsBegunAnewAtOnce(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		g := eventsLine(nothing[Tale])(t)
		conflicts := 0
		for n, called := 1, true; called; n++ {
			called = false
			s := &memory.Faulty{}
			res, err := process(t, g, s, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
			happensAt(s, n, func(s *memory.Store) {
				if called = true; s.Delete(t.Context(), run) == nil {
					res, err := process(t, g, s, dispatcher.Options{}).Run(t.Context(), run, nil)
					completes(t, res, err)
				}
			})
			if err := process(t, g, s, dispatcher.Options{}).Tag(t.Context(), run, "", "it"); errors.Is(err, checkpoint.ErrConflict) {
				if conflicts++; !strings.HasSuffix(err.Error(), ": call Tag again") {
					t.Errorf("begun anew before call %d of the store: %v", n, err)
				}
			}
		}
		if conflicts == 0 {
			t.Error("no call has met the run that was begun anew")
		}
	})
}
