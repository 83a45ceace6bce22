package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// doubtDies has the process die inside an effect of the graph: the store of process is dead
// once the function has done its part.
func doubtDies(t *testing.T, store *mortal, g *dag.Graph[Tale]) {
	t.Helper()
	if err := store.revive(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	if _, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil); !errors.Is(err, errDead) {
		t.Fatalf("the process did not die: %v", err)
	}
	if err := store.revive(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
}

// die makes the process dead from here on.
func (m *mortal) die() { m.process().Kill() }

// A process dies inside an effect that can't be done again. The log held that it had begun,
// and under which key; the resume does not do it, says why with advice, and rests as the
// effect declares. A second resume adds no other doubt.
func TestLife37(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtFails, dag.DoubtAsks} {
		var store mortal
		calls := 0
		g := effectNode(t, effectOnce(func(ctx context.Context, _ int) (string, error) {
			if calls++; calls > 1 {
				t.Errorf("%s: done again", doubt)
			}
			log := readLog(t, &store.Store)
			if last := log[len(log)-1]; last.Kind != checkpoint.EffectBegun || last.Path != "pay" || last.ID != "charge" {
				t.Errorf("%s: while it is done the log ends with %s %s", doubt, last.Kind, last.Path)
			}
			store.die()
			return "done", nil
		}, dag.InDoubt(doubt)), dag.Policy{Attempts: 3})
		doubtDies(t, &store, g)
		d := process(t, g, &store, dispatcher.Options{})
		before := doubtOpened(t, d)
		if before.Status != checkpoint.StatusRunning || before.Owner != "" || before.Effects[0].Begun.IsZero() {
			t.Errorf("%s: opened as %+v", doubt, before)
		}
		for n := range 2 {
			res, err := d.Resume(t.Context(), run)
			want := map[bool]string{true: "interrupted doubt", false: "failed in_doubt"}[doubt == dag.DoubtAsks]
			if got := doubtOutcome(res); got != want {
				t.Errorf("%s, resume %d: the run is %s, want %s: %v", doubt, n+1, got, want, err)
			}
			e := doubtOpened(t, d).Effects[0]
			if e.ID != "tale/pay#charge" || !e.Begun.Equal(before.Effects[0].Begun) || !strings.Contains(e.Advice, "Ask the other side for tale/pay#charge") {
				t.Errorf("%s, resume %d: %+v", doubt, n+1, e)
			}
		}
		if n := len(kinds(readLog(t, &store.Store), checkpoint.EffectBegun, checkpoint.EffectEnded)); n != 1 {
			t.Errorf("%s: the log has %d entries of effects", doubt, n)
		}
		if n := len(kinds(readLog(t, &store.Store), checkpoint.Interrupted)); n > 1 {
			t.Errorf("%s: a person is asked %d times", doubt, n)
		}
	}
}

// doubtOpened opens the run, in which one effect is in doubt, and which stays as it is.
func doubtOpened(t *testing.T, d *dispatcher.Dispatcher[Tale]) *dispatcher.Opened {
	t.Helper()
	o, err := d.Open(t.Context(), run)
	if err != nil || len(o.InDoubt()) != 1 {
		t.Fatalf("opened %+v: %v", o, err)
	}
	return o
}

// The same inside an effect that can be done again: it is, under the same key. And of one that
// had ended, in a visit that had not: its output is there, and it is not done again.
func TestLife38(t *testing.T) {
	var store mortal
	var keys []string
	charged := 0
	g := effectNode(t, func(ctx context.Context, s *Tale) error {
		receipt, err := dag.Effect(ctx, "charge", 1, func(context.Context, int) (string, error) {
			charged++
			return "receipt 1", nil
		})
		if err != nil {
			return err
		}
		mail, err := dag.Effect(ctx, "mail", receipt, func(ctx context.Context, receipt string) (string, error) {
			if keys = append(keys, dag.Key(ctx)); len(keys) == 1 {
				store.die()
			}
			return "mailed " + receipt, nil
		}, dag.Replayable)
		s.Word.Set(mail)
		return err
	}, dag.Policy{})
	doubtDies(t, &store, g)
	d := process(t, g, &store, dispatcher.Options{})
	o, err := d.Open(t.Context(), run)
	if err != nil || len(o.Effects) != 2 || len(o.InDoubt()) != 0 {
		t.Fatalf("opened %+v: %v", o, err)
	}
	if !strings.Contains(o.Effects[0].Advice, "not done again") || !strings.Contains(o.Effects[1].Advice, "done again under the same key") {
		t.Errorf("advice is %q and %q", o.Effects[0].Advice, o.Effects[1].Advice)
	}
	res, err := d.Resume(t.Context(), run, dispatcher.Manual())
	if completes(t, res, err); res.State.Word.Get() != "mailed receipt 1" || charged != 1 {
		t.Errorf("the state has %q, charged %d times", res.State.Word.Get(), charged)
	}
	if !slices.Equal(keys, []string{"tale/pay#mail", "tale/pay#mail"}) {
		t.Errorf("mailed under %q", keys)
	}
}

// Two effects side by side, of which one had ended when the process died: it is kept, and the
// other one alone is in doubt. What they returned stays in the order in which the node has it.
func TestLife41(t *testing.T) {
	var store mortal
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	var calls [2]atomic.Int32
	g := effectNode(t, func(ctx context.Context, s *Tale) error {
		results := make(chan error, 2)
		var receipts [2]string
		for i := range 2 {
			go func() {
				var err error
				receipts[i], err = dag.Effect(ctx, fmt.Sprint("charge ", i), i, func(context.Context, int) (string, error) {
					if calls[i].Add(1); i == 1 {
						<-ended
						store.die()
					}
					return fmt.Sprint("receipt ", i), nil
				}, dag.InDoubt(dag.DoubtAsks))
				if i == 0 {
					end()
				}
				results <- err
			}()
		}
		if err := errors.Join(<-results, <-results); err != nil {
			return err
		}
		s.Said.Append(receipts[:]...)
		return nil
	}, dag.Policy{})
	doubtDies(t, &store, g)
	d := process(t, g, &store, dispatcher.Options{})
	o := doubtOpened(t, d)
	if e := o.InDoubt()[0]; e.Key != "charge 1" || len(o.Effects) != 2 {
		t.Errorf("opened %v", o.Effects)
	}
	res, err := d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	if err := d.Resolve(t.Context(), run, "pay", "charge 1", dispatcher.Happened("receipt by hand")); err != nil {
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	says(t, res.State, "receipt 0", "receipt by hand")
	if calls[0].Load() != 1 || calls[1].Load() != 1 {
		t.Errorf("done %d and %d times", calls[0].Load(), calls[1].Load())
	}
}

// A cancel while three visits are in effects and five wait for their turn: those that run are
// told, those that wait never begin, nobody hangs, and what comes late is kept out of the log.
// The next call brings each effect to exactly one end.
func TestLife42(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var calls [9]atomic.Int32
		var cut, begun atomic.Int32
		b := dag.New[Tale]("fan")
		for i := 1; i <= 8; i++ {
			dag.Step(b, fmt.Sprint("pay-", i), func(ctx context.Context, s *Tale) error {
				receipt, err := dag.Effect(ctx, "charge", i, func(ctx context.Context, i int) (string, error) {
					begun.Add(1)
					if calls[i].Add(1) > 1 {
						return fmt.Sprint("receipt ", i), nil
					}
					switch i {
					case 2: // ignores the cancel, and returns late
						lasts(time.Hour)
						return "late", nil
					default:
						err := heeds(ctx, time.Minute)
						if err != nil {
							cut.Add(1)
							err = fmt.Errorf("%w: %w", dag.NotDone, err)
						}
						return fmt.Sprint("receipt ", i), err
					}
				})
				s.Notes.Put(fmt.Sprint(i), receipt)
				return err
			})
		}
		g := frozen(t, b)
		o := dispatcher.Options{Parallel: 3}
		ctx, cancel := context.WithCancel(t.Context())
		d := process(t, g, &store, o)
		ended := make(chan ending, 1)
		go func() {
			res, err := d.Run(ctx, run, nil)
			ended <- ending{res: res, err: err}
		}()
		synctest.Wait()
		cancel()
		e := <-ended
		if !errors.Is(e.err, context.Canceled) || begun.Load() != 3 || cut.Load() != 2 || !slices.Equal(e.res.Abandoned, []string{"pay-2"}) {
			t.Errorf("%v: begun %d, cut off %d, abandoned %q", e.err, begun.Load(), cut.Load(), e.res.Abandoned)
		}
		before := len(readLog(t, &store))
		lasts(2 * time.Hour)
		synctest.Wait()
		if after := len(readLog(t, &store)); after != before {
			t.Errorf("what came late has added %d entries", after-before)
		}
		d = process(t, g, &store, dispatcher.Options{Parallel: 3})
		if err := d.Resolve(t.Context(), run, "pay-2", "charge", dispatcher.Happened("receipt 2")); err != nil {
			t.Fatal(err)
		}
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
		for i := 1; i <= 8; i++ {
			if got, want := notes(res.State)[fmt.Sprint(i)], fmt.Sprint("receipt ", i); got != want {
				t.Errorf("effect %d returned %q, want %q", i, got, want)
			}
			want := int32(1)
			if n := calls[i].Load(); n != want && (i > 3 || i == 2 || n != 2) {
				t.Errorf("effect %d was done %d times", i, n)
			}
		}
		ends := kinds(readLog(t, &store), checkpoint.EffectEnded)
		for i := 1; i <= 8; i++ {
			want := 1
			if calls[i].Load() == 2 {
				want = 2 // that it did not happen is an end as well
			}
			if n := len(slices.DeleteFunc(slices.Clone(ends), func(e string) bool { return e != fmt.Sprint("effect_ended pay-", i) })); n != want {
				t.Errorf("effect %d has %d ends, want %d", i, n, want)
			}
		}
	})
}
