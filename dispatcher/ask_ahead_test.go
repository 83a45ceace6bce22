package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// movedFromAhead moves the run to another store, from a host whose clock was days ahead when input
// was queued there.
func movedFromAhead(t *testing.T, from *memory.Store, to interface {
	checkpoint.Store
	checkpoint.Archiver
}) {
	t.Helper()
	posts, err := from.Posts(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for i := range posts {
		posts[i].At = posts[i].At.Add(240 * time.Hour)
	}
	l, err := to.Acquire(t.Context(), run, "who moves it")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Restore(t.Context(), l, checkpoint.Archive{Envelopes: from.Envelopes(t.Context(), run), Posts: posts}); err != nil {
		t.Fatal(err)
	}
}

// Nobody has answered later than it is, though input is queued that came from a host whose clock
// was ahead; and answers that are taken together keep the order in which they were given.
func TestAnswersBehindInputFromAhead(t *testing.T) {
	for name, to := range map[string]interface {
		checkpoint.Store
		checkpoint.Archiver
	}{"memory": &memory.Store{}, "badger": openUnsynced(t)} {
		t.Run(name, func(t *testing.T) {
			var told []dag.Answered
			b := dag.New[Tale]("asks")
			dag.Step(b, "asks", func(ctx context.Context, _ *Tale) error {
				if all := dag.Answers(ctx); len(all) > 0 {
					told = all
				}
				var errs []error
				for _, key := range []string{"a", "b", "c"} {
					_, err := dag.Ask[bool](ctx, key, "sure?")
					errs = append(errs, err)
				}
				return errors.Join(errs...)
			})
			g, from := frozen(t, b), &memory.Store{}
			d := process(t, g, from, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "asks")
			if err := d.Enqueue(t.Context(), run, func(s *Tale) { s.Word.Set("queued") }); err != nil {
				t.Fatal(err)
			}
			movedFromAhead(t, from, to)
			d = process(t, g, to, dispatcher.Options{})
			var last error
			for turn := 1; turn <= 2; turn++ {
				id := map[string]string{}
				for _, i := range res.Interrupts {
					id[i.Key] = i.ID
				}
				l, err := to.Acquire(t.Context(), run, "who is at work on it")
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{"c", "a", "b"} {
					if err := d.Answer(t.Context(), run, id[key], true); err != nil {
						t.Fatal(err)
					}
				}
				if err := to.Release(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				res, last = d.Run(t.Context(), run, nil)
				var order []string
				for _, a := range told {
					if order = append(order, a.Key); a.At.After(time.Now()) {
						t.Errorf("turn %d: question %s was answered in %v", turn, a.Key, time.Until(a.At))
					}
				}
				if want := []string{"c", "a", "b"}; !slices.Equal(order, want) {
					t.Errorf("turn %d: the questions were answered in the order %q, want %q", turn, order, want)
				}
			}
			completes(t, res, last)
		})
	}
}
