package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A readingStore reads what it was given once more when an append of the run "hangs" is let go.
type readingStore struct {
	checkpoint.Store
	t    *testing.T
	free chan struct{}
}

func (s *readingStore) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	if l.Run == "hangs" && after.Seq > 0 {
		was := said(s.t, entries)
		<-s.free
		if is := said(s.t, entries); is != was {
			s.t.Errorf("an append was given %s, which has become %s", was, is)
		}
	}
	return s.Store.Append(ctx, l, after, entries)
}

func said(t *testing.T, entries []checkpoint.Entry) string {
	text, err := json.Marshal(entries)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// What a call has given to a store that does not return stays as it is, whatever other calls do meanwhile.
func TestAppendThatHangsKeepsWhatItWasGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &readingStore{Store: new(memory.Store), t: t, free: make(chan struct{})}
		b := dag.New[Tale]("given")
		last := dag.Step(b, "a", noted("a"))
		for _, name := range []string{"b", "c", "d"} {
			last = dag.Step(b, name, noted(name), last)
		}
		d := callsDispatcher(t, frozen(t, b), store, dispatcher.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.Run(ctx, "hangs", nil); !errors.Is(err, dispatcher.ErrStuck) {
			t.Errorf("over a store that hangs the run returned %v", err)
		}
		for i := range 8 {
			run := fmt.Sprintf("beside-%d", i)
			res, err := d.Run(t.Context(), run, func(s *Tale) { s.Said.Append(run) })
			completes(t, res, err)
			says(t, res.State, run, "a", "b", "c", "d")
		}
		close(store.free)
		synctest.Wait()
	})
}

func noted(name string) func(context.Context, *Tale) error {
	return func(_ context.Context, s *Tale) error {
		s.Said.Append(name)
		return nil
	}
}

// What a call has on its desk is gone for the next one, also if there was more than a desk has room for: the log of a
// run is the same whichever runs there were before it.
func TestLogIsTheSameBehindOtherRuns(t *testing.T) {
	t.Parallel()
	pair := func(b *dag.Builder[Tale]) *dag.Graph[Tale] {
		first := dag.Step(b, "first", noted("first"))
		dag.Step(b, "last", noted("last"), dag.Step(b, "left", counted, first), dag.Step(b, "right", counted, first))
		return frozen(t, b)
	}(dag.New[Tale]("pair"))
	crowd := func(b *dag.Builder[Tale]) *dag.Graph[Tale] {
		inner := dag.New[Tale]("inner")
		dag.Step(inner, "only", noted("only"))
		dive := frozen(t, inner)
		tell := func(from, to *Tale) { to.Said.Append("told by an inner graph") }
		last := dag.Embed(b, "dive-1", dive, func(*Tale, *Tale) {}, tell)
		last = dag.Embed(b, "dive-2", dive, func(*Tale, *Tale) {}, tell, last)
		for i := range 80 {
			dag.Step(b, fmt.Sprintf("side-%d", i), counted, last)
		}
		return frozen(t, b)
	}(dag.New[Tale]("crowd"))
	store := new(memory.Store)
	log := func(d *dispatcher.Dispatcher[Tale], run string) string {
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		var entries []checkpoint.Entry
		for e, err := range store.Read(t.Context(), run, 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == checkpoint.Superstep { // what lands first is told first
				e.Seq, e.At = 0, time.Time{}
				entries = append(entries, e)
			}
		}
		return said(t, entries)
	}
	pairs := callsDispatcher(t, pair, store, dispatcher.Options{})
	want := log(pairs, "before")
	for i := range 20 {
		log(callsDispatcher(t, crowd, store, dispatcher.Options{}), fmt.Sprintf("crowd-%d", i))
		for k := range 4 {
			if got := log(pairs, fmt.Sprintf("pair-%d-%d", i, k)); got != want {
				t.Fatalf("the supersteps of a run behind others are\n%s, want\n%s", got, want)
			}
		}
	}
}

func counted(_ context.Context, s *Tale) error {
	s.Count.Add(1)
	return nil
}
