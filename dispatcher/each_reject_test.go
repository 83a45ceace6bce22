package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An item is rejected while the run rests Failed by one before it, which the resume renews: the first one that failed is the
// rejected one from then on. What stands before it has begun or begins, and counts, whatever the process has of the run.
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
