package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

// direct is the way to a bank that is no network: nothing on it takes time but what the bank does.
type direct struct{ world *world }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.world.bank.Load().ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// A bank that is too slow has done what it was asked for, and nobody was told: a charge is asked
// for again under its key, a transfer is in doubt.
func TestPaymentsOverASlowBank(t *testing.T) {
	t.Parallel()
	for operation, doubts := range map[bank.Operation]int{bank.Charge: 0, bank.Transfer: 1} {
		synctest.Test(t, func(t *testing.T) {
			w := new(world)
			w.client = &bank.Client{URL: "http://bank", HTTP: &http.Client{Transport: direct{w}}}
			w.open(t, bank.Fault{Operation: operation, Kind: bank.Slow, Delay: time.Hour})
			g, err := newGraph(&Desk{w.client, 400 * time.Millisecond, time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			p := &clerk{world: w, store: dying(0, false), order: orderOf(small)}
			d, err := dispatcher.New(g, p.store, dispatcher.Options{Gates: gates()})
			if err != nil {
				t.Fatal(err)
			}
			_, err = d.Run(t.Context(), p.order.Number, func(s *Payment) { s.Order.Set(p.order) })
			if all := p.doubted(t, d); len(all) != doubts || errors.Is(err, dispatcher.ErrInterrupted) != (doubts > 0) {
				t.Errorf("%s: in doubt are %v, and the run returns %v", operation, all, err)
			}
			p.toItsEnd(t)
			settled(t, w.bank.Load().Statement(), p.order, true)
		})
	}
}
