package main

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

// A bank that is too slow has done what it was asked for, and nobody was told: a charge is asked for
// again under its key, a transfer is in doubt.
func TestPaymentsOverASlowBank(t *testing.T) {
	t.Parallel()
	for operation, doubts := range map[bank.Operation]int{bank.Charge: 0, bank.Transfer: 1} {
		t.Run(string(operation), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
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
				t.Errorf("in doubt are %v, and the run returns %v", all, err)
			}
			p.toItsEnd(t)
			settled(t, w.bank.Load().Statement(), p.order, true)
		})
	}
}
