package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A store that fails to take a lease back once keeps the run from nobody, behind a call and behind
// what is said of a run at rest; one that goes on failing has the call say so.
func TestReleaseThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails int // how often
		warns bool
		onEnd func(context.Context, dispatcher.End) error
	}{
		"once":              {1, false, nil},
		"often":             {1000, true, nil},
		"often, and a hook": {1000, true, func(context.Context, dispatcher.End) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := 0
				store := &memory.Faulty{FailRead: func(_ context.Context, method, _ string) error {
					if method != "Release" || left == 0 {
						return nil
					}
					left--
					return errWeather
				}}
				d := process(t, asksTwo(t), store, dispatcher.Options{Hooks: dispatcher.Hooks{OnEnd: c.onEnd}})
				left = c.fails
				res, err := d.Run(t.Context(), run, nil)
				warned := len(res.Warnings) == 1 && strings.Contains(res.Warnings[0], errWeather.Error())
				if !errors.Is(err, dispatcher.ErrInterrupted) || warned != c.warns || len(res.Warnings) > 1 {
					t.Fatalf("the call returns %v, and warns %q", err, res.Warnings)
				}
				if c.warns {
					return
				}
				left = c.fails
				if err := d.Tag(t.Context(), run, "", "here"); err != nil {
					t.Error(err)
				}
				res, err = d.Run(t.Context(), run, nil, dispatcher.Answering(res.Interrupts[0].ID, "1"), dispatcher.Answering(res.Interrupts[1].ID, "2"))
				completes(t, res, err)
			})
		})
	}
}

// However short the grace period is, what is said of a run at rest gives its lease back, and a
// cancel that comes meanwhile is heeded.
func TestReleaseInNoTime(t *testing.T) {
	t.Parallel()
	var d *dispatcher.Dispatcher[Tale]
	cancels := false
	store := new(memory.Store)
	d = process(t, asksTwo(t), store, dispatcher.Options{Grace: 1, Observe: func(e dispatcher.Event) {
		if cancels && e.Kind == dispatcher.Noted {
			cancels = false
			if err := d.Cancel(t.Context(), run, nil); err != nil {
				t.Error(err)
			}
		}
	}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "x", "y")
	for name, say := range map[string]func() error{
		"Answer": func() error { return d.Answer(t.Context(), run, res.Interrupts[0].ID, "1") },
		"Edit": func() error {
			return d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("more") }, dispatcher.EditOptions{})
		},
		"Note": func() error { return d.Note(t.Context(), run, "seen", 1) },
		"Tag":  func() error { return d.Tag(t.Context(), run, "", "here") },
		"Trim": func() error { return d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}) },
	} {
		if err := say(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := store.Stat(t.Context(), run); err != nil || info.Owner != "" {
			t.Fatalf("behind %s the run is held by %q, %v", name, info.Owner, err)
		}
	}
	cancels = true
	if err := d.Note(t.Context(), run, "seen", 2); err != nil {
		t.Error(err)
	}
	if info, err := store.Stat(t.Context(), run); err != nil || info.Status != checkpoint.StatusCancelled {
		t.Errorf("the run is %s, %v", info.Status, err)
	}
}

// What is said of a run over a store that hangs ends within the grace period behind its context:
// one that does not take the lease back is not asked for what was posted.
func TestReleaseThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const grace = time.Second
		var inner memory.Store
		hangs := false
		store := &tampered{Store: &inner, before: func(ctx context.Context, c call) error {
			if hangs = hangs || c.method == "Append"; hangs {
				<-ctx.Done()
			}
			return ctx.Err()
		}}
		_, err := process(t, asksTwo(t), &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		end := time.Now().Add(time.Second)
		err = process(t, asksTwo(t), store, dispatcher.Options{Grace: grace}).Cancel(ctx, run, nil)
		if took := time.Since(end); took > grace || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call ended %v after its context, with %v", took, err)
		}
	})
}
