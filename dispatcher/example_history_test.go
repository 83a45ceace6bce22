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

// An Account is one year of savings.
type Account struct {
	Euros state.Value[int]
}

func payIn(_ context.Context, a *Account) error {
	a.Euros.Set(500)
	return nil
}

func addInterest(_ context.Context, a *Account) error {
	a.Euros.Update(func(euros int) int { return euros * 102 / 100 })
	return nil
}

func takeFee(_ context.Context, a *Account) error {
	a.Euros.Update(func(euros int) int { return euros - 15 })
	return nil
}

// The log of a run is its history: every superstep ends in a checkpoint, and the state at
// each of them can be read, while the run is at work and long after it.
func Example_history() {
	b := dag.New[Account]("savings")
	deposit := dag.Step(b, "deposit", payIn)
	interest := dag.Step(b, "interest", addInterest, deposit)
	dag.Step(b, "fee", takeFee, interest)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := d.Run(ctx, "2026", nil); err != nil {
		log.Fatal(err)
	}

	for checkpoint, err := range d.History(ctx, "2026") {
		if err != nil {
			log.Fatal(err)
		}
		then, err := d.At(ctx, "2026", checkpoint.Address())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("superstep %d: %d euros, next %v\n",
			checkpoint.Superstep, then.State.Euros.Get(), then.Cursor.Visits)
	}
	now, err := d.State(ctx, "2026")
	fmt.Println("now:", now.Status, now.State.Euros.Get(), err)
	// Output:
	// superstep 1: 500 euros, next [interest]
	// superstep 2: 510 euros, next [fee]
	// superstep 3: 495 euros, next []
	// now: completed 495 <nil>
}
