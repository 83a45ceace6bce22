package dispatcher_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An item is rejected while the run rests Failed by one before it, which the resume renews: the
// first one that failed is the rejected one from then on. What stands before it has begun or
// begins, and counts, whatever the process has of the run.
func TestEachRejectedBehindWhatIsRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		parallel int      // of all visits
		again    []string // bodies that run behind the resume
	}{
		"what stands between has finished":  {0, []string{"review/1#2"}},
		"what stands between has not begun": {1, []string{"review/1#2", "review/2"}},
	} {
		for _, eager := range []bool{false, true} {
			for _, other := range []bool{false, true} {
				for _, edited := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, eager=%t, other=%t, edited=%t", name, eager, other, edited), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { eachRejected(t, c.parallel, c.again, eager, other, edited) })
					})
				}
			}
		}
	}
}

func eachRejected(t *testing.T, parallel int, again []string, eager, other, edited bool) {
	var w witness
	broken, store := true, new(memory.Store)
	b := dag.New[Tale]("tale")
	dag.Each(b, "review", eachList("bad", "good", "held"), func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		s.Said.Append(item)
		if item == "bad" && broken {
			lasts(time.Second)
			return errWeather
		}
		return nil
	})
	g := frozen(t, b)
	o := dispatcher.Options{Parallel: parallel, InterruptBefore: []string{"review/3"}}
	if eager {
		o = dispatcher.Eager(o)
	}
	d := process(t, g, store, o)
	next := func() *dispatcher.Dispatcher[Tale] {
		if other {
			d = process(t, g, store, o)
		}
		return d
	}

	res, err := d.Run(t.Context(), run, nil)
	if res.Status != checkpoint.StatusFailed || len(res.Interrupts) != 1 {
		t.Fatalf("the run is %s, and waits for %v: %v", res.Status, res.Interrupts, err)
	}
	w.took()
	if err := next().Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Reject); err != nil {
		t.Fatal(err)
	}
	broken = false
	res, err = next().Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "review/3")
	if want := []string{"review/1", "review/2"}; !slices.Equal(res.Finished, want) {
		t.Errorf("finished: %q, want %q", res.Finished, want)
	}
	w.expect(t, again...)
	sameMachine(t, d, run)
	if !edited {
		res, err = next().Run(t.Context(), run, nil)
		completes(t, res, err) // the rejection is overruled
		w.expect(t, "review/3")
		says(t, res.State, "bad", "good", "held")
		return
	}
	void := dispatcher.EditOptions{Void: []string{"review/2"}, Reason: "it is not good"}
	if err := next().Edit(t.Context(), run, func(*Tale) {}, void, dispatcher.Author("Ada")); err != nil {
		t.Fatal(err)
	}
	sameMachine(t, d, run)
	res, err = next().Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "review/2", "review/3")
	says(t, res.State, "bad", "good", "held")
	sameMachine(t, d, run)
}

// A place of Options.Parallel that a run has got for an item which a rejection stops at that moment
// is free for others, for as long as the run waits for something else.
func TestEachRejectedLeavesItsPlace(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the rejection is there before the run has looked at its place
	met := false
	for n := 0; !met && !t.Failed(); n++ {
		if n == 100 {
			t.Fatal("the item was begun in each of 100 runs")
		}
		synctest.Test(t, func(t *testing.T) { met = eachRejectedInPlace(t) })
	}
}

// eachRejectedInPlace reports whether the rejection came before the run had begun the item that has
// its place: not so if the goroutine that rejects was preempted.
func eachRejectedInPlace(t *testing.T) (met bool) {
	var w witness
	var d *dispatcher.Dispatcher[Tale]
	var others sync.WaitGroup
	begin := func(name string, within time.Duration) { // a run that works for a minute, and has no items
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		if _, err := d.Run(ctx, name, func(s *Tale) { s.Word.Set(name) }); err != nil {
			t.Errorf("the run %q: %v", name, err)
		}
	}
	b := dag.New[Tale]("tale")
	dag.Step(b, "works", func(ctx context.Context, s *Tale) error {
		switch {
		case s.Word.Get() != "":
			lasts(time.Minute)
		case dag.Attempt(ctx) == 1:
			others.Go(func() { begin("other", time.Hour) })
			lasts(time.Second) // the other one waits for the place
			return errWeather
		}
		return nil
	}).With(dag.Policy{Attempts: 2, Backoff: dag.Constant(time.Hour)})
	dag.Each(b, "review", func(s *Tale) []string {
		if s.Word.Get() != "" {
			return nil
		}
		return []string{"held", "ready"}
	}, func(ctx context.Context, s *Tale, _ string) error { return w.sees(nil)(ctx, s) })
	var held string
	d = process(t, frozen(t, b), new(memory.Store), dispatcher.Options{
		Parallel: 1, InterruptBefore: []string{"review/1"},
		Observe: func(e dispatcher.Event) {
			switch {
			case e.Run == run && e.Kind == dispatcher.VisitInterrupted:
				held = e.ID
			case e.Run == "other" && e.Kind == dispatcher.VisitDone && e.Path == "works": // its place is the run's by now
				if err := d.Answer(t.Context(), run, held, dispatcher.Reject); err != nil {
					t.Error(err)
				}
				others.Go(func() { begin("third", 10*time.Minute) })
			}
		},
	})
	res, err := d.Run(t.Context(), run, nil)
	others.Wait()
	if began := w.took(); len(began) > 0 {
		if !slices.Equal(began, []string{"review/2"}) {
			t.Errorf("bodies that ran: %q, want none, or review/2", began)
		}
		return false
	}
	rests(t, res, err, checkpoint.StatusFailed, "review/1", "review/2")
	return true
}
