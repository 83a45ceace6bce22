package main

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A fork of a payment asks what would have been, and moves no money: as it was it comes to the same
// end, and what it would ask the bank for besides is refused.
func TestPaymentsForksMoveNoMoney(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := &clerk{world: w, store: dying(0, false), order: orderOf(small)}
	p.toItsEnd(t)
	d := p.dispatcher(t)
	paid, err := d.State(t.Context(), p.order.Number)
	if err != nil {
		t.Fatal(err)
	}
	before := w.bank.Load().Statement()
	for _, at := range []string{"0", "1", "3", ""} {
		if res, err := p.whatIf(t, d, at, nil); err != nil || asJSON(t, res.State) != asJSON(t, paid.State) {
			t.Errorf("the fork at %q comes to %s, %v", at, asJSON(t, res.State), err)
		}
	}
	for _, at := range []string{"0", "1", "3"} {
		res, err := p.whatIf(t, d, at, func(f *Payment) { f.Order.Set(orderOf(small + 1)) })
		if !errors.Is(err, dag.ErrEffectRefused) {
			t.Errorf("the fork at %q with another sum comes to %s, %v", at, asJSON(t, res.State), err)
		}
	}
	if now := w.bank.Load().Statement(); !reflect.DeepEqual(now, before) {
		t.Errorf("the bank has done %+v, before the forks it had done %+v", now, before)
	}
	settled(t, before, p.order, true)
}

// whatIf runs a fork of the payment.
func (p *clerk) whatIf(t *testing.T, d *dispatcher.Dispatcher[Payment], at string, edit func(*Payment)) (*dispatcher.Result[Payment], error) {
	t.Helper()
	ids, err := d.Fork(t.Context(), p.order.Number, at, dispatcher.ForkOptions[Payment]{Edit: edit, Reason: "what if"})
	if err != nil {
		t.Fatal(err)
	}
	return d.Run(t.Context(), ids[0], nil)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
