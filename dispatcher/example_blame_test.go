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

// A Headline is improved until it is short, and printed.
type Headline struct {
	Text  state.Value[string]
	Notes state.List[string]
}

// The log says who wrote what. Blame tells, of each cell, to whom its value is due: which visit,
// in which iteration, which input, which edit.
func Example_blame() {
	body := dag.New[Headline]("shorten")
	dag.Step(body, "cut", func(_ context.Context, h *Headline) error {
		h.Text.Set(h.Text.Get()[:len(h.Text.Get())/2])
		h.Notes.Append("cut")
		return nil
	})
	shorten, err := body.Build()
	if err != nil {
		log.Fatal(err)
	}
	b := dag.New[Headline]("headline")
	dag.Loop(b, "edit", shorten, func(h *Headline) bool { return len(h.Text.Get()) < 20 }, 5)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	_, err = d.Run(ctx, "page-1", func(h *Headline) {
		h.Text.Set("Ratchet turns forward once more and never slips back")
		h.Notes.Append("from the wire")
	})
	if err != nil {
		log.Fatal(err)
	}

	blames, err := d.Blame(ctx, "page-1", "")
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range blames {
		fmt.Println(b.Cell)
		for _, w := range b.Writers {
			fmt.Println("  ", w)
		}
	}
	// Output:
	// Text
	//    visit edit/2/cut at page-1@7
	// Notes
	//    input at page-1@1
	//    visit edit/1/cut at page-1@4
	//    visit edit/2/cut at page-1@7
}
