package continuation_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A lagging is slow to answer: something happens before its first answer.
type lagging struct {
	continuation.Runs
	meanwhile func()
}

func (l *lagging) Answer(ctx context.Context, run, interrupt string, value any, o ...dispatcher.RunOption) error {
	if f := l.meanwhile; f != nil {
		l.meanwhile = nil
		f()
	}
	return l.Runs.Answer(ctx, run, interrupt, value, o...)
}

// What somebody else decides while a sweep is about to approve it is decided so, be it gone on with
// or not: that is no error of the sweep, which approves what else of the run is safe.
func TestASweepThatIsNotTheFirst(t *testing.T) {
	for name, left := range map[string]bool{"which ended": false, "which was taken": true} {
		t.Run(name, func(t *testing.T) {
			b := dag.New[Talk]("talk")
			for _, key := range []string{"a", "b"} {
				w := continuation.Wait{Kind: continuation.KindApproval, Key: key, Authority: continuation.Anybody, SafeToAutoExecute: true}
				dag.Step(b, key, func(ctx context.Context, s *Talk) error {
					r, err := continuation.Await[string](ctx, "answer", w)
					if err == nil {
						s.Said.Append(key + " by " + r.Actor.ID)
					}
					return err
				})
			}
			p := talk(t, frozen(t, b))
			rt, err := continuation.New(&lagging{p.d, func() {
				tr := decide("t", continuation.Approved)
				tr.Key, tr.LeaveIt = "a", left
				if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
					t.Error(err)
				}
			}}, continuation.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if runs, err := rt.Sweep(t.Context()); err != nil || !slices.Equal(runs, []string{run}) { // for what it has approved
				t.Errorf("swept %q, %v", runs, err)
			}
			if got, want := p.said(run), []string{"a by ann", "b by continuation"}; !slices.Equal(got, want) {
				t.Errorf("approved is %q, want %q", got, want)
			}
		})
	}
}

// A run that has failed has come to its end: a wait of it that was resumed as often as it may be,
// and then could not use its trigger any more, is not one that a recovery leaves, and no error.
func TestRecoverLeavesNothingInARunThatHasFailed(t *testing.T) {
	store := &pawltest.Mortal{Store: &memory.Store{}}
	b := dag.New[Talk]("talk")
	first := dag.Step(b, "first", func(context.Context, *Talk) error { return nil })
	dag.Step(b, "dies", func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "k", MaxFailures: 1})
		if err == nil {
			store.Kill()
		}
		return err
	}, first)
	g := frozen(t, b)
	p := begin(t, g, store, continuation.Options{})
	p.waits(run)
	if _, err := p.rt.Trigger(t.Context(), reply2("t", "k")); !errors.Is(err, pawltest.ErrDead) {
		t.Fatalf("the trigger: %v", err)
	}
	if err := store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The next process lets no run end more supersteps than this one has.
	p = under(t, dispatcher.Options{Paranoid: true, Limits: dispatcher.Limits{Supersteps: 1}}, g, store, continuation.Options{})
	var enough *continuation.AttemptsError
	if runs, err := p.rt.Recover(t.Context()); !errors.As(err, &enough) || len(runs) > 0 {
		t.Fatalf("recovered %q, %v", runs, err)
	}
	if _, err := p.d.Resume(t.Context(), run); err == nil {
		t.Fatal("resumed, it ends more supersteps than it may")
	}
	if v := p.stands(run, continuation.StatusFailed, continuation.RunFailed); v.Lapses != 1 || v.Failures > 0 {
		t.Errorf("the wait has lapsed %d times and failed %d, want one lapse", v.Lapses, v.Failures)
	}
	p.unchanged(run, func() {
		if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("behind the end were recovered %q, %v", runs, err)
		}
	})
}

// A denial that can't cancel its run, since the store is full, does so later, and is not tried all
// the time.
func TestServeTriesACancelAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, appends := &memory.Faulty{}, 0
		p := begin(t, waiting(t, continuation.Wait{Kind: continuation.KindApproval}, dag.Policy{}, says), store, continuation.Options{})
		p.waits(run)
		store.Fail = func(_ context.Context, w memory.Write) memory.Fault {
			if w.Method == "Append" {
				if appends++; appends > 1 { // behind the denial
					return memory.Full
				}
			}
			return memory.None
		}
		if _, err := p.rt.Trigger(t.Context(), decide("t", continuation.Denied)); !errors.Is(err, checkpoint.ErrFull) {
			t.Fatalf("the trigger: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute+30*time.Second)
		defer cancel()
		told := 0
		if err := p.rt.Serve(ctx, func(err error) {
			if !errors.Is(err, checkpoint.ErrFull) {
				t.Errorf("told %v", err)
			}
			if told++; told > 100 {
				cancel()
			}
		}); !errors.Is(err, context.DeadlineExceeded) || told < 5 || told > 6 {
			t.Errorf("Serve has failed %d times in 4 minutes and a half, want one a minute: %v", told, err)
		}
		store.Fail = nil
		if _, err := p.rt.Recover(t.Context()); err != nil {
			t.Error(err)
		}
		p.stands(run, continuation.StatusCancelled, continuation.ApprovalDenied)
	})
}

// What was safe to approve, and is over before anybody has swept, keeps nothing else of the run
// from ending in its time.
func TestASweepBehindASafePartThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("talk")
		wait := func(name string, w continuation.Wait) {
			dag.Step(b, name, func(ctx context.Context, s *Talk) error {
				r, err := continuation.Await[string](ctx, "answer", w)
				if err == nil {
					s.Said.Append(name + ": " + r.Payload)
				}
				return err
			})
		}
		safe := continuation.Wait{Kind: continuation.KindApproval, Authority: continuation.Anybody, SafeToAutoExecute: true, Within: time.Hour}
		wait("a", continuation.Any(safe, continuation.Wait{Within: 3 * time.Hour}))
		wait("b", continuation.Wait{Within: 2 * time.Hour, OnExpire: continuation.Default("nobody")})
		p := begin(t, frozen(t, b), &memory.Store{}, continuation.Options{})
		p.waits(run)
		lasts(2 * time.Hour)
		if runs, err := p.rt.Sweep(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
			t.Errorf("swept %q, %v", runs, err)
		}
		if _, err := p.rt.Trigger(t.Context(), reply("t", "here")); err != nil {
			t.Error(err)
		}
		if got, want := p.said(run), []string{"a: here", "b: nobody"}; !slices.Equal(got, want) {
			t.Errorf("said is %q, want %q", got, want)
		}
	})
}

// A run that takes long keeps one Serve from the others, and not a second one.
func TestServeTwice(t *testing.T) {
	for serves, behind := range map[int]time.Duration{1: time.Hour, 2: 0} {
		synctest.Test(t, func(t *testing.T) {
			w := continuation.Wait{Kind: continuation.KindTimer, After: time.Minute}
			p := begin(t, waiting(t, w, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
				lasts(time.Hour)
				return nil
			}), &memory.Store{}, continuation.Options{})
			p.waits("long")
			lasts(time.Second)
			p.waits("other")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			for range serves {
				go func() { ended <- p.rt.Serve(ctx, nil) }()
			}
			lasts(behind + 90*time.Second)
			p.stands("long", map[int]continuation.Status{1: continuation.StatusResolved, 2: continuation.StatusClaimed}[serves],
				map[int]continuation.Reason{1: continuation.Completed}[serves])
			p.stands("other", continuation.StatusClaimed, "")
			lasts(2 * time.Hour)
			p.stands("other", continuation.StatusResolved, continuation.Completed)
			cancel()
			for range serves {
				<-ended
			}
		})
	}
}

// A refusing takes no answer to one interrupt.
type refusing struct {
	continuation.Runs
	interrupt string
}

func (r *refusing) Answer(ctx context.Context, run, interrupt string, value any, o ...dispatcher.RunOption) error {
	if interrupt == r.interrupt {
		return errWeather
	}
	return r.Runs.Answer(ctx, run, interrupt, value, o...)
}

// What is safe to approve, and can't be, keeps nothing else of its run from what is due: neither
// another approval, nor an expiry; nor, from a Serve, what has its trigger.
func TestASweepBesideAnApprovalThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("talk")
		wait := func(name string, w continuation.Wait, then behind) {
			dag.Step(b, name, func(ctx context.Context, s *Talk) error {
				r, err := continuation.Await[string](ctx, "answer", w)
				if err != nil {
					return err
				}
				return then(ctx, s, r)
			})
		}
		safe := continuation.Wait{Kind: continuation.KindApproval, Authority: continuation.Anybody, SafeToAutoExecute: true}
		wait("a", safe, says)
		wait("b", continuation.Wait{Within: 2 * time.Hour, OnExpire: continuation.Default("nobody")}, says)
		wait("c", continuation.Wait{Key: "c"}, func(ctx context.Context, _ *Talk, _ continuation.Reply[string]) error {
			_, err := continuation.Await[string](ctx, "then", safe)
			return err
		})
		p := talk(t, frozen(t, b))
		rt, err := continuation.New(&refusing{p.d, p.at("a").ID}, continuation.Options{})
		if err != nil {
			t.Fatal(err)
		}
		pends := func(paths ...string) {
			t.Helper()
			all, err := p.rt.List(t.Context(), continuation.Filter{Status: []continuation.Status{continuation.StatusPending}})
			var pending []string
			for _, v := range all {
				pending = append(pending, v.Path)
			}
			if slices.Sort(pending); err != nil || !slices.Equal(pending, paths) {
				t.Errorf("pending are %q, %v; want %q", pending, err, paths)
			}
		}
		pends("a", "b", "c")
		left := reply2("t", "c")
		left.LeaveIt = true
		if _, err := p.rt.Trigger(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		defer stop()
		var told error
		if err := rt.Serve(ctx, func(err error) { told = err }); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(told, errWeather) {
			t.Errorf("served: %v, told %v", err, told)
		}
		pends("a", "b")
		lasts(3 * time.Hour)
		if runs, err := rt.Sweep(t.Context()); !errors.Is(err, errWeather) || !slices.Equal(runs, []string{run}) {
			t.Errorf("swept %q, %v", runs, err)
		}
		pends("a")
	})
}
