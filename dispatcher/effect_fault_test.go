package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Nothing begins once the context is done. If it is done while the store makes it durable
// that an effect begins, the log says that it did not happen, and nothing is in doubt.
func TestEffectOfACancelledRun(t *testing.T) {
	for _, late := range []bool{false, true} {
		var bank effectBank
		ctx, cancel := context.WithCancel(t.Context())
		var inner memory.Store
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			if late && len(c.entries) > 0 && c.entries[0].Kind == checkpoint.EffectBegun {
				cancel()
			}
			return nil
		}}
		var got error
		g := effectNode(t, func(ctx context.Context, s *Tale) error {
			if !late {
				cancel()
			}
			receipt, err := dag.Effect(ctx, "charge", 5, bank.pay)
			s.Word.Set(receipt)
			got = err
			return err
		}, dag.Policy{})
		res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusCancelled, "pay")
		if !errors.Is(got, context.Canceled) || len(bank.counts()) > 0 {
			t.Errorf("late=%t: %v, done %v", late, got, bank.counts())
		}
		want := map[bool][]string{true: {"effect_begun pay", "effect_ended pay"}}[late]
		if log := kinds(readLog(t, &inner), checkpoint.EffectBegun, checkpoint.EffectEnded); !slices.Equal(log, want) {
			t.Errorf("late=%t: the log has %q, want %q", late, log, want)
		}
		late = false
		cancel = func() {}
		res, err = process(t, g, &inner, dispatcher.Options{}).Resume(t.Context(), run)
		if completes(t, res, err); bank.counts()["tale/pay#charge"] != 1 {
			t.Errorf("late=%t: done %v", late, bank.counts())
		}
	}
}

// A replayable effect that begins again may have happened before. So it stays begun if the context
// is done before its function runs, and its key stays what it is.
func TestEffectCancelledAsItBeginsAgain(t *testing.T) {
	var keys []string
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := 0
	var inner memory.Store
	store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
		if len(c.entries) > 0 && c.entries[0].Kind == checkpoint.EffectBegun {
			if begun++; begun == 2 {
				cancel()
			}
		}
		return nil
	}}
	d := process(t, effectNode(t, effectOnce(func(ctx context.Context, _ int) (string, error) {
		if keys = append(keys, dag.Key(ctx)); len(keys) == 1 {
			return "", errors.New("no reply")
		}
		return "done", nil
	}, dag.Replayable), dag.Policy{}), store, dispatcher.Options{})
	res, err := d.Run(ctx, run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	res, err = d.Resume(ctx, run)
	rests(t, res, err, checkpoint.StatusCancelled, "pay")
	if err := d.Rewind(t.Context(), run, "0", dispatcher.RewindOptions{}); !errors.Is(err, dag.ErrInDoubt) {
		t.Errorf("the run forgets that the effect may have happened: Rewind returns %v", err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	if want := []string{"tale/pay#charge", "tale/pay#charge"}; !slices.Equal(keys, want) {
		t.Errorf("the effect was done under %q, want %q", keys, want)
	}
}

// An effect whose function obeys the end of the context leaves it in doubt: the run rests as
// cancelled, and the resume says what is in doubt.
func TestEffectCutOffByACancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	g := effectNode(t, effectOnce(func(ctx context.Context, _ int) (string, error) {
		n++
		cancel()
		return "", ctx.Err()
	}), dag.Policy{Attempts: 3})
	var store memory.Store
	res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
	rests(t, res, err, checkpoint.StatusCancelled, "pay")
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	if rests(t, res, err, checkpoint.StatusFailed, "pay"); !errors.Is(err, dag.ErrInDoubt) || n != 1 {
		t.Errorf("%v, done %d times", err, n)
	}
}

// When the attempt is over, nothing that it left behind begins an effect or ends one.
func TestEffectOfAVisitThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bank effectBank
		var ended, begun error
		g := effectNode(t, func(ctx context.Context, s *Tale) error {
			started := make(chan struct{})
			go func() {
				_, ended = dag.Effect(ctx, "slow", 1, func(ctx context.Context, n int) (string, error) {
					close(started)
					lasts(time.Minute)
					return bank.pay(ctx, n)
				})
				_, begun = dag.Effect(ctx, "late", 2, bank.pay)
			}()
			<-started
			return nil
		}, dag.Policy{})
		var store memory.Store
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		lasts(time.Hour)
		synctest.Wait()
		if !errors.Is(ended, dag.ErrVisitOver) || !errors.Is(begun, dag.ErrVisitOver) || bank.counts()["tale/pay#late"] != 0 {
			t.Errorf("%v and %v, done %v", ended, begun, bank.counts())
		}
		log := readLog(t, &store)
		if log[len(log)-1].Kind != checkpoint.Completed {
			t.Errorf("behind the end of the run the log has %v", log[len(log)-1].Kind)
		}
	})
}

// An abandoned node appends nothing more, inline and beside others. What it has begun is in
// doubt for the next call.
func TestEffectOfAnAbandonedVisit(t *testing.T) {
	for _, alone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var bank effectBank
			var ended error
			b := dag.New[Tale]("stubborn")
			dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
				_, ended = dag.Effect(ctx, "charge", 5, func(ctx context.Context, n int) (string, error) {
					lasts(time.Minute)
					return bank.pay(ctx, n)
				})
				return ended
			})
			if !alone {
				dag.Step(b, "beside", func(context.Context, *Tale) error { return nil })
			}
			g := frozen(t, b)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var store memory.Store
			d := process(t, g, &store, dispatcher.Options{Grace: time.Second})
			res, err := d.Run(ctx, run, nil)
			rests(t, res, err, checkpoint.StatusTimedOut, "pay")
			if !slices.Equal(res.Abandoned, []string{"pay"}) {
				t.Errorf("abandoned %q", res.Abandoned)
			}
			lasts(time.Hour)
			synctest.Wait()
			if !errors.Is(ended, dag.ErrVisitOver) {
				t.Errorf("the end of the effect: %v, want ErrVisitOver", ended)
			}
			res, err = d.Resume(t.Context(), run)
			if rests(t, res, err, checkpoint.StatusFailed, "pay"); !errors.Is(err, dag.ErrInDoubt) || bank.counts()["tale/pay#charge"] != 1 {
				t.Errorf("%v, done %v", err, bank.counts())
			}
		})
	}
}

// Promise P6: a store that hangs in the append of an effect holds up nobody longer than the
// grace period, and what it makes durable in the end is in the log of the next call.
func TestEffectInAStoreThatHangs(t *testing.T) {
	for _, alone := range []bool{true, false} {
		for n, hung := range []checkpoint.Kind{checkpoint.EffectBegun, checkpoint.EffectEnded} {
			synctest.Test(t, func(t *testing.T) {
				var bank effectBank
				b := dag.New[Tale]("hangs")
				dag.Step(b, "pay", effectOnce(bank.pay, dag.Replayable))
				if !alone {
					dag.Step(b, "beside", func(context.Context, *Tale) error { return nil })
				}
				g := frozen(t, b)
				free := make(chan struct{})
				var inner memory.Store
				store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
					if len(c.entries) > 0 && c.entries[0].Kind == hung {
						<-free
					}
					return nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				end := time.Now().Add(time.Second)
				res, err := process(t, g, store, dispatcher.Options{Grace: time.Second}).Run(ctx, run, nil)
				within(t, end, time.Second)
				if !errors.Is(err, dispatcher.ErrStuck) || !slices.Contains(res.Abandoned, "pay") {
					t.Errorf("%v, abandoned %q", err, res.Abandoned)
				}
				close(free)
				lasts(time.Hour)
				synctest.Wait()
				res, err = process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
				completes(t, res, err)
				if got := bank.counts()["tale/pay#charge"]; got < 1 || got > 1+n {
					t.Errorf("hung at %v: done %d times", hung, got)
				}
			})
		}
	}
}

// A store that fails at an entry of an effect ends the call, whatever the node makes of it;
// the next one goes on from the log.
func TestEffectInAStoreThatFails(t *testing.T) {
	broken := errors.New("broken")
	for k := 2; k <= 3; k++ {
		var bank effectBank
		g := effectNode(t, func(ctx context.Context, s *Tale) error {
			_, _ = dag.Effect(ctx, "charge", 5, bank.pay, dag.Replayable)
			return nil
		}, dag.Policy{})
		var inner memory.Store
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			if c.method == "Append" && c.n == k {
				return broken
			}
			return nil
		}}
		if _, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil); !errors.Is(err, broken) {
			t.Errorf("append %d: %v", k, err)
		}
		if n := store.calls["Append"]; n != k {
			t.Errorf("append %d has failed, and %d were made", k, n)
		}
		res, err := process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
		if completes(t, res, err); len(bank.counts()) != 1 {
			t.Errorf("append %d: done %v", k, bank.counts())
		}
	}
}

// Rule 5: voided visits run again, those inside voided frames too, and their effects don't.
func TestVoidedVisitsKeepTheirEffects(t *testing.T) {
	var bank effectBank
	mended := false
	write := func(ctx context.Context, s *Tale) error {
		receipt, err := dag.Effect(ctx, "charge", 5, bank.pay)
		if !mended {
			s.Word.Set(receipt)
		}
		return err
	}
	body := dag.New[Tale]("body")
	dag.Step(body, "write", write)
	b := dag.New[Tale]("conflict")
	one := dag.Step(b, "one", write)
	two := dag.Loop(b, "two", frozen(t, body), func(*Tale) bool { return false }, 2)
	dag.Step(b, "three", effectOnce(bank.pay), one, two)
	g := frozen(t, b)
	var store memory.Store
	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "one", "two")
	conflicting(t, err, "one", "two")
	mended = true
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	want := `{"tale/one#charge":1,"tale/three#charge":1,"tale/two/1/write#charge":1,"tale/two/2/write#charge":1}`
	if got := asJSON(t, bank.counts()); got != want {
		t.Errorf("done %s, want %s", got, want)
	}
	if n := len(kinds(readLog(t, &store), checkpoint.EffectBegun)); n != 4 {
		t.Errorf("%d effects begun, want 4", n)
	}
}

// A snapshot holds the effects that later attempts ask for: it is what a replay gives.
func TestSnapshotsHoldEffects(t *testing.T) {
	var served atomic.Int32
	store := &forgetful{served: &served}
	var bank effectBank
	big := strings.Repeat("x", 50_000)
	b := dag.New[Tale]("big")
	for _, name := range []string{"one", "two"} {
		dag.Step(b, name, func(ctx context.Context, s *Tale) error {
			for i := range 4 {
				_, err := dag.Effect(ctx, fmt.Sprint("part ", i), i, func(ctx context.Context, n int) (string, error) {
					_, err := bank.pay(ctx, n)
					if i == 2 && dag.Attempt(ctx) == 1 {
						err = dag.NotDone
					}
					return big, err
				})
				if err != nil {
					return err
				}
			}
			if dag.Attempt(ctx) < 4 {
				return errors.New("not yet")
			}
			return nil
		}).With(dag.Policy{Attempts: 4})
	}
	g := frozen(t, b)
	d := process(t, g, store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	for key, n := range bank.counts() {
		if want := 1 + strings.Count(key, "part 2"); n != want {
			t.Errorf("%s done %d times, want %d", key, n, want)
		}
	}
	snapshots := 0
	for at := res.Cursor.Seq; ; snapshots++ {
		snap, err := store.Store.Snapshot(t.Context(), run, at)
		if err != nil {
			break
		}
		at = snap.Head.Seq - 1
		store.forgets = true
		replayed, err := dispatcher.MachineAt(t.Context(), d, run, snap.Head.Seq)
		store.forgets = false
		if err != nil {
			t.Fatal(err)
		}
		held, want := effectsIn(t, snap.Data), effectsIn(t, replayed)
		if held != want || !strings.Contains(held, "part 0") {
			t.Errorf("at %d the snapshot holds %.500s, a replay gives %.500s", snap.Head.Seq, held, want)
		}
	}
	if snapshots == 0 {
		t.Error("no snapshot was taken")
	}
}

// effectsIn is the part of a machine that tells of effects.
func effectsIn(t *testing.T, machine []byte) string {
	t.Helper()
	var m struct{ Effects json.RawMessage }
	if err := json.Unmarshal(machine, &m); err != nil {
		t.Fatal(err)
	}
	return string(m.Effects)
}

// Entries of effects are events, in the order of the log, beside everything else.
func TestEventsOfEffects(t *testing.T) {
	var bank effectBank
	var seqs []uint64
	var told []string
	g := effectful(t, &bank)
	d := process(t, g, new(memory.Store), dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Live {
			return
		}
		seqs = append(seqs, e.Seq)
		if e.Path == "first" && (e.Kind == dispatcher.EffectBegun || e.Kind == dispatcher.EffectEnded) {
			told = append(told, e.String())
		}
	}})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	for i, seq := range seqs {
		if seq != uint64(i+1) {
			t.Fatalf("event %d has number %d", i+1, seq)
		}
	}
	if uint64(len(seqs)) != res.Cursor.Seq {
		t.Errorf("%d events of %d entries", len(seqs), res.Cursor.Seq)
	}
	want := []string{
		"tale@3: effect begun first#one", "tale@4: effect ended first#one",
		"tale@5: effect begun first#again (replayable)", "tale@6: effect ended first#again",
		"tale@7: effect begun first#two", "tale@8: effect ended first#two",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// A run that was drained has a cursor behind its effects.
func TestEffectsOfADrainedRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	g := effectNode(t, effectOnce(func(context.Context, int) (string, error) {
		cancel(dispatcher.ErrDrain)
		return "", dag.NotDone
	}), dag.Policy{})
	var store memory.Store
	res, _ := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
	if info, err := store.Stat(t.Context(), run); err != nil || info.Head.Seq != res.Cursor.Seq || info.Status != checkpoint.StatusRunning {
		t.Errorf("the log ends at %d, %s, %v; the cursor is %s", info.Head.Seq, info.Status, err, res.Cursor)
	}
}

// Effects are durable where the store is: over a restart of the process that had it open.
func TestEffectsInBadger(t *testing.T) {
	dir := t.TempDir()
	var bank effectBank
	g := effectNode(t, func(ctx context.Context, s *Tale) error {
		receipt, err := dag.Effect(ctx, "charge", 5, bank.pay)
		if err != nil {
			return err
		}
		sure, err := dag.Ask[bool](ctx, "sure", "?")
		if sure {
			s.Word.Set(receipt)
		}
		return err
	}, dag.Policy{})
	for i := range 2 {
		store, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := process(t, g, store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		if i == 0 {
			rests(t, res, err, checkpoint.StatusInterrupted, "pay")
			err = d.Answer(t.Context(), run, res.Interrupts[0].ID, true)
		} else if completes(t, res, err); res.State.Word.Get() != "5 for tale/pay#charge" {
			t.Errorf("the word is %q", res.State.Word.Get())
		}
		if err := errors.Join(err, store.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if bank.counts()["tale/pay#charge"] != 1 {
		t.Errorf("done %v", bank.counts())
	}
}
