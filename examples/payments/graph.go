package main

import (
	"errors"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

// newGraph joins the nodes. There is one way in which a payment is made, and one way back from
// wherever that has failed. A transfer of which nobody knows whether it was made has not failed: it
// waits, and nothing is given back.
func newGraph(d *Desk) (*dag.Graph[Payment], error) {
	b := dag.New[Payment]("payments")
	reserve := dag.Step(b, "reserve", d.Reserve).With(d.patience())
	charge := dag.Step(b, "charge", d.Charge, reserve).With(d.patience())
	transfer := dag.Step(b, "transfer", d.Transfer, charge).With(d.patience())

	failed := dag.Any(reserve.Failed(), charge.Failed(), transfer.Failed())
	refund := dag.Step(b, "refund", d.Refund, failed).With(d.patience())
	dag.Step(b, "notify", d.Notify, dag.Any(transfer, refund)).With(d.patience())
	return b.Build()
}

// patience is how long a desk tries what the bank does not do at once. What the bank has refused it
// will refuse again.
func (d *Desk) patience() dag.Policy {
	return dag.Policy{
		Attempts: 4,
		Timeout:  d.wait,
		Backoff:  dag.Exponential(d.pause, 20*d.pause).Jitter(0.5),
		Retry:    func(err error) bool { return !errors.Is(err, bank.ErrRefused) },
	}
}
