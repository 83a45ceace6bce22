package continuation_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// hurt is a process of three runs that wait, "a" the oldest, of which "b" is too damaged to be
// listed.
func hurt(t *testing.T, w continuation.Wait, o continuation.Options) *process {
	t.Helper()
	store := &memory.Faulty{}
	p := begin(t, waiting(t, w, dag.Policy{}, timed), store, o)
	for _, id := range []string{"a", "b", "c"} {
		p.waits(id, dispatcher.Labels(continuation.Owed(nil)))
	}
	store.Spoil("b", checkpoint.PartInfo)
	return p
}

// namesDamage checks that an error says which run is damaged.
func namesDamage(t *testing.T, err error) {
	t.Helper()
	var damaged *checkpoint.CorruptError
	if !errors.As(err, &damaged) || damaged.Run != "b" {
		t.Errorf("the error is %v, want that run b is damaged", err)
	}
}

// around checks that a call came to the runs beside the damaged one, the oldest first, and told of
// it.
func around(t *testing.T, runs []string, err error) {
	t.Helper()
	namesDamage(t, err)
	if !slices.Equal(runs, []string{"a", "c"}) {
		t.Errorf("it came to the runs %q, want a and c", runs)
	}
}

// A run that is too damaged to be listed keeps no other from being swept, older or newer.
func TestSweepGoesAroundADamagedRun(t *testing.T) {
	var jump atomic.Int64
	p := hurt(t, afterAnHour(), continuation.Options{Now: wall(&jump)})
	jump.Store(int64(time.Hour))
	runs, err := p.rt.Sweep(t.Context())
	around(t, runs, err)
	for _, id := range []string{"a", "c"} {
		p.stands(id, continuation.StatusResolved, continuation.Completed)
	}
}

// It keeps no other from being recovered, or its end from being told.
func TestRecoverAndDeliverGoAroundADamagedRun(t *testing.T) {
	man := &postman{}
	p := hurt(t, continuation.Wait{}, continuation.Options{Deliverer: man})
	for _, id := range []string{"a", "c"} {
		tr := reply("t-"+id, "hello")
		tr.Run, tr.LeaveIt = id, true
		if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := p.rt.Recover(t.Context())
	around(t, runs, err)
	runs, err = p.rt.Deliver(t.Context())
	around(t, runs, err)
	if told := man.told(); !slices.Equal(told, []string{"a", "c"}) {
		t.Errorf("it was told of the ends of %q", told)
	}
}

// Serve comes to the others in time, and tells of the damage.
func TestServeGoesAroundADamagedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delivered := make(chan struct{})
		man := &postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
			delivered <- struct{}{}
			return continuation.Delivered, nil
		}}
		p := hurt(t, afterAnHour(), continuation.Options{Deliverer: man, Recheck: 24 * time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		var served sync.WaitGroup
		served.Go(func() {
			if err := p.rt.Serve(ctx, func(err error) { namesDamage(t, err) }); !errors.Is(err, context.Canceled) {
				t.Errorf("Serve returned %v", err)
			}
		})
		for range 2 {
			<-delivered
		}
		synctest.Wait() // until Serve has nothing to do
		for _, id := range []string{"a", "c"} {
			p.stands(id, continuation.StatusResolved, continuation.Completed)
			if said := p.said(id); !slices.Equal(said, []string{"on time"}) {
				t.Errorf("run %s says %q", id, said)
			}
		}
		if told := man.told(); !slices.Equal(told, []string{"a", "c"}) {
			t.Errorf("it was told of the ends of %q", told)
		}
		cancel()
		served.Wait()
	})
}

// The waits of the others are listed beside the error, and are found by their ids; what might be a
// wait of the damaged run is the error.
func TestWaitsAreFoundBesideADamagedRun(t *testing.T) {
	p := hurt(t, continuation.Wait{Key: "k"}, continuation.Options{})
	views, err := p.rt.List(t.Context(), continuation.Filter{})
	namesDamage(t, err)
	if len(views) != 2 || views[0].Run != "c" || views[1].Run != "a" {
		t.Fatalf("there are the waits %+v, want those of c and a", views)
	}
	if v, err := p.rt.Get(t.Context(), views[1].ID); err != nil || v.Run != "a" {
		t.Errorf("Get = %+v, %v, want the wait of a", v, err)
	}
	_, err = p.rt.Get(t.Context(), "another")
	namesDamage(t, err)

	tr := reply("t", "hello")
	tr.Run, tr.Key = "", "k"
	_, err = p.rt.Trigger(t.Context(), tr)
	namesDamage(t, err)
	tr.Key, tr.Wait = "", "another"
	_, err = p.rt.Trigger(t.Context(), tr)
	namesDamage(t, err)
	tr.Wait = views[1].ID
	if out, err := p.rt.Trigger(t.Context(), tr); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("a trigger for the wait of a: %+v, %v", out, err)
	}
}

// told are the runs of whose ends a postman was told.
func (m *postman) told() (runs []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range m.keys {
		run, _, _ := strings.Cut(key, "@")
		runs = append(runs, run)
	}
	return runs
}
