package dispatcher_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Claim is paid out if nobody objects.
type Claim struct {
	Euros state.Value[int]
	Paid  state.Value[bool]
}

// limits lets small sums pass, has a person look at larger ones, and denies the largest.
func limits(_ context.Context, c dispatcher.Call) dispatcher.Ruling {
	switch euros := c.State.(*Claim).Euros.Get(); {
	case euros > 10_000:
		return dispatcher.Deny(fmt.Sprintf("%d euros are more than may be paid", euros))
	case euros > 100:
		return dispatcher.Ask(fmt.Sprintf("Pay %d euros?", euros))
	}
	return dispatcher.Continue()
}

// rehearse pays nothing out while the program is only tried.
func rehearse(context.Context, dispatcher.Call) dispatcher.Ruling {
	return dispatcher.Instead(func(_ context.Context, s any) ([]string, error) {
		fmt.Println("would pay", s.(*Claim).Euros.Get())
		return nil, nil
	})
}

// Interceptors stand before nodes that know nothing of them. The most restrictive ruling
// counts: the substitute of one does not get round the approval that another one wants.
func Example_intercept() {
	b := dag.New[Claim]("claim")
	dag.Step(b, "pay", func(_ context.Context, c *Claim) error {
		c.Paid.Set(true)
		return nil
	})
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{
		Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{
			{Name: "limits", Nodes: []string{"pay"}, Before: limits},
			{Name: "rehearsal", Nodes: []string{"pay"}, Before: rehearse},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	for _, euros := range []int{80, 800, 80_000} {
		run := fmt.Sprintf("claim of %d", euros)
		res, err := d.Run(ctx, run, func(c *Claim) { c.Euros.Set(euros) })
		for _, question := range res.Interrupts {
			fmt.Println(question)
			if err := d.Answer(ctx, run, question.ID, dispatcher.Approve); err != nil {
				log.Fatal(err)
			}
			_, err = d.Run(ctx, run, nil)
		}
		fmt.Println(euros, err)
	}
	// Output:
	// would pay 80
	// 80 <nil>
	// limits asks before pay: "Pay 800 euros?"
	// would pay 800
	// 800 <nil>
	// 80000 dispatcher: run "claim of 80000" failed at pay: visit pay failed: interceptor "limits": 80000 euros are more than may be paid
}
