package pawltest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A process that pays for a parcel and forks the run dies at each of its writes in turn, just
// before it and just after. The next one repeats the same lines, and comes to the same end.
func ExampleMortal() {
	ctx := context.Background()
	var fake bank
	pay := func(ctx context.Context, p *Parcel) error {
		receipt, err := dag.Effect(ctx, "charge", 1999, fake.Charge, dag.Replayable)
		p.Receipt.Set(receipt)
		return err
	}
	process := func(store *pawltest.Mortal) error {
		d, err := dispatcher.New(parcels(pay), store, dispatcher.Options{})
		if err != nil {
			return err
		}
		if _, err := d.Run(ctx, "parcel-7", nil); err != nil {
			return err
		}
		_, err = d.Fork(ctx, "parcel-7", "1", dispatcher.ForkOptions[Parcel]{Into: []string{"what-if"}})
		if errors.Is(err, dispatcher.ErrExists) {
			return nil // the last process has made it
		}
		return err
	}
	for _, die := range []func(*pawltest.Mortal, int){(*pawltest.Mortal).DieBefore, (*pawltest.Mortal).DieAfter} {
		for n := 1; ; n++ {
			store := &pawltest.Mortal{Store: new(memory.Store)}
			die(store, n)
			err := process(store)
			if !store.Died() {
				fmt.Println("no process dies at write", n)
				break
			}
			if !errors.Is(err, pawltest.ErrDead) {
				fmt.Println("write", n, "is lost, and nobody was told:", err)
			}
			if err := errors.Join(store.Revive(ctx), process(store)); err != nil {
				fmt.Println("write", n, "can't be made good:", err)
			}
		}
	}
	// Output:
	// no process dies at write 6
	// no process dies at write 6
}
