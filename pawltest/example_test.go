package pawltest_test

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
)

// A Parcel is paid for.
type Parcel struct {
	Receipt state.Value[string]
}

// A bank charges cards. Its tests have a fake one.
type bank struct{ charges int }

func (b *bank) Charge(_ context.Context, cents int) (string, error) {
	b.charges++
	return "receipt", nil
}

// parcels is a graph that pays for parcels.
func parcels(pay func(context.Context, *Parcel) error) *dag.Graph[Parcel] {
	b := dag.New[Parcel]("parcels")
	dag.Step(b, "pay", pay)
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// A printer stands for the *testing.T of a test.
type printer struct{}

func (printer) Helper()                           {}
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Crash finds the node that charges a card twice when its process dies, and is content with
// the one that does it as an effect.
func ExampleCrash() {
	var fake bank
	world := pawltest.World(func() any { return fake.charges })

	careless := parcels(func(ctx context.Context, p *Parcel) error {
		receipt, err := fake.Charge(ctx, 1999)
		p.Receipt.Set(receipt)
		return err
	})
	reset := pawltest.Reset(func() { fake.charges = 0 })
	pawltest.Crash(printer{}, careless, nil, world, reset)

	careful := parcels(func(ctx context.Context, p *Parcel) error {
		receipt, err := dag.Effect(ctx, "charge", 1999, fake.Charge)
		p.Receipt.Set(receipt)
		return err
	})
	pawltest.Crash(printer{}, careful, nil, world, reset)
	// Output:
	// pawltest: node pay ran twice outside an effect: visit pay changed the world in an execution that was lost by the crash at entry 3 (done pay) (from 0 to 1), and again when it ran again (from 1 to 2)
}
