package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

// Transfer sends the money. The bank takes no key for that, so a transfer that was cut off is in
// doubt: the visit waits, and neither makes it again nor has it refunded, until a person has looked
// whether it was made and says so with -resolve. The key is its reference, so that it can be found.
func (d *Desk) Transfer(ctx context.Context, p *Payment) error {
	o := p.Order.Get()
	r := bank.Request{Payment: o.Number, To: o.To, Cents: o.Cents}
	reply, err := dag.Effect(ctx, string(bank.Transfer), r, func(ctx context.Context, r bank.Request) (bank.Reply, error) {
		r.Reference = dag.Key(ctx)
		reply, err := d.bank.Do(ctx, bank.Transfer, "", r)
		return reply, told(err)
	}, dag.Operation("bank.transfer"), dag.Touches("account of "+o.To), dag.Writes, dag.InDoubt(dag.DoubtAsks))
	p.Transferred.Set(reply)
	return err
}

// A finding is what a person has found out about a transfer in doubt.
type finding struct {
	number string // of the transfer in the bank's books; "" if it is not there
	reason string // that it was not made
}

// parseFinding reads a finding as a person types it: happened:T-7, or not-happened:why.
func parseFinding(text string) (finding, error) {
	switch word, rest, _ := strings.Cut(text, ":"); {
	case word == "happened" && rest != "":
		return finding{number: rest}, nil
	case word == "not-happened" && rest != "":
		return finding{reason: rest}, nil
	}
	return finding{}, errors.New("-resolve is happened:NUMBER, with the number of the transfer, or not-happened:REASON")
}

// resolution is what the finding says of an effect: what its function would have returned, or why
// it is to be done.
func (f finding) resolution(e dispatcher.OpenEffect) (dispatcher.Resolution, error) {
	if f.number == "" {
		return dispatcher.NotHappened(f.reason), nil
	}
	var asked bank.Request
	if err := json.Unmarshal(e.Input, &asked); err != nil {
		return dispatcher.Resolution{}, fmt.Errorf("what %s was given: %w", e, err)
	}
	return dispatcher.Happened(bank.Reply{Number: f.number, Cents: asked.Cents}), nil
}
