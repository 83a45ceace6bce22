package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/internal/lapse"
)

// term is how long leases last in these tests, if nobody renews them.
const term = 3 * time.Second

var errNoNetwork = errors.New("no network")

// A reach is a store whose leases have an end, as one process sees it.
type reach struct {
	*lapse.Store
	before func(ctx context.Context, method string) error // as that of tampered

	mu    sync.Mutex
	calls []string // the methods, but for those that only read
}

// shared returns a store whose leases have an end.
func shared() *lapse.Store {
	s := lapse.New(new(memory.Faulty))
	s.Term = term
	return s
}

func (s *reach) enter(ctx context.Context, method string) error {
	s.mu.Lock()
	s.calls = append(s.calls, method)
	s.mu.Unlock()
	if s.before == nil {
		return nil
	}
	return s.before(ctx, method)
}

// made returns the calls since the last time it was asked.
func (s *reach) made() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *reach) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if err := s.enter(ctx, "Acquire"); err != nil {
		return checkpoint.Lease{}, err
	}
	return s.Store.Acquire(ctx, run, owner)
}

func (s *reach) Renew(ctx context.Context, l checkpoint.Lease) (checkpoint.Lease, error) {
	if err := s.enter(ctx, "Renew"); err != nil {
		return checkpoint.Lease{}, err
	}
	return s.Store.Renew(ctx, l)
}

func (s *reach) Release(ctx context.Context, l checkpoint.Lease) error {
	if err := s.enter(ctx, "Release"); err != nil {
		return err
	}
	return s.Store.Release(ctx, l)
}

func (s *reach) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	if err := s.enter(ctx, "Append"); err != nil {
		return checkpoint.Head{}, err
	}
	return s.Store.Append(ctx, l, after, entries)
}

// worker is a process with a graph of two nodes, the first of which works.
func worker(t *testing.T, w *witness, store checkpoint.Store, o dispatcher.Options, work part) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	b := dag.New[Tale]("work")
	works := dag.Step(b, "works", w.sees(work))
	dag.Step(b, "then", w.sees(nil), works)
	return process(t, frozen(t, b), store, o)
}

// fenced checks what a call returned whose lease is lost.
func fenced(t *testing.T, res *dispatcher.Result[Tale], err error) {
	t.Helper()
	if !errors.Is(err, checkpoint.ErrFenced) || errors.Is(err, dispatcher.ErrStuck) {
		t.Errorf("the call returned %v, want ErrFenced", err)
	}
	var rest *dispatcher.Rest
	if errors.As(err, &rest) {
		t.Errorf("the call says that the run rests as %s", rest.Status)
	}
	if res == nil || res.Status != checkpoint.StatusRunning {
		t.Errorf("the result is %+v, want that of a run that is running", res)
	}
}

// A node may take many times as long as the lease lasts: nobody else gets the run meanwhile, and it
// is run once.
func TestLeaseIsRenewedWhileANodeRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		s := shared()
		first := worker(t, &w, &reach{Store: s}, dispatcher.Options{}, func(ctx context.Context, _ *Tale) error { return heeds(ctx, 10*term) })
		other := worker(t, &w, &reach{Store: s}, dispatcher.Options{}, nil)
		meanwhile(t, 7*term, func() {
			if _, err := other.Run(context.Background(), run, nil); !errors.Is(err, dispatcher.ErrBusy) {
				t.Errorf("another process is told %v, want ErrBusy", err)
			}
		})
		res, err := first.Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "works", "then")
		if info, err := s.Stat(t.Context(), run); err != nil || info.Epoch != 1 || info.Owner != "" {
			t.Errorf("the run is %q's at epoch %d, %v, want nobody's at 1", info.Owner, info.Epoch, err)
		}
	})
}

// A process that was stopped for longer than its lease lasts, while another one has taken the run
// over, commits nothing when it goes on: its nodes see that the lease is lost within a second, and
// the call returns so. The run ends as it would have without the first process.
func TestTakenOverRunIsLeftToWhoHasIt(t *testing.T) {
	for _, how := range []string{"heeds", "succeeds", "ignores"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { takeOver(t, how) })
		})
	}
}

func takeOver(t *testing.T, how string) {
	var mine, theirs witness
	s := shared()
	near := &reach{Store: s}
	const in = time.Second / 2 // the takeover
	begun := time.Now()
	first := worker(t, &mine, near, dispatcher.Options{Grace: time.Second}, func(ctx context.Context, v *Tale) error {
		v.Word.Set("late")
		<-ctx.Done()
		if took := time.Since(begun) - in; took > time.Second {
			t.Errorf("the node is told %v behind the takeover", took)
		}
		if cause := context.Cause(ctx); !errors.Is(cause, checkpoint.ErrFenced) {
			t.Errorf("the node is told %v, want ErrFenced", cause)
		}
		switch how {
		case "heeds":
			return ctx.Err()
		case "ignores":
			lasts(time.Hour)
		}
		return nil
	})
	next := worker(t, &theirs, &reach{Store: s}, dispatcher.Options{}, nil)
	meanwhile(t, in, func() {
		s.End(run) // the first one has slept
		near.made()
		res, err := next.Run(context.Background(), run, nil)
		completes(t, res, err)
	})
	res, err := first.Run(t.Context(), run, nil)
	fenced(t, res, err)
	if took := time.Since(begun); took > term/3+time.Second {
		t.Errorf("the call returned behind %v, want at the next renewal and within Grace", took)
	}
	if want := how == "ignores"; want != slices.Contains(res.Abandoned, "works") {
		t.Errorf("abandoned: %q", res.Abandoned)
	}
	if how == "ignores" {
		lasts(2 * time.Hour)
	}
	if calls := near.made(); !slices.Equal(calls, []string{"Renew"}) {
		t.Errorf("the first process has called %q behind the takeover, want the renewal alone", calls)
	}
	mine.expect(t, "works")
	theirs.expect(t, "works", "then")
	got, err := next.State(t.Context(), run)
	if err != nil || got.Status != checkpoint.StatusCompleted || got.State.Word.Get() != "" {
		t.Fatalf("the run is %+v, %v", got, err)
	}
	says(t, got.State, "works", "then")
}

// An append that the store refuses since somebody has taken the run over is the end of the call as
// well, before a renewal has said so; the lease is not given back, and the run is nobody's to
// amend.
func TestRefusedAppendIsTheEndOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		s := shared()
		near := &reach{Store: s}
		first := worker(t, &w, near, dispatcher.Options{}, func(context.Context, *Tale) error {
			s.End(run)
			if _, err := s.Acquire(t.Context(), run, "somebody"); err != nil {
				t.Error(err)
			}
			near.made()
			return nil
		})
		res, err := first.Run(t.Context(), run, nil)
		fenced(t, res, err)
		if calls := near.made(); !slices.Equal(calls, []string{"Append"}) {
			t.Errorf("it has called %q behind the takeover, want the append that was refused", calls)
		}
		if info, err := s.Stat(t.Context(), run); err != nil || info.Owner != "somebody" || info.Head.Seq != 1 && info.Head.Seq != 2 {
			t.Errorf("the run is %+v, %v, want it as it was", info, err)
		}
	})
}

// Who has lost a run and then trims it, deletes it, cancels it or gives it back, changes nothing of
// what its next owner has.
func TestLoserChangesNothingOfTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		s := shared()
		var old checkpoint.Lease
		first := worker(t, &w, s, dispatcher.Options{}, func(ctx context.Context, _ *Tale) error { <-ctx.Done(); return nil })
		next := worker(t, &w, s, dispatcher.Options{}, func(ctx context.Context, _ *Tale) error { return heeds(ctx, 5*term) })
		info := func() checkpoint.Info {
			info, err := s.Stat(context.Background(), run)
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		meanwhile(t, time.Second/2, func() {
			had := info()
			old = checkpoint.Lease{Run: run, Epoch: had.Epoch, Owner: had.Owner}
			s.End(run)
			res, err := next.Run(context.Background(), run, nil)
			completes(t, res, err)
		})
		res, err := first.Run(t.Context(), run, nil)
		fenced(t, res, err)
		before := info()
		if before.Epoch != old.Epoch+1 || before.Owner == "" {
			t.Fatalf("the run is %+v, want the next one's", before)
		}
		if _, err := first.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrBusy) {
			t.Errorf("Run = %v, want ErrBusy", err)
		}
		if err := first.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); !errors.Is(err, dispatcher.ErrBusy) {
			t.Errorf("Trim = %v, want ErrBusy", err)
		}
		if err := s.Delete(t.Context(), run); !errors.Is(err, checkpoint.ErrBusy) {
			t.Errorf("Delete = %v, want ErrBusy", err)
		}
		if err := s.Release(t.Context(), old); err != nil {
			t.Errorf("Release = %v", err)
		}
		if after := info(); after.Head != before.Head || after.Epoch != before.Epoch || after.Owner != before.Owner || after.First != before.First {
			t.Errorf("the run is %+v, want %+v", after, before)
		}
	})
}

// Renewals that fail once or twice are no takeover: the lease is there, and the run goes on.
func TestFailedRenewalsAreNoTakeover(t *testing.T) {
	for _, fail := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			s, n := shared(), 0
			near := &reach{Store: s, before: func(_ context.Context, method string) error {
				if method == "Renew" {
					if n++; n%(fail+1) > 0 {
						return errNoNetwork
					}
				}
				return nil
			}}
			d := worker(t, &w, near, dispatcher.Options{}, func(ctx context.Context, _ *Tale) error { return heeds(ctx, 10*term) })
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			w.expect(t, "works", "then")
			if info, err := s.Stat(t.Context(), run); err != nil || info.Epoch != 1 {
				t.Errorf("epoch %d, %v, want 1", info.Epoch, err)
			}
		})
	}
}

// A process that can't renew its lease gives up before that ends, whether the store fails or hangs
// for good: its nodes are told, and its call returns. Who takes the run behind that finds it as it
// was.
func TestLeaseThatCantBeRenewedIsGivenUpBeforeItEnds(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var mine, theirs witness
			s, end := shared(), make(chan struct{})
			near := &reach{Store: s, before: func(_ context.Context, method string) error {
				if method != "Renew" {
					return nil
				}
				if hangs {
					<-end
				}
				return errNoNetwork
			}}
			begun := time.Now()
			d := worker(t, &mine, near, dispatcher.Options{Grace: time.Second}, func(ctx context.Context, _ *Tale) error {
				<-ctx.Done()
				if took := time.Since(begun); took >= term {
					t.Errorf("the node is told behind %v, when others may have the run", took)
				}
				return nil
			})
			res, err := d.Run(t.Context(), run, nil)
			fenced(t, res, err)
			if took := time.Since(begun); took > term+time.Second/2 || !hangs && took >= term {
				t.Errorf("the call returned behind %v", took)
			}
			if hangs != slices.Contains(res.Abandoned, "renewing the lease in the store") || !hangs && !errors.Is(err, errNoNetwork) {
				t.Errorf("the call returned %v, and has abandoned %q", err, res.Abandoned)
			}
			if calls := near.made(); slices.Contains(calls[1:], "Release") {
				t.Errorf("it has given the lease back: %q", calls)
			}
			lasts(term)
			next := worker(t, &theirs, s, dispatcher.Options{}, nil)
			res, err = next.Run(t.Context(), run, nil)
			completes(t, res, err)
			says(t, res.State, "works", "then")
			mine.expect(t, "works")
			theirs.expect(t, "works", "then")
			close(end)
		})
	}
}

// A node that was abandoned holds its run until it returns, however long that takes: nobody else
// runs it beside.
func TestAbandonedNodeKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		s := shared()
		first := worker(t, &w, s, dispatcher.Options{Grace: time.Second}, func(context.Context, *Tale) error { lasts(5 * term); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := first.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "works")
		next := worker(t, &w, s, dispatcher.Options{}, nil)
		lasts(3 * term)
		if _, err := next.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrBusy) {
			t.Errorf("another process is told %v, want ErrBusy", err)
		}
		lasts(2 * term)
		res, err = next.Run(t.Context(), run, nil)
		completes(t, res, err)
	})
}

// Who says something of a run keeps its lease for as long as that takes, as behind a long log. If
// it is lost meanwhile he has said nothing: a note is posted to whoever has the run.
func TestAmendmentOutlivesItsLease(t *testing.T) {
	for what, amend := range map[string]func(context.Context, *dispatcher.Dispatcher[Tale]) error{
		"Note": func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			return d.Note(ctx, run, "test.note", "said")
		},
		"Trim": func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			return d.Trim(ctx, run, dispatcher.Retention{Last: 1})
		},
	} {
		for _, taken := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w witness
					s := shared()
					res, err := worker(t, &w, s, dispatcher.Options{}, nil).Run(t.Context(), run, nil)
					completes(t, res, err)
					near := &reach{Store: s}
					d := worker(t, &w, near, dispatcher.Options{}, nil)
					before := headOf(t, s)
					slow := true
					s.FailRead = func(ctx context.Context, method, _ string) error {
						if method != "Read" || !slow {
							return nil
						}
						slow = false
						if taken {
							s.End(run)
							if _, err := s.Acquire(context.Background(), run, "somebody"); err != nil {
								t.Error(err)
							}
						}
						return heeds(ctx, 4*term)
					}
					err = amend(t.Context(), d)
					if !taken {
						if err != nil {
							t.Errorf("it is refused: %v", err)
						}
						return
					}
					posts, perr := s.Posts(t.Context(), run)
					if posted := what == "Note" && err == nil && perr == nil && len(posts) == 1; !posted && !errors.Is(err, checkpoint.ErrFenced) {
						t.Errorf("it returned %v, want ErrFenced", err)
					}
					if calls := near.made(); slices.Contains(calls, "Release") || slices.Contains(calls, "Append") {
						t.Errorf("it has called %q", calls)
					}
					if after := headOf(t, s); after != before {
						t.Errorf("the run stands at %d, want %d", after, before)
					}
				})
			})
		}
	}
}

// headOf is where the run stands.
func headOf(t *testing.T, s checkpoint.Store) checkpoint.Head {
	t.Helper()
	info, err := s.Stat(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return info.Head
}
