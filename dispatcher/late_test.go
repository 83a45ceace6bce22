package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Without a store the context of a node is a child of the caller's as any other is, whatever it is
// first asked for: its cause is the caller's, its children end with it, and it ends with the call.
func TestLateContextIsAChild(t *testing.T) {
	t.Parallel()
	type key struct{}
	why := errors.New("why")
	for name, ask := range map[string]func(t *testing.T, ctx context.Context, cancel context.CancelCauseFunc){
		"Err": func(t *testing.T, ctx context.Context, cancel context.CancelCauseFunc) {
			if ctx.Err() != nil {
				t.Error("it is done")
			}
			cancel(why)
			if !errors.Is(ctx.Err(), context.Canceled) {
				t.Error("it is not done")
			}
		},
		"Done": func(t *testing.T, ctx context.Context, cancel context.CancelCauseFunc) {
			done := ctx.Done()
			cancel(why)
			<-done
			if !errors.Is(ctx.Err(), context.Canceled) || context.Cause(ctx) != why {
				t.Errorf("it is done with %v because of %v", ctx.Err(), context.Cause(ctx))
			}
		},
		"Cause": func(t *testing.T, ctx context.Context, cancel context.CancelCauseFunc) {
			cancel(why)
			if context.Cause(ctx) != why {
				t.Errorf("its cause is %v", context.Cause(ctx))
			}
		},
		"Value": func(t *testing.T, ctx context.Context, cancel context.CancelCauseFunc) {
			if ctx.Value(key{}) != "caller's" {
				t.Errorf("its value is %v", ctx.Value(key{}))
			}
			cancel(why)
			<-ctx.Done()
		},
		"child": func(t *testing.T, ctx context.Context, cancel context.CancelCauseFunc) {
			child, stop := context.WithTimeout(ctx, time.Hour)
			defer stop()
			cancel(why)
			<-child.Done()
			if context.Cause(child) != why {
				t.Errorf("the cause of its child is %v", context.Cause(child))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "caller's"))
			defer cancel(nil)
			ran := false
			g := chainOf(t, 1, func(ctx context.Context, _ int, _ *Tale) error {
				ran = true
				ask(t, ctx, cancel)
				return nil
			})
			d, err := dispatcher.New(g, nil, dispatcher.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Start(ctx, run, nil); err != nil || !ran {
				t.Errorf("the node ran: %t; %v", ran, err)
			}
		})
	}
}

// What a node leaves behind is told that the call has ended, whether it has asked before or asks
// later.
func TestLateContextEndsWithTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var early, late context.Context
		g := chainOf(t, 2, func(ctx context.Context, i int, _ *Tale) error {
			if i == 0 {
				early = ctx
				_ = ctx.Done()
				return nil
			}
			late = ctx
			return nil
		})
		d, err := dispatcher.New(g, nil, dispatcher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Start(t.Context(), run, nil); err != nil {
			t.Fatal(err)
		}
		for _, ctx := range []context.Context{early, late} {
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), context.Canceled) {
				t.Errorf("it ended with %v, %v", ctx.Err(), context.Cause(ctx))
			}
		}
	})
}

// A context that has ended says for ever why, also if the caller's ends later, or had ended before.
func TestLateContextEndsOnce(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"with the call": context.Canceled, "with the caller": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var left context.Context
				g := chainOf(t, 1, func(ctx context.Context, _ int, _ *Tale) error {
					left = ctx // and asks it for nothing
					if want == context.DeadlineExceeded {
						<-caller.Done()
					}
					return nil
				})
				d, err := dispatcher.New(g, nil, dispatcher.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.Start(caller, run, nil); err != nil {
					t.Fatal(err)
				}
				is := func(when string) {
					t.Helper()
					if err := left.Err(); err != want {
						t.Errorf("%s it has ended with %v, want %v", when, err, want)
					}
				}
				is("behind the call")
				<-caller.Done()
				is("behind the caller's end")
				<-left.Done()
				is("once it was asked for its channel")
				if err := context.Cause(left); err != want {
					t.Errorf("its cause is %v, want %v", err, want)
				}
			})
		})
	}
}

// A nosyParent is a context of the user's own making, which looks at a child that leaves it.
type nosyParent struct {
	context.Context
	done  chan struct{}
	child context.Context
}

func (p *nosyParent) Done() <-chan struct{} { return p.done }

func (p *nosyParent) AfterFunc(func()) (stop func() bool) {
	return func() bool { return p.child.Err() != nil }
}

func TestLateContextEndsWithoutItsMutex(t *testing.T) {
	t.Parallel()
	caller := &nosyParent{Context: t.Context(), done: make(chan struct{})}
	g := chainOf(t, 1, func(ctx context.Context, _ int, _ *Tale) error {
		caller.child = ctx
		_ = ctx.Done()
		return nil
	})
	d, err := dispatcher.New(g, nil, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(caller, run, nil); err != nil || caller.child.Err() == nil {
		t.Errorf("the context of the node has ended: %t; %v", caller.child.Err() != nil, err)
	}
}

// A store that takes long to end a lease is waited for as long as Options.Grace: the context that
// it has then ends, whatever it is first asked for.
func TestAReleaseIsWaitedForUntilGrace(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, ctx context.Context){
		"Done": func(_ *testing.T, ctx context.Context) { <-ctx.Done() },
		"child": func(_ *testing.T, ctx context.Context) {
			child, stop := context.WithTimeout(ctx, time.Hour)
			defer stop()
			<-child.Done()
		},
		"Err": func(t *testing.T, ctx context.Context) {
			if ctx.Err() != nil {
				t.Error("it is done")
			}
			until, ok := ctx.Deadline()
			if !ok {
				t.Error("it has no deadline")
			}
			<-time.NewTimer(time.Until(until)).C // of the time of the bubble
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &slowRelease{Store: new(memory.Store)}
				d, question := asks(t, store)
				store.ask = func(ctx context.Context) { ask(t, ctx); store.err = ctx.Err() }
				began := time.Now()
				if err := d.Answer(t.Context(), run, question, true); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != time.Second {
					t.Errorf("it took %v, want a second", took)
				}
				if store.err != context.DeadlineExceeded {
					t.Errorf("its context has ended with %v", store.err)
				}
			})
		})
	}
}

// asks has a run ask, with a second of grace, and returns the id of its question.
func asks(t *testing.T, store checkpoint.Store) (d *dispatcher.Dispatcher[Tale], question string) {
	t.Helper()
	b := dag.New[Tale]("question")
	dag.Step(b, "ask", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[bool](ctx, "sure", "Shall I go on?")
		return err
	})
	d = process(t, frozen(t, b), store, dispatcher.Options{Grace: time.Second})
	r, err := d.Start(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	return d, r.Interrupts[0].ID
}

// A slowRelease ends leases when ask has returned.
type slowRelease struct {
	checkpoint.Store
	ask func(context.Context)
	err error
}

func (s *slowRelease) Release(ctx context.Context, l checkpoint.Lease) error {
	if s.ask != nil {
		s.ask(ctx)
	}
	return s.Store.Release(context.WithoutCancel(ctx), l)
}

// What a store does with the context of a release behind that finds it ended.
func TestTheContextOfAReleaseEndsWithIt(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]func(context.Context) bool{
		"Err":  func(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) },
		"Done": func(ctx context.Context) bool { <-ctx.Done(); return errors.Is(ctx.Err(), context.Canceled) },
		"child": func(ctx context.Context) bool {
			child, stop := context.WithTimeout(ctx, time.Hour)
			defer stop()
			<-child.Done()
			return errors.Is(child.Err(), context.Canceled)
		},
	} {
		var kept context.Context
		store := &slowRelease{Store: new(memory.Store), ask: func(ctx context.Context) { kept = ctx }}
		b := dag.New[Tale]("tale")
		dag.Step(b, "only", func(context.Context, *Tale) error { return nil })
		if _, err := process(t, frozen(t, b), store, dispatcher.Options{Grace: time.Hour}).Start(t.Context(), run, nil); err != nil {
			t.Fatal(err)
		}
		if !ended(kept) {
			t.Errorf("%s: it goes on", name)
		}
	}
}

// It says for ever why it has ended, whatever it is asked behind that, and when.
func TestTheContextOfAReleaseEndsOnce(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"with the release": context.Canceled, "with the grace period": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept context.Context
				grace := func() { <-time.NewTimer(time.Minute).C } // of the time of the bubble
				store := &slowRelease{Store: new(memory.Store), ask: func(ctx context.Context) {
					if kept = ctx; want == context.DeadlineExceeded {
						grace()
					}
				}}
				d, question := asks(t, store)
				if err := d.Answer(t.Context(), run, question, true); err != nil {
					t.Error(err)
				}
				for range 2 {
					if err := kept.Err(); err != want {
						t.Errorf("it has ended with %v, want %v", err, want)
					}
					grace()
				}
				if <-kept.Done(); kept.Err() != want || context.Cause(kept) != want {
					t.Errorf("asked for its channel it has ended with %v, because of %v", kept.Err(), context.Cause(kept))
				}
			})
		})
	}
}
