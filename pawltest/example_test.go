package pawltest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
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

// exported runs a graph, and leaves the run in a file, as a program does that keeps a run
// for its tests.
func exported(g *dag.Graph[Parcel], dir string) (string, error) {
	var store memory.Store
	d, err := dispatcher.New(g, &store, dispatcher.Options{})
	if err != nil {
		return "", err
	}
	if _, err := d.Run(context.Background(), "parcel-7", nil); err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(dir, "run.log"))
	if err != nil {
		return "", err
	}
	defer file.Close()
	return file.Name(), checkpoint.Export(context.Background(), &store, "parcel-7", file)
}

// Replay tells what today's graph would do otherwise than the one that has made the log. No
// card is charged: the effect returns what it returned then.
func ExampleReplay() {
	var fake bank
	pays := func(prefix string) *dag.Graph[Parcel] {
		return parcels(func(ctx context.Context, p *Parcel) error {
			receipt, err := dag.Effect(ctx, "charge", 1999, fake.Charge)
			p.Receipt.Set(prefix + receipt)
			return err
		})
	}
	dir, err := os.MkdirTemp("", "pawltest")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file, err := exported(pays(""), dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	pawltest.Replay(printer{}, file, pays(""))
	pawltest.Replay(printer{}, file, pays("No. "))
	fmt.Println("charges:", fake.charges)
	// Output:
	// pawltest: run "parcel-7": visit pay: cell Receipt wrote {"set":"receipt"}, now {"set":"No. receipt"}
	// charges: 1
}
