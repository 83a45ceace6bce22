package checkpoint_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/internal/lapse"
)

var errUnreachable = errors.New("unreachable")

// renewing has the store answer renewals as renew says, which is told how many there were before.
func renewing(renew func(ctx context.Context, n int) error) (*lapse.Store, *atomic.Int32) {
	n := new(atomic.Int32)
	s := lapse.New(new(memory.Faulty))
	s.FailRead = func(ctx context.Context, method, _ string) error {
		if method != "Renew" {
			return nil
		}
		return renew(ctx, int(n.Add(1))-1)
	}
	return s, n
}

// kept takes the lease of a run, and keeps it.
func kept(t *testing.T, s checkpoint.Store) (ctx context.Context, stop func(), l checkpoint.Lease) {
	t.Helper()
	asked := time.Now()
	l, err := s.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop = checkpoint.Keep(t.Context(), s, l, asked)
	return ctx, stop, l
}

// later waits for a time, and reports whether ctx is done by then.
func later(ctx context.Context, d time.Duration) (done bool) {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(d):
		return false
	}
}

// A lease that is kept is there however long that takes, and a third of its time is gone when it is
// renewed.
func TestKeptLeaseOutlivesItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := renewing(func(context.Context, int) error { return nil })
		ctx, stop, l := kept(t, s)
		if later(ctx, 10*lapse.Term+time.Second) {
			t.Errorf("it is lost: %v", context.Cause(ctx))
		}
		if n.Load() != 30 {
			t.Errorf("it was renewed %d times in ten terms, want thrice in each", n.Load())
		}
		if _, err := s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Noted}}); err != nil {
			t.Errorf("Append under the lease as it was given = %v", err)
		}
		stop()
		if ctx.Err() == nil {
			t.Error("the context is not done behind stop")
		}
		if later(context.Background(), lapse.Term); n.Load() != 30 {
			t.Error("it is renewed behind stop")
		}
	})
}

// A lease without an end costs nothing: the context is the caller's, and there is no goroutine.
func TestLeaseWithoutEndIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop, _ := kept(t, new(memory.Store))
		defer stop()
		if ctx != t.Context() {
			t.Error("the context is another one")
		}
		ended := checkpoint.KeepFunc(ctx, new(memory.Store), checkpoint.Lease{}, time.Now(), nil)()
		if ended != nil {
			t.Error("something was to end")
		}
		if n := testing.AllocsPerRun(100, func() { _, stop := checkpoint.Keep(ctx, nil, checkpoint.Lease{}, time.Time{}); stop() }); n > 0 {
			t.Errorf("it allocates %v times", n)
		}
	})
}

// A renewal that fails is made again, soon enough: nothing is lost by two of them.
func TestFailedRenewalIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := renewing(func(_ context.Context, n int) error {
			if n%3 < 2 {
				return errUnreachable
			}
			return nil
		})
		ctx, stop, _ := kept(t, s)
		defer stop()
		if later(ctx, 10*lapse.Term) {
			t.Fatalf("it is lost behind %d renewals: %v", n.Load(), context.Cause(ctx))
		}
	})
}

// A lease that can't be renewed is lost before it ends, whether the store fails, hangs until the
// context ends, or hangs for good; and the cause says why. Those who keep it are told before
// anybody else can have it.
func TestLeaseIsLostBeforeItEnds(t *testing.T) {
	for name, c := range map[string]struct {
		renew func(ctx context.Context, end <-chan struct{}) error
		cause error
	}{
		"fails":     {func(context.Context, <-chan struct{}) error { return errUnreachable }, errUnreachable},
		"hangs":     {func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() }, context.DeadlineExceeded},
		"is broken": {func(_ context.Context, end <-chan struct{}) error { <-end; return errUnreachable }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end, begun := make(chan struct{}), time.Now()
				s, n := renewing(func(ctx context.Context, _ int) error { return c.renew(ctx, end) })
				ctx, stop, l := kept(t, s)
				<-ctx.Done()
				left := time.Until(l.Until)
				if left != lapse.Term/6 {
					t.Errorf("%v are left of the lease, want a sixth", left)
				}
				if cause := context.Cause(ctx); !errors.Is(cause, checkpoint.ErrFenced) || c.cause != nil && !errors.Is(cause, c.cause) {
					t.Errorf("the cause is %v, want ErrFenced and %v", cause, c.cause)
				}
				if n.Load() < 3 && name != "is broken" || n.Load() > 20 {
					t.Errorf("it was tried %d times", n.Load())
				}
				if _, err := s.Acquire(t.Context(), "run", "another"); !errors.Is(err, checkpoint.ErrBusy) {
					t.Errorf("Acquire = %v, want ErrBusy: it has not ended", err)
				}
				t.Logf("lost behind %v and %d renewals: %v", time.Since(begun), n.Load(), context.Cause(ctx))
				begun = time.Now()
				stop()
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("stop took %v", took)
				}
				close(end)
			})
		})
	}
}

// So is one that was renewed before, and is not again: a sixth of its time is left when it is lost,
// counted from the last renewal, and that is told once, whatever the store says later.
func TestLeaseIsLostBeforeItEndsBehindARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		s, _ := renewing(func(_ context.Context, n int) error {
			if n == 0 {
				return nil
			}
			<-end
			return checkpoint.ErrFenced
		})
		asked := time.Now()
		l, err := s.Acquire(t.Context(), "run", "owner")
		if err != nil {
			t.Fatal(err)
		}
		var times []time.Duration
		stop := checkpoint.KeepFunc(t.Context(), s, l, asked, func(err error) {
			if times = append(times, time.Since(asked)); !errors.Is(err, checkpoint.ErrFenced) {
				t.Errorf("it is lost: %v", err)
			}
		})
		later(t.Context(), 2*lapse.Term)
		close(end)
		<-stop()
		synctest.Wait()
		if want := lapse.Term/3 + lapse.Term - lapse.Term/6; len(times) != 1 || times[0] != want {
			t.Errorf("it is told to be lost behind %v, want once, behind %v", times, want)
		}
	})
}

// What the store says of a lease is known at once, though its end has not come by the clock of its
// owner.
func TestFencedIsLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := renewing(func(context.Context, int) error { return nil })
		ctx, stop, _ := kept(t, s)
		defer stop()
		begun := time.Now()
		s.End("run")
		if _, err := s.Acquire(t.Context(), "run", "another"); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		if took := time.Since(begun); took != lapse.Term/3 || n.Load() != 1 {
			t.Errorf("it is lost behind %v and %d renewals, want the first one", took, n.Load())
		}
		if cause := context.Cause(ctx); !errors.Is(cause, checkpoint.ErrFenced) {
			t.Errorf("the cause is %v, want ErrFenced", cause)
		}
	})
}

// A slow store has a wider margin: who gives up a lease does so as long before its end as the store
// took to give it.
func TestMarginIsARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := renewing(func(context.Context, int) error { return errUnreachable })
		asked := time.Now()
		l, err := s.Acquire(t.Context(), "run", "owner")
		if err != nil {
			t.Fatal(err)
		}
		later(t.Context(), 10*time.Second) // until the answer is there
		ctx, stop := checkpoint.Keep(t.Context(), s, l, asked)
		defer stop()
		<-ctx.Done()
		if left := time.Until(l.Until); left != 10*time.Second {
			t.Errorf("%v are left of the lease, want what the store took", left)
		}
	})
}

// Nobody is told of a loss behind stop, and a renewal that hangs for good does not keep stop from
// returning.
func TestStopReturnsThoughARenewalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		s, n := renewing(func(context.Context, int) error { <-end; return nil })
		asked := time.Now()
		l, err := s.Acquire(t.Context(), "run", "owner")
		if err != nil {
			t.Fatal(err)
		}
		stop := checkpoint.KeepFunc(t.Context(), s, l, asked, func(err error) { t.Errorf("it is lost behind stop: %v", err) })
		later(t.Context(), lapse.Term/2)
		if n.Load() != 1 {
			t.Fatalf("there were %d renewals, want one that hangs", n.Load())
		}
		ended := stop()
		select {
		case <-ended:
			t.Error("the goroutine has ended though the store hangs")
		default:
		}
		later(t.Context(), 2*lapse.Term)
	})
}
