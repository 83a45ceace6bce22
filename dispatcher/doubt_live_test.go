package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
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

// doubtBeside is a graph in which a visit with an effect works beside one that takes an hour.
func doubtBeside(t *testing.T, pay part) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("beside")
	dag.Step(b, "pay", pay)
	dag.Step(b, "slow", func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) })
	return frozen(t, b)
}

// A live run is told what came of an effect by a message: its visit goes on at once if it
// waits for that, and with the resume if it has failed. A person needs no lease.
func TestDoubtOfALiveRun(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtAsks, dag.DoubtFails} {
		synctest.Test(t, func(t *testing.T) {
			side, store := doubtSide{fails: 1}, new(memory.Store)
			g := doubtBeside(t, side.pay(dag.InDoubt(doubt)))
			d := process(t, g, store, dispatcher.Options{})
			ended := beginRun(t, d)
			elsewhere := process(t, g, store, dispatcher.Options{})
			o, err := elsewhere.Open(t.Context(), run)
			if err != nil || o.Owner == "" || len(o.InDoubt()) != 1 {
				t.Fatalf("%s: opened %+v: %v", doubt, o, err)
			}
			if err := elsewhere.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("receipt by hand"), dispatcher.Author("Ada")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			log := readLog(t, store)
			if doubt == dag.DoubtAsks {
				if last := log[len(log)-1]; side.ran != 2 || last.Kind != checkpoint.Done || last.Path != "pay" {
					t.Errorf("%s: the node ran %d times, and the log ends with %s %s", doubt, side.ran, last.Kind, last.Path)
				}
			} else if last := log[len(log)-1]; side.ran != 1 || last.Kind != checkpoint.EffectEnded || last.Post == "" {
				t.Errorf("%s: the node ran %d times, and the log ends with %s", doubt, side.ran, last.Kind)
			}
			unchanged(t, store, run, func() {
				if err := elsewhere.Resolve(t.Context(), run, "pay", "charge", dispatcher.NotHappened("x")); !errors.Is(err, dispatcher.ErrNotInDoubt) {
					t.Errorf("%s: resolved twice: %v", doubt, err)
				}
			})
			e := <-ended
			if doubt == dag.DoubtFails {
				rests(t, e.res, e.err, checkpoint.StatusFailed, "pay")
				e.res, e.err = d.Resume(t.Context(), run)
			}
			if completes(t, e.res, e.err); e.res.State.Word.Get() != "receipt by hand" || side.calls != 1 {
				t.Errorf("%s: the state has %q, and the effect was done %d times", doubt, e.res.State.Word.Get(), side.calls)
			}
		})
	}
}

// While its visit is at work nobody can say what came of an effect: it may just be happening.
func TestDoubtOfAVisitAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Store)
		g := doubtBeside(t, effectOnce(func(ctx context.Context, _ int) (string, error) {
			return "receipt", heeds(ctx, time.Minute)
		}))
		d := process(t, g, store, dispatcher.Options{})
		ended := beginRun(t, d)
		unchanged(t, store, run, func() {
			err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("x"))
			var refused *dispatcher.ResolutionError
			if !errors.Is(err, dispatcher.ErrNotInDoubt) || !errors.As(err, &refused) || refused.Reason != "its visit may be at work: somebody has the run" {
				t.Errorf("resolved: %v", err)
			}
		})
		o, err := d.Open(t.Context(), run)
		if err != nil || len(o.Effects) != 1 || o.Effects[0].Advice != "The run is live: it may just be happening. Look again when the run rests." {
			t.Errorf("opened %+v: %v", o, err)
		}
		e := <-ended
		completes(t, e.res, e.err)
	})
}

// What is posted when the owner of the run has just gone is taken by the next one, before the
// visit runs.
func TestDoubtResolvedForTheNextOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		side, inner := doubtSide{fails: 1}, new(memory.Store)
		deaf := &deafStore{Store: inner}
		g := doubtBeside(t, side.pay(dag.InDoubt(dag.DoubtFails)))
		ended := beginRun(t, process(t, g, deaf, dispatcher.Options{}))
		deaf.deaf.Store(true)
		if err := process(t, g, inner, dispatcher.Options{}).Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand")); err != nil {
			t.Fatal(err)
		}
		e := <-ended
		rests(t, e.res, e.err, checkpoint.StatusFailed, "pay")
		if posts, err := inner.Posts(t.Context(), run); err != nil || len(posts) != 1 {
			t.Fatalf("%d posts wait: %v", len(posts), err)
		}
		res, err := process(t, g, inner, dispatcher.Options{}).Resume(t.Context(), run)
		if completes(t, res, err); res.State.Word.Get() != "by hand" || side.calls != 1 {
			t.Errorf("the state has %q, and the effect was done %d times", res.State.Word.Get(), side.calls)
		}
	})
}

// A run that may be ahead of the disk drains what somebody says of an effect behind what it has of
// the effect itself: a visit that is taken back later is told.
func TestDoubtResolvedOfARunAheadOfTheDisk(t *testing.T) {
	quiet(t)
	inner, paid := new(memory.Store), make(chan struct{})
	store := &tampered{Store: inner, after: func(c call, err error) error {
		for _, e := range c.entries {
			if c.method == "Append" && e.Kind == checkpoint.Done && e.Path == "x" && e.Seq == 0 {
				close(paid)
			}
		}
		return err
	}}
	var g *dag.Graph[Tale]
	b := dag.New[Tale]("ahead")
	dag.Step(b, "x", func(ctx context.Context, s *Tale) error {
		n, err := dag.Effect(ctx, "k", 1, func(context.Context, int) (int, error) { return 0, errDoubtReset })
		if err != nil {
			s.Word.Set("unclear")
		}
		s.Count.Add(n)
		return nil
	})
	var first sync.Once
	dag.Step(b, "y", func(_ context.Context, s *Tale) (err error) {
		first.Do(func() {
			<-paid // and y is the only one at work
			s.Word.Set("y")
			err = process(t, g, inner, dispatcher.Options{}).Resolve(t.Context(), run, "x", "k", dispatcher.Happened(1))
		})
		return err
	})
	g = frozen(t, b)
	res, err := process(t, g, store, dispatcher.Options{Lag: 4, Parallel: 1}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "x", "y")
	res, err = process(t, g, inner, dispatcher.Options{}).Resume(t.Context(), run)
	if completes(t, res, err); res.State.Count.Get() != 1 || res.State.Word.Get() != "" {
		t.Errorf("x was told %d, %q, want 1 and no doubt", res.State.Count.Get(), res.State.Word.Get())
	}
}

// A deafStore tells its process of no posts, once it is deaf.
type deafStore struct {
	checkpoint.Store
	deaf atomic.Bool
}

func (s *deafStore) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	if s.deaf.Load() {
		return nil, nil
	}
	return s.Store.Posts(ctx, run)
}

// Of many people who say what happened one is heard: each doubt is resolved once, at rest and
// live, whether or not a visit waits for it.
func TestDoubtResolvedByMany(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks} {
		for _, live := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				side, store := doubtSide{fails: 1}, new(memory.Store)
				g := doubtBeside(t, side.pay(dag.InDoubt(doubt)))
				d := process(t, g, store, dispatcher.Options{})
				ended := beginRun(t, d)
				if !live {
					lasts(2 * time.Hour)
					e := <-ended
					ended = nil
					if e.err == nil {
						t.Fatal("the run is completed")
					}
				}
				var heard atomic.Int32
				var all sync.WaitGroup
				for i := range 16 {
					all.Go(func() {
						err := process(t, g, store, dispatcher.Options{}).Resolve(t.Context(), run, "pay", "charge",
							dispatcher.Happened(fmt.Sprint("receipt ", i)), dispatcher.Author(fmt.Sprint("person ", i)))
						switch {
						case err == nil:
							heard.Add(1)
						case !errors.Is(err, dispatcher.ErrNotInDoubt):
							t.Errorf("%s, live=%t: %v", doubt, live, err)
						}
					})
				}
				all.Wait()
				if ended != nil {
					<-ended
				}
				ends := 0
				for _, e := range readLog(t, store) {
					if e.Kind == checkpoint.EffectEnded {
						ends++
					}
				}
				if heard.Load() != 1 || ends != 1 {
					t.Errorf("%s, live=%t: %d were heard, and the effect ends %d times", doubt, live, heard.Load(), ends)
				}
			})
		}
	}
}

// What is said of a doubt whose visit has ended may be heard when it changes nothing any more. If
// the run goes back to the doubt, what is said then counts, though it is said of the same one.
func TestDoubtThatWasResolvedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Store)
		var tries atomic.Int32
		body, b := dag.New[Tale]("body"), dag.New[Tale]("beside")
		dag.Step(body, "turn", func(ctx context.Context, _ *Tale) error {
			if tries.Load() == 1 && visitPath(ctx) == "loop/2/turn" {
				return heeds(ctx, time.Hour)
			}
			return nil
		})
		pay := dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
			tries.Add(1)
			receipt, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, _ int) (string, error) {
				return "", errors.Join(heeds(ctx, time.Minute), errDoubtReset)
			})
			s.Word.Set(receipt)
			if tries.Load() == 1 {
				return nil
			}
			return err
		})
		loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 2)
		dag.Step(b, "last", nothing[Tale], pay, loop)
		g := frozen(t, b)
		deaf := &deafStore{Store: store}
		ended := beginRun(t, process(t, g, deaf, dispatcher.Options{InterruptBefore: []string{"last"}}))
		lasts(2 * time.Minute)
		deaf.deaf.Store(true)
		d := process(t, g, store, dispatcher.Options{})
		if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.NotHappened("no trace")); err != nil {
			t.Fatal(err)
		}
		e := <-ended
		rests(t, e.res, e.err, checkpoint.StatusInterrupted, "last")
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
		if log := readLog(t, store); len(kinds(log, checkpoint.EffectEnded)) != 0 || len(kinds(log, checkpoint.Noted)) != 1 {
			t.Fatal("it was not too late")
		}

		if err := d.Rewind(t.Context(), run, "loop/1@1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand")); err != nil {
			t.Fatal(err)
		}
		unchanged(t, store, run, func() {
			if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("x")); !errors.Is(err, dispatcher.ErrNotInDoubt) {
				t.Errorf("resolved twice: %v", err)
			}
		})
		res, err = d.Resume(t.Context(), run)
		if completes(t, res, err); res.State.Word.Get() != "by hand" {
			t.Errorf("the state has %q", res.State.Word.Get())
		}
	})
}

// Who says what came of an effect while it begins anew is told so: what he says changes nothing any
// more, and he can say it again.
func TestResolveOfAnEffectThatBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		calls := 0
		b := dag.New[Tale]("anew")
		dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
			receipt, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) {
				calls++
				return "", errDoubtReset
			}, dag.Replayable)
			s.Word.Set(receipt)
			return err
		})
		g := frozen(t, b)
		d := process(t, g, &inner, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			if c.method == "Post" && c.n == 1 {
				res, err := d.Resume(t.Context(), run)
				rests(t, res, err, checkpoint.StatusFailed, "pay")
			}
			return nil
		}}
		by := process(t, g, store, dispatcher.Options{})
		err = by.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand"))
		if refused := (*dispatcher.ResolutionError)(nil); !errors.As(err, &refused) || !errors.Is(err, dispatcher.ErrNotInDoubt) {
			t.Errorf("Resolve = %v, want it to say that it changes nothing", err)
		}
		nothingIsPosted(t, &inner)
		if err := by.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand")); err != nil {
			t.Fatal(err)
		}
		res, err = d.Resume(t.Context(), run)
		if completes(t, res, err); res.State.Word.Get() != "by hand" || calls != 2 {
			t.Errorf("the state has %q, and the effect was done %d times", res.State.Word.Get(), calls)
		}
	})
}

// Who says what came of an effect, and whose message comes while it is done again, in the one visit
// that is at work, is too late as well: what came of it now is what counts, and the log can be
// read.
func TestResolveOfAnEffectThatIsDoneAgain(t *testing.T) {
	for name, fails := range map[string]bool{"well": false, "in doubt again": true} {
		t.Run(name, func(t *testing.T) {
			var inner memory.Store
			calls, in, hold := 0, make(chan struct{}), make(chan struct{})
			b := dag.New[Tale]("anew")
			dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
				receipt, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) {
					if calls++; calls == 2 {
						close(in)
						<-hold
					}
					if calls == 1 || calls == 2 && fails {
						return "", errDoubtReset
					}
					return "receipt", nil
				}, dag.Replayable)
				s.Word.Set(receipt)
				return err
			})
			g := frozen(t, b)
			d := process(t, g, &inner, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusFailed, "pay")
			resumed := make(chan error, 1)
			store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
				if c.method == "Post" && c.n == 1 {
					go func() {
						_, err := d.Resume(t.Context(), run)
						resumed <- err
					}()
					<-in
				}
				return nil
			}}
			said := process(t, g, store, dispatcher.Options{}).Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand"))
			close(hold)
			if err := <-resumed; (err != nil) != fails {
				t.Errorf("Resume = %v", err)
			}
			at, err := process(t, g, &inner, dispatcher.Options{}).State(t.Context(), run)
			if err != nil {
				t.Fatalf("the log can't be read: %v; Resolve was %v", err, said)
			}
			want := "receipt"
			if fails {
				want = ""
			}
			if at.State.Word.Get() != want {
				t.Errorf("the state has %q, want %q", at.State.Word.Get(), want)
			}
			nothingIsPosted(t, &inner)
			sameMachine(t, d, run)
		})
	}
}

// With Manual a call looks for doubts behind what was said of them: in a message that waits, and by
// the call itself.
func TestManualLooksBehindWhatWasPosted(t *testing.T) {
	for name, doubt := range map[string]dag.Doubt{"asks": dag.DoubtAsks, "fails": dag.DoubtFails} {
		for _, repeats := range []bool{false, true} {
			if repeats && doubt == dag.DoubtFails { // nothing asks
				continue
			}
			t.Run(fmt.Sprintf("%s, repeats: %t", name, repeats), func(t *testing.T) {
				var store memory.Store
				b := dag.New[Tale]("manual")
				dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
					receipt, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) {
						return "", errDoubtReset
					}, dag.InDoubt(doubt))
					s.Word.Set(receipt)
					return err
				})
				g := frozen(t, b)
				other := process(t, g, &store, dispatcher.Options{})
				id, word := "", dispatcher.Happened("by hand")
				var o dispatcher.Options
				o.Hooks.OnEnd = func(ctx context.Context, _ dispatcher.End) error {
					if doubt == dag.DoubtFails {
						return other.Resolve(ctx, run, "pay", "charge", word)
					}
					at, err := other.State(ctx, run)
					if err != nil {
						return err
					}
					id = at.Interrupts[0].ID
					return other.Answer(ctx, run, id, word)
				}
				if res, err := process(t, g, &store, o).Run(t.Context(), run, nil); err == nil {
					t.Fatalf("the run is %s", res.Status)
				}
				if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) != 1 {
					t.Fatalf("posted are %+v, %v; want what was said", posts, err)
				}
				options := []dispatcher.RunOption{dispatcher.Manual()}
				if repeats {
					options = append(options, dispatcher.Answering(id, word))
				}
				res, err := other.Resume(t.Context(), run, options...)
				if completes(t, res, err); res.State.Word.Get() != "by hand" {
					t.Errorf("the state has %q", res.State.Word.Get())
				}
				sameMachine(t, other, run)
			})
		}
	}
}

// Who says what came of an effect, and whose message comes when the visit has left another one in
// doubt, of another turn or of the run as it goes on from an earlier checkpoint, has said nothing
// of that: also where the clock shows one instant for both.
func TestResolveOfADoubtThatIsPast(t *testing.T) {
	for name, anew := range map[string]func(*testing.T, *dispatcher.Dispatcher[Tale]){
		"next turn": func(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
			res, err := d.Resume(t.Context(), run)
			completes(t, res, err)
			res, err = d.Turn(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "wait")
		},
		"rewound": func(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
			if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.NotHappened("no such charge")); err != nil {
				t.Fatal(err)
			}
			if err := d.Rewind(t.Context(), run, "0", dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "wait")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var inner memory.Store
				side := doubtSide{fails: 2, mute: true}
				b := dag.New[Tale]("past")
				dag.Step(b, "pay", side.pay())
				dag.Step(b, "wait", func(context.Context, *Tale) error { return nil })
				g, o := frozen(t, b), dispatcher.Options{InterruptBefore: []string{"wait"}}
				d := process(t, g, &inner, o)
				res, err := d.Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "wait")
				by := process(t, g, &tampered{Store: &inner, before: func(_ context.Context, c call) error {
					if c.method == "Post" && c.n == 1 {
						anew(t, d)
					}
					return nil
				}}, o)
				if err := by.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand")); !errors.Is(err, dispatcher.ErrNotInDoubt) {
					t.Errorf("Resolve = %v, want it to say that it changes nothing", err)
				}
				if e := doubtOpened(t, d).Effects[0]; !e.InDoubt || side.calls != 2 {
					t.Errorf("behind %d calls it is %s", side.calls, e)
				}
				nothingIsPosted(t, &inner)
				sameMachine(t, d, run)
			})
		})
	}
}

// An attempt that has timed out, and left an effect in doubt by that, is one, also if the run is
// cancelled before anybody looks at it.
func TestDoubtByATimeoutBeforeACancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := process(t, effectNode(t, func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			cancel()
			return err
		}, dag.Policy{Timeout: time.Second}), new(memory.Store), dispatcher.Options{})
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusCancelled, "pay")
		if len(res.Failures) != 1 || res.Failures[0].Kind != dag.FailedInDoubt || res.Failures[0].Attempts != 1 {
			t.Errorf("what has failed is %+v", res.Failures)
		}
		sameMachine(t, d, run)
	})
}
