package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Refund waits for a person's approval.
type Refund struct {
	Note state.Value[string]
}

func approveRefund(ctx context.Context, s *Refund) error {
	r, err := continuation.Await[string](ctx, "approval", continuation.Wait{
		Kind: continuation.KindApproval, Key: "refund-7", Question: "Refund 40 €?",
		Within: 2 * time.Hour, Authority: dag.Human, OnDeny: continuation.Feed,
	})
	if err != nil {
		return err
	}
	s.Note.Set(fmt.Sprintf("%s by %s: %s", map[bool]string{false: "approved", true: "denied"}[r.Denied], r.Actor.ID, r.Payload))
	return nil
}

// A node waits for an approval; an agent may not give it, a person does, and the run goes on.
func Example() {
	ctx := context.Background()
	b := dag.New[Refund]("refund")
	dag.Step(b, "approve", approveRefund)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, &memory.Store{}, dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	rt, err := continuation.New(d, continuation.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = d.Run(ctx, "case-1", nil)
	fmt.Println(errors.Is(err, dispatcher.ErrInterrupted))

	approval := continuation.Trigger{
		ID: "webhook-1", Key: "refund-7", Kind: continuation.KindApproval, Decision: continuation.Approved,
		Actor: continuation.Actor{ID: "assistant", Authority: dag.Agent}, Payload: []byte(`"fine with me"`),
	}
	_, err = rt.Trigger(ctx, approval)
	var no *continuation.AuthorityError
	fmt.Println(errors.As(err, &no), no.Needs)

	approval.ID, approval.Actor = "webhook-2", continuation.Actor{ID: "ann", Authority: dag.Human}
	out, err := rt.Trigger(ctx, approval)
	fmt.Println(out.Status, out.EndReason, err)
	res, err := d.State(ctx, "case-1")
	fmt.Println(res.State.Note.Get(), err)
	// Output:
	// true
	// true human
	// resolved completed <nil>
	// approved by ann: fine with me <nil>
}
