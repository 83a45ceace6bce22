package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

// A Desk has the nodes of payments. All that it keeps of one is in its state.
type Desk struct {
	bank  *bank.Client
	wait  time.Duration // for a reply
	pause time.Duration // before a second attempt; later ones wait longer
}

// Reserve makes sure that there is money to charge.
func (d *Desk) Reserve(ctx context.Context, p *Payment) error {
	o := p.Order.Get()
	reply, err := d.again(ctx, bank.Reserve, bank.Request{Payment: o.Number, From: o.From, Cents: o.Cents})
	p.Reserved.Set(reply)
	return err
}

// Charge takes what was reserved.
func (d *Desk) Charge(ctx context.Context, p *Payment) error {
	o := p.Order.Get()
	reply, err := d.again(ctx, bank.Charge, bank.Request{Payment: o.Number, Cents: o.Cents})
	p.Charged.Set(reply)
	return err
}

// Refund gives back what was taken, if anything was, and ends the payment at the bank: a charge
// that is still on its way there comes too late.
func (d *Desk) Refund(ctx context.Context, p *Payment) error {
	reply, err := d.again(ctx, bank.Refund, bank.Request{Payment: p.Order.Get().Number})
	p.Refunded.Set(reply)
	p.Reason.Set(reasonOf(ctx))
	return err
}

// reasonOf says why a payment is given back.
func reasonOf(ctx context.Context) string {
	var all []string
	for _, f := range dag.Failures(ctx) {
		if f.Kind == dag.FailedDenied {
			return "it was not approved"
		}
		all = append(all, fmt.Sprintf("%s failed: %s", f.Path, f.Message))
	}
	return strings.Join(all, "; ")
}

// Notify tells the customer what came of it.
func (d *Desk) Notify(ctx context.Context, p *Payment) error {
	o := p.Order.Get()
	text := fmt.Sprintf("%s was paid to %s (%s)", sum(o.Cents), o.To, p.Transferred.Get().Number)
	if back := p.Refunded.Get(); back.Number != "" {
		text = fmt.Sprintf("%s was not paid to %s, because %s; %s", sum(o.Cents), o.To, p.Reason.Get(), given(back))
	}
	p.Told.Set(text)
	_, err := d.again(ctx, bank.Notify, bank.Request{Payment: o.Number, To: o.From, Text: text})
	return err
}

// given says what a refund gave back.
func given(back bank.Reply) string {
	if back.Cents == 0 {
		return "nothing had been taken"
	}
	return sum(back.Cents) + " went back to you"
}

// again asks the bank for what it does once for each key: it may be asked again under the same one,
// by a later attempt or by another process, and is never in doubt. That the bank was not reached is
// no reason to say that it was not done: who has approved it is not asked again for the same thing.
func (d *Desk) again(ctx context.Context, o bank.Operation, r bank.Request) (bank.Reply, error) {
	return dag.Effect(ctx, string(o), r, func(ctx context.Context, r bank.Request) (bank.Reply, error) {
		reply, err := d.bank.Do(ctx, o, dag.Key(ctx), r)
		if errors.Is(err, bank.ErrRefused) {
			err = fmt.Errorf("%w: %w", dag.NotDone, err)
		}
		return reply, err
	}, dag.Operation("bank."+string(o)), dag.Writes, dag.Replayable)
}

// told adds to an error that nothing was done, if the bank says so. Any other error leaves that
// open.
func told(err error) error {
	if errors.Is(err, bank.ErrRefused) || errors.Is(err, bank.ErrUnavailable) {
		return fmt.Errorf("%w: %w", dag.NotDone, err)
	}
	return err
}
