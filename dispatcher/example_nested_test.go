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

// A Voyage visits harbours, a Harbour is the state of the graph that runs for each of them.
type Voyage struct {
	Cargo state.List[string]
}

type Harbour struct {
	Name  state.Value[string]
	Goods state.List[string]
}

func loadGoods(_ context.Context, h *Harbour) error {
	h.Goods.Append("salt of " + h.Name.Get())
	return nil
}

func clearGoods(ctx context.Context, h *Harbour) error {
	if h.Name.Get() != "Riga" {
		return nil
	}
	_, err := dag.Ask[bool](ctx, "duty", "May "+h.Goods.At(0)+" leave?")
	return err
}

// A frame inside a run has a state of its own type, supersteps and a history of its own. It
// tells what it rests on, and each of its checkpoints can be read.
func Example_nested() {
	b := dag.New[Harbour]("harbour")
	loads := dag.Step(b, "load", loadGoods)
	dag.Step(b, "clear", clearGoods, loads)
	harbour, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	v := dag.New[Voyage]("voyage")
	dag.EachGraph(v, "call", func(*Voyage) []string { return []string{"Turku", "Riga"} }, harbour,
		func(_ *Voyage, name string, to *Harbour) { to.Name.Set(name) },
		func(from *Harbour, _ string, to *Voyage) { to.Cargo.Append(from.Goods.Slice()...) })
	voyage, err := v.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(voyage, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	_, err = d.Run(ctx, "hulk-3", nil)
	fmt.Println(err)

	riga, err := dispatcher.StateOf[Harbour](ctx, d, "hulk-3", "call/2")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("in", riga.Frame, riga.State.Name.Get(), riga.State.Goods.Slice(), "rests at", riga.Cursor.Visits)
	fmt.Println(riga.Interrupts[0])
	for checkpoint, err := range d.History(ctx, "hulk-3", "call/1") {
		if err != nil {
			log.Fatal(err)
		}
		turku, err := dispatcher.StateOf[Harbour](ctx, d, "hulk-3", checkpoint.Address())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(checkpoint, turku.State.Goods.Slice())
	}
	_, err = dispatcher.StateOf[Voyage](ctx, d, "hulk-3", "call/2")
	fmt.Println(err)
	// Output:
	// dispatcher: run "hulk-3" is interrupted at call/2/clear: Answer what it waits for, and Resume
	// in call/2 Riga [salt of Riga] rests at [call/2/clear]
	// call/2/clear asks: "May salt of Riga leave?"
	// call/1@1 [salt of Turku]
	// call/1@2 [salt of Turku]
	// dispatcher: run "hulk-3": state of another type: that of frame "call/2" is dispatcher_test.Harbour, not dispatcher_test.Voyage
}
