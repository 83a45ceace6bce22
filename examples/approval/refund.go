package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A Refund is what one run knows.
type Refund struct {
	Order  state.Value[string]
	Cents  state.Value[int]
	Reason state.Value[string] // the customer's

	Decision state.Value[string] // approved, denied or called off
	By       state.Value[string] // whoever decided
	Why      state.Value[string]
	Receipt  state.Value[string] // of the payment
}

// Waits are how long the service waits for what.
type Waits struct {
	Manager time.Duration // for a person
	Duty    time.Duration // then, for anybody
	Hold    time.Duration // before what was approved is paid
}

// Large is the amount, in cents, above which somebody is asked.
const Large = 100_00

// What a refund comes to, step by step.
type verdict string

const (
	small    verdict = "small"
	large    verdict = "large"
	approved verdict = "approved"
	denied   verdict = "denied"
)

// flow is the graph of a refund.
func flow(w Waits, t treasury) (*dag.Graph[Refund], error) {
	b := dag.New[Refund]("refund")
	size := dag.Route(b, "size", func(_ context.Context, r *Refund) (verdict, error) {
		if r.Cents.Get() > Large {
			return large, nil
		}
		r.Decision.Set("approved")
		r.By.Set("the rules")
		return small, nil
	}, []verdict{small, large})
	manager := dag.Route(b, "manager", w.manager, []verdict{approved, denied}, size.On(large))
	hold := dag.Route(b, "hold", w.hold, []verdict{approved, denied}, manager.On(approved))
	dag.Step(b, "pay", t.pay, size.On(small), hold.On(approved))
	dag.Step(b, "refuse", func(context.Context, *Refund) error { return nil }, manager.On(denied), hold.On(denied))
	return b.Build()
}

// manager waits for the approval.
func (w Waits) manager(ctx context.Context, r *Refund) (verdict, error) {
	reply, err := continuation.Await[struct{}](ctx, "manager", continuation.Wait{
		Kind:     continuation.KindApproval,
		Key:      r.Order.Get(),
		Question: fmt.Sprintf("Refund %s for order %s? The customer says: %s", money(r.Cents.Get()), r.Order.Get(), r.Reason.Get()),
		Within:   w.Manager,
		OnDeny:   continuation.Feed,
		OnExpire: continuation.Escalate(continuation.Anybody, w.Duty),
	})
	if expired(err) {
		r.decide("denied", "", "nobody has decided in time")
		return denied, nil
	}
	if err != nil {
		return "", err
	}
	if reply.Denied {
		r.decide("denied", reply.Actor.ID, reply.Reason)
		return denied, nil
	}
	r.decide("approved", reply.Actor.ID, reply.Reason)
	return approved, nil
}

// hold lets a day pass, unless somebody calls the payment off.
func (w Waits) hold(ctx context.Context, r *Refund) (verdict, error) {
	reply, err := continuation.Await[string](ctx, "hold", continuation.Any(
		continuation.Wait{Kind: continuation.KindTimer, After: w.Hold},
		continuation.Wait{Kind: continuation.KindReply, Key: "call-off " + r.Order.Get(), Authority: dag.Human},
	))
	if err != nil {
		return "", err
	}
	if reply.Kind == continuation.KindTimer {
		return approved, nil
	}
	r.decide("called off", reply.Actor.ID, reply.Payload)
	return denied, nil
}

func (r *Refund) decide(decision, by, why string) {
	r.Decision.Set(decision)
	r.By.Set(by)
	r.Why.Set(why)
}

func money(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
