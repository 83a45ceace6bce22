package continuation_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A trigger is for what was waited for. If the program that goes on with the run waits for
// something else by then it is asked for that; with other bounds it still is what it was.
func TestATriggerIsForItsWait(t *testing.T) {
	said := func(_ context.Context, s *Talk, r continuation.Reply[string]) error {
		s.Said.Append(r.Payload)
		return nil
	}
	was := continuation.Wait{Kind: continuation.KindReply, Key: "pay-80", Question: "May I pay 80?", Within: time.Hour}
	for name, test := range map[string]struct {
		change func(w *continuation.Wait)
		asks   bool
	}{
		"the same":         {func(*continuation.Wait) {}, false},
		"another key":      {func(w *continuation.Wait) { w.Key = "pay-80000" }, true},
		"another question": {func(w *continuation.Wait) { w.Question = "May I pay 80000?" }, true},
		"other bounds":     {func(w *continuation.Wait) { w.Within, w.MaxFailures = time.Minute, 7 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := was
			test.change(&now)
			var store memory.Store
			p := begin(t, waiting(t, was, dag.Policy{}, said), &store, continuation.Options{})
			p.waits(run)
			leaves := reply("t1", "yes")
			leaves.LeaveIt = true
			if _, err := p.rt.Trigger(t.Context(), leaves); err != nil {
				t.Fatal(err)
			}
			p = begin(t, waiting(t, now, dag.Policy{}, said), &store, continuation.Options{})
			if _, err := p.rt.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !test.asks {
				p.stands(run, continuation.StatusResolved, continuation.Completed)
				if got := p.said(run); !slices.Equal(got, []string{"yes"}) {
					t.Errorf("the state says %q", got)
				}
				return
			}
			all, err := p.rt.List(t.Context(), continuation.Filter{Run: run, Status: []continuation.Status{continuation.StatusPending}})
			if err != nil || len(all) != 1 || len(p.said(run)) != 0 {
				t.Fatalf("pending are %+v, %v, and said was %q", all, err, p.said(run))
			}
			if _, err := p.rt.Trigger(t.Context(), reply("t2", "no")); err != nil {
				t.Fatal(err)
			}
			if got := p.said(run); !slices.Equal(got, []string{"no"}) {
				t.Errorf("behind the second trigger the state says %q", got)
			}
		})
	}
}

// unsaid is a store whose runs were asked by a version in which questions did not say what they are
// about.
type unsaid struct{ *memory.Store }

func (s unsaid) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, all []checkpoint.Entry) (checkpoint.Head, error) {
	all = slices.Clone(all)
	for i := range all {
		var asked checkpoint.Interrupt
		if all[i].Kind != checkpoint.Interrupted || json.Unmarshal(all[i].Data, &asked) != nil {
			continue
		}
		asked.About = nil
		all[i].Data, _ = json.Marshal(asked)
	}
	return s.Store.Append(ctx, l, after, all)
}

// A trigger that was taken by an earlier version counts, though the bounds of its wait are other
// ones in this one.
func TestATriggerOfAnEarlierVersionCounts(t *testing.T) {
	w := continuation.Wait{Kind: continuation.KindReply, Key: "ann", MaxFailures: 2}
	said := func(_ context.Context, s *Talk, r continuation.Reply[string]) error {
		s.Said.Append(r.Payload)
		return nil
	}
	store := unsaid{&memory.Store{}}
	was := under(t, dispatcher.Options{}, waiting(t, w, dag.Policy{}, said), store, continuation.Options{})
	was.waits(run)
	tr := reply("t1", "yes")
	tr.LeaveIt = true
	was = under(t, dispatcher.Options{}, waiting(t, w, dag.Policy{}, said), store, continuation.Options{})
	if _, err := was.rt.Trigger(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	w.MaxFailures = 7
	p := begin(t, waiting(t, w, dag.Policy{}, said), store.Store, continuation.Options{})
	if _, err := p.rt.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.said(run); !slices.Equal(got, []string{"yes"}) {
		t.Errorf("the state says %q", got)
	}
}

// A note of somebody else's under the name of those about deliveries is none: the run can be read,
// and its follow-up is brought.
func TestNotesThatAreLikeThoseOfDeliveries(t *testing.T) {
	for _, value := range []any{"by hand", 7, nil, map[string]any{"status": 1}, map[string]any{"status": "delivered"}, map[string]any{"status": "under way", "key": "k"}} {
		var man postman
		p := finished(t, &memory.Store{}, continuation.Options{Deliverer: &man})
		if err := p.d.Note(t.Context(), run, "continuation.delivery", value); err != nil {
			t.Fatal(err)
		}
		if p.delivers(continuation.Delivered); len(man.keys) != 1 {
			t.Errorf("behind the note %v it was brought %d times", value, len(man.keys))
		}
	}
}
