package pawltest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A run was paid for by an earlier version of its graph, and then got a turn of today's, which
// has no such node. Replay tells what it can't try; SinceChange leaves it out.
func ExampleSinceChange() {
	ctx := context.Background()
	version := func(node string) *dag.Graph[Parcel] {
		b := dag.New[Parcel]("parcels")
		dag.Step(b, node, func(_ context.Context, p *Parcel) error {
			p.Receipt.Set(node)
			return nil
		})
		g, err := b.Build()
		if err != nil {
			panic(err)
		}
		return g
	}
	var store memory.Store
	first, err := dispatcher.New(version("pay"), &store, dispatcher.Options{})
	if err != nil {
		panic(err)
	}
	if _, err := first.Run(ctx, "parcel-7", nil); err != nil {
		panic(err)
	}
	second, err := dispatcher.New(version("charge"), &store, dispatcher.Options{})
	if err != nil {
		panic(err)
	}
	if _, err := second.Turn(ctx, "parcel-7", nil); err != nil {
		panic(err)
	}

	var log bytes.Buffer
	if err := checkpoint.Export(ctx, &store, "parcel-7", &log); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "pawltest")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "run.log")
	if err := os.WriteFile(file, log.Bytes(), 0o600); err != nil {
		panic(err)
	}
	pawltest.Replay(printer{}, file, version("charge"))
	pawltest.Replay(printer{}, file, version("charge"), pawltest.SinceChange())
	fmt.Println("tried since the change")
	// Output:
	// pawltest: run "parcel-7": not tried, because the graph changed at entry 6: visit pay, superstep @1: visit pay is done, and its node is gone: SinceChange leaves out what was before
	// tried since the change
}
