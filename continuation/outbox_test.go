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

// What is added to the log of a run while its follow-up is brought takes nothing from what came of
// that: it is brought once, and what fails is tried as often, and when, the Options say.
func TestADeliveryBesideOtherEntries(t *testing.T) {
	for name, adds := range map[string]func(context.Context, *process) error{
		"a note":        func(ctx context.Context, p *process) error { return p.d.Note(ctx, run, "mail.sent", len(p.kinds(run))) },
		"a tag":         func(ctx context.Context, p *process) error { return p.d.Tag(ctx, run, "", "sent") },
		"several notes": severalNotes,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p *process
				fails := true
				man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
					if err := adds(t.Context(), p); err != nil {
						t.Error(err)
					}
					if fails {
						return "", errWeather
					}
					return continuation.Delivered, nil
				}}
				p = finished(t, freshStore(), continuation.Options{Deliverer: &man, Redeliver: time.Hour})
				for range 10 {
					p.delivers(continuation.DeliveryPending)
					lasts(time.Minute)
				}
				p.follows(continuation.FollowUp{Status: continuation.DeliveryPending, Tries: 1, Error: errWeather.Error()})
				fails = false
				for range 5 {
					lasts(time.Hour)
					p.delivers(continuation.Delivered)
				}
				if len(man.keys) != 2 {
					t.Errorf("one try failed, and one succeeded: it was tried %d times", len(man.keys))
				}
			})
		})
	}
}

func severalNotes(ctx context.Context, p *process) error {
	var errs []error
	for n := range 5 {
		errs = append(errs, p.d.Note(ctx, run, "mail.sent", n))
	}
	return errors.Join(errs...)
}

// Of two who deliver at once, what one has brought stays brought, whoever of them is the first to
// note it; and each failure counts.
func TestTwoWhoDeliverAtOnce(t *testing.T) {
	delivered := func(continuation.Delivery) (continuation.DeliveryStatus, error) { return continuation.Delivered, nil }
	suppressed := func(continuation.Delivery) (continuation.DeliveryStatus, error) {
		return continuation.SuppressedReengaged, nil
	}
	fails := func(continuation.Delivery) (continuation.DeliveryStatus, error) { return "", errWeather }
	for name, c := range map[string]struct {
		first, then func(continuation.Delivery) (continuation.DeliveryStatus, error)
		tries       int // that each of them may fail
		want        continuation.FollowUp
	}{
		"a success behind a failure":              {fails, delivered, 3, continuation.FollowUp{Status: continuation.Delivered, Tries: 1}},
		"a success behind the last failure":       {fails, delivered, 1, continuation.FollowUp{Status: continuation.Delivered, Tries: 1}},
		"suppressed behind a failure":             {fails, suppressed, 3, continuation.FollowUp{Status: continuation.SuppressedReengaged, Tries: 1}},
		"a failure behind a success":              {delivered, fails, 3, continuation.FollowUp{Status: continuation.Delivered}},
		"a success behind one that is suppressed": {suppressed, delivered, 3, continuation.FollowUp{Status: continuation.SuppressedReengaged}},
		"two failures":                            {fails, fails, 3, continuation.FollowUp{Status: continuation.DeliveryPending, Tries: 2, Error: errWeather.Error()}},
		"two failures, which are enough":          {fails, fails, 2, continuation.FollowUp{Status: continuation.DeliveryFailed, Tries: 2, Error: errWeather.Error()}},
		"a failure behind the last one":           {fails, fails, 1, continuation.FollowUp{Status: continuation.DeliveryFailed, Tries: 1, Error: errWeather.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			store := freshStore()
			var q *process
			o := continuation.Options{Deliveries: c.tries}
			o.Deliverer = &postman{do: func(d continuation.Delivery) (continuation.DeliveryStatus, error) {
				if _, err := q.rt.Deliver(t.Context()); err != nil { // somebody else, who is faster
					t.Error(err)
				}
				return c.then(d)
			}}
			p := finished(t, store, o)
			o.Deliverer = &postman{do: c.first}
			q = begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), store, o)
			if _, err := p.rt.Deliver(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.follows(c.want)
			q.follows(c.want)
		})
	}
}

// A delivery that fails is told with how often that was, whatever else happens to the run
// meanwhile; and it was the last one only if the log says so, or has nothing to say of that end any
// more.
func TestAFailedDeliveryIsToldAsTheLogHasIt(t *testing.T) {
	fails := func(continuation.Delivery) (continuation.DeliveryStatus, error) { return "", errWeather }
	for name, c := range map[string]struct {
		happens func(*testing.T, *process, *pawltest.Mortal)
		most    int // deliveries
		tries   int
		final   bool
	}{
		"nothing": {func(*testing.T, *process, *pawltest.Mortal) {}, 3, 1, false},
		"another one fails": {func(t *testing.T, p *process, _ *pawltest.Mortal) {
			other := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), p.store,
				continuation.Options{Deliverer: &postman{do: fails}})
			if _, err := other.rt.Deliver(t.Context()); err != nil {
				t.Error(err)
			}
		}, 3, 2, false},
		"the run is deleted": {func(t *testing.T, p *process, _ *pawltest.Mortal) {
			if err := p.store.Delete(t.Context(), run); err != nil {
				t.Error(err)
			}
		}, 3, 1, false},
		"the run has another turn": {func(t *testing.T, p *process, _ *pawltest.Mortal) {
			if _, err := p.d.Turn(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Error(err)
			}
		}, 3, 1, true},
		"the store fails": {func(_ *testing.T, _ *process, store *pawltest.Mortal) { store.Kill() }, 1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p *process
				store := &pawltest.Mortal{Store: &memory.Store{}}
				p = finished(t, store, continuation.Options{Deliveries: c.most, Deliverer: &postman{
					do: func(d continuation.Delivery) (continuation.DeliveryStatus, error) {
						c.happens(t, p, store)
						return fails(d)
					},
				}})
				ctx, stop := context.WithCancel(t.Context())
				var told *continuation.DeliveryError
				_ = p.rt.Serve(ctx, func(err error) {
					if errors.As(err, &told) {
						stop()
					}
				})
				if told.Tries != c.tries || told.Final != c.final || !errors.Is(told, errWeather) {
					t.Errorf("told %v (try %d, the last one: %t), want try %d, %t", told, told.Tries, told.Final, c.tries, c.final)
				}
			})
		})
	}
}

// A run that is brought back while its follow-up is on its way comes to another end, which is told
// for itself: what came of the one before says nothing of it.
func TestARunThatIsBroughtBackWhileItsEndIsTold(t *testing.T) {
	for name, comes := range map[string]error{"it is brought": nil, "it fails": errWeather} {
		t.Run(name, func(t *testing.T) {
			var p *process
			var ends []continuation.Reason
			fails := true
			man := postman{do: func(d continuation.Delivery) (continuation.DeliveryStatus, error) {
				if ends = append(ends, d.End.Reason); len(ends) > 1 {
					return continuation.Delivered, nil
				}
				fails = false
				if _, err := p.d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrInterrupted) {
					t.Error(err)
				}
				if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
					t.Error(err)
				}
				return continuation.Delivered, comes
			}}
			p = begin(t, beside(t, &fails), freshStore(), continuation.Options{Deliverer: &man})
			if _, err := p.d.Start(t.Context(), run, nil, dispatcher.Labels(continuation.Owed(nil))); !errors.Is(err, errWeather) {
				t.Fatal(err)
			}
			p.delivers(continuation.DeliveryPending)
			p.follows(continuation.FollowUp{Status: continuation.DeliveryPending})
			p.delivers(continuation.Delivered)
			if want := []continuation.Reason{continuation.RunFailed, continuation.Completed}; !slices.Equal(ends, want) {
				t.Errorf("the ends %q were told, want %q", ends, want)
			}
		})
	}
}

// Who has the lease for a moment keeps nothing from being noted. One who keeps it does, and Deliver
// says so.
func TestALeaseWhileADeliveryIsNoted(t *testing.T) {
	for name, c := range map[string]struct {
		keeps  time.Duration
		noted  bool
		status continuation.DeliveryStatus
	}{
		"for a moment":     {keeps: time.Second, noted: true, status: continuation.Delivered},
		"for half an hour": {keeps: 30 * time.Minute, status: continuation.DeliveryPending},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memory.Store{}
				p := finished(t, store, continuation.Options{Deliverer: &postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
					lease, err := store.Acquire(t.Context(), run, "somebody")
					if err != nil {
						t.Error(err)
					}
					time.AfterFunc(c.keeps, func() { _ = store.Release(t.Context(), lease) })
					return continuation.Delivered, nil
				}}})
				began := time.Now()
				_, err := p.rt.Deliver(t.Context())
				if noted := err == nil; noted != c.noted || !noted && !errors.Is(err, dispatcher.ErrBusy) || time.Since(began) > time.Minute {
					t.Errorf("delivered after %v: %v", time.Since(began), err)
				}
				p.follows(continuation.FollowUp{Status: c.status})
				lasts(time.Hour)
			})
		})
	}
}

// A run that is deleted while its end is told takes with it what came of that.
func TestARunThatIsDeletedWhileItsEndIsTold(t *testing.T) {
	store := &memory.Store{}
	p := finished(t, store, continuation.Options{Deliverer: &postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
		return continuation.Delivered, store.Delete(t.Context(), run)
	}}})
	if runs, err := p.rt.Deliver(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
		t.Errorf("delivered %q, %v", runs, err)
	}
}

// A run that is made anew under its id while the end of the one before is told has none itself yet:
// nothing of that is noted in it, however short it is, and what was told is no error.
func TestARunThatIsMadeAnewWhileItsEndIsTold(t *testing.T) {
	var p *process
	told := 0
	p = finished(t, &memory.Store{}, continuation.Options{Deliverer: &postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
		if told++; told == 1 {
			if err := p.store.Delete(t.Context(), run); err != nil {
				t.Error(err)
			}
			p.waits(run, dispatcher.Labels(continuation.Owed(nil)))
		}
		return continuation.Delivered, nil
	}}})
	if runs, err := p.rt.Deliver(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
		t.Errorf("delivered %q, %v", runs, err)
	}
	p.follows(continuation.FollowUp{Status: continuation.DeliveryPending})
	if _, err := p.rt.Trigger(t.Context(), reply("again", "hello")); err != nil {
		t.Error(err)
	}
	if runs, err := p.rt.Deliver(t.Context()); err != nil || !slices.Equal(runs, []string{run}) || told != 2 {
		t.Errorf("delivered %q, %v: told %d ends", runs, err, told)
	}
	p.delivers(continuation.Delivered)
}

// What was brought when Serve is told to end was brought, and is noted before Serve returns; what
// failed is told. Only a delivery that was given up since Serve is to end is no try.
func TestDeliveriesWhileServeEnds(t *testing.T) {
	for name, c := range map[string]struct {
		comes func(context.Context) error
		want  continuation.FollowUp
		told  error
	}{
		"it is brought": {func(context.Context) error { return nil }, continuation.FollowUp{Status: continuation.Delivered}, nil},
		"it fails": {func(context.Context) error { return errWeather },
			continuation.FollowUp{Status: continuation.DeliveryFailed, Tries: 1, Error: errWeather.Error()}, errWeather},
		"it is given up":             {func(ctx context.Context) error { return ctx.Err() }, continuation.FollowUp{Status: continuation.DeliveryPending}, nil},
		"it is given up for a cause": {context.Cause, continuation.FollowUp{Status: continuation.DeliveryPending}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			over := errors.New("the service ends")
			ctx, end := context.WithCancelCause(t.Context())
			man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
				end(over)
				return continuation.Delivered, c.comes(ctx)
			}}
			p := finished(t, freshStore(), continuation.Options{Deliverer: &man, Deliveries: 1})
			var told []error
			if err := p.rt.Serve(ctx, func(err error) { told = append(told, err) }); !errors.Is(err, over) {
				t.Errorf("Serve returned %v", err)
			}
			p.follows(c.want)
			if c.told == nil && len(told) > 0 || c.told != nil && (len(told) != 1 || !errors.Is(told[0], c.told)) {
				t.Errorf("Serve has told %v, want %v", told, c.told)
			}
		})
	}
}

// A store that hangs keeps Serve, which is to end, not for ever; and what was not noted is told.
func TestAStoreThatHangsWhileServeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		p := finished(t, &hanging{Store: &memory.Store{}, over: ctx}, continuation.Options{Deliverer: &postman{
			do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
				end()
				return continuation.Delivered, nil
			},
		}})
		var told []error
		began := time.Now()
		if err := p.rt.Serve(ctx, func(err error) { told = append(told, err) }); !errors.Is(err, context.Canceled) {
			t.Errorf("Serve returned %v", err)
		}
		if took := time.Since(began); len(told) != 1 || took > time.Minute {
			t.Errorf("after %v Serve has told %v", took, told)
		}
	})
}

// A hanging store takes no more leases when a context is over.
type hanging struct {
	checkpoint.Store
	over context.Context
}

var errHangs = errors.New("the store has not answered in time")

func (s *hanging) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if s.over.Err() != nil {
		<-ctx.Done()
		return checkpoint.Lease{}, errHangs
	}
	return s.Store.Acquire(ctx, run, owner)
}
