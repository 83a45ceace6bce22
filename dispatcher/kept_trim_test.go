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

// keptTalk says something in each turn, and asks in every third one what.
func keptTalk(t testing.TB) *dag.Graph[Tale] {
	return chainOf(t, 3, func(ctx context.Context, i int, s *Tale) error {
		said := fmt.Sprint("turn ", s.Count.Get(), " node ", i)
		if i == 1 && s.Count.Get()%3 == 2 {
			answer, err := dag.Ask[string](ctx, "what", "what?")
			if err != nil {
				return err
			}
			said = answer
		}
		s.Said.Append(said)
		return nil
	})
}

// keptCalls is a conversation of some turns, of which each call is made on the dispatcher that next
// returns. It returns what each has returned, as text.
func keptCalls(t *testing.T, turns int, next func() *dispatcher.Dispatcher[Tale]) (told []string) {
	t.Helper()
	tell := func(res *dispatcher.Result[Tale], err error) *dispatcher.Result[Tale] {
		t.Helper()
		if err != nil && !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		told = append(told, fmt.Sprintln(res.Status, asJSON(t, res.State), res.Superstep, res.Turn, res.Cursor, len(res.Interrupts), res.Warnings))
		return res
	}
	say := func(s *Tale) { s.Count.Add(1) }
	tell(next().Run(t.Context(), run, say))
	for i := range turns {
		id := fmt.Sprint("m", i)
		for range 2 { // the second one is repeated
			if err := next().Note(t.Context(), run, "note", i, dispatcher.Author("me"), dispatcher.Message(id)); err != nil {
				t.Fatal(err)
			}
		}
		if i%4 == 3 {
			if err := next().Tag(t.Context(), run, "", id); err != nil {
				t.Fatal(err)
			}
		}
		res := tell(next().Turn(t.Context(), run, say))
		if res.Status == checkpoint.StatusInterrupted {
			tell(next().State(t.Context(), run))
			for range 2 {
				if err := next().Answer(t.Context(), run, "", id, dispatcher.Message(id)); err != nil {
					t.Fatal(err)
				}
			}
			tell(next().Run(t.Context(), run, nil))
		}
		tell(next().State(t.Context(), run))
	}
	return told
}

// A run that is trimmed whenever it has come to rest is the same for a dispatcher that keeps its
// machine, and for those that read its log.
func TestKeptMachinesOfTrimmedRuns(t *testing.T) {
	t.Parallel()
	for _, keep := range []dispatcher.Retention{{Last: 1}, {Last: 5}, {Last: 2, Tagged: true}} {
		eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
			o.Retention = keep
			g := keptTalk(t)
			d := callsDispatcher(t, g, store, o)
			got := keptCalls(t, 12, func() *dispatcher.Dispatcher[Tale] {
				read, err := callsDispatcher(t, g, store, o).State(t.Context(), run)
				if err == nil {
					is, err := d.State(t.Context(), run)
					if err != nil || asJSON(t, is) != asJSON(t, read) {
						t.Errorf("the run is %s, %v\nand its log says %s", asJSON(t, is), err, asJSON(t, read))
					}
				}
				return d
			})
			var other memory.Store
			want := keptCalls(t, 12, func() *dispatcher.Dispatcher[Tale] { return callsDispatcher(t, g, &other, o) })
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("call %d returned %swant %s", i, got[i], want[i])
				}
			}
			trimVerified(t, store, run)
			if info, err := store.Stat(t.Context(), run); err != nil || info.First < 20 {
				t.Errorf("the log begins at %d, %v", info.First, err)
			}
		})
	}
}

// A dispatcher that trims a run whose machine it keeps goes on with it without reading the log,
// unless the trim has failed.
func TestKeptMachinesStandBehindTheTrim(t *testing.T) {
	t.Parallel()
	disk := errors.New("disk")
	for _, retains := range []bool{true, false} {
		reads, begun, fail := 0, false, false
		var inner memory.Store
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			switch {
			case c.method == "Append":
				begun = true
			case !begun && (c.method == "Read" || c.method == "Snapshot"):
				reads++
			}
			return nil
		}, after: func(c call, err error) error {
			if fail && c.method == "Trim" { // whether it has worked is not known
				return errors.Join(err, disk)
			}
			return err
		}}
		o := dispatcher.Options{}
		if retains {
			o.Retention.Last = 1
		}
		d := callsDispatcher(t, chainOf(t, 1, func(context.Context, int, *Tale) error { return nil }), checkpoint.Store(store), o)
		turn := func(n int) {
			t.Helper()
			reads, begun = 0, false
			res, err := d.Turn(t.Context(), run, func(s *Tale) { s.Count.Add(1) })
			if completes(t, res, err); res.State.Count.Get() != n {
				t.Errorf("turn %d: counted %d", n, res.State.Count.Get())
			}
			if !retains {
				if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); !errors.Is(err, disk) && err != nil {
					t.Fatal(err)
				}
			}
		}
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		for n := range 10 {
			fail = n == 5
			turn(n + 1)
			if unknown := n == 0 || n == 6; unknown != (reads > 0) {
				t.Errorf("turn %d: the log was read %d times before it began", n+1, reads)
			}
		}
	}
}
