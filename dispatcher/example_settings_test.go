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

// A Summary is made of a text that takes two steps.
type Summary struct {
	Notes state.List[string]
}

// A Model is the part of the settings that concerns the nodes of the summary.
type Model struct {
	Name   string `json:"name"`
	Tokens int    `json:"max_tokens"`
}

func summarise(step string) func(context.Context, *Summary) error {
	return func(ctx context.Context, s *Summary) error {
		model, err := dag.Settings[Model](ctx)
		if err != nil {
			return err
		}
		s.Notes.Append(fmt.Sprintf("%s by %s in %d tokens", step, model.Name, model.Tokens))
		return nil
	}
}

// Settings are what a run is told beside its state. Who goes on with a run may replace
// them; the log says who did, and what held before.
func Example_settings() {
	b := dag.New[Summary]("summary")
	outline := dag.Step(b, "outline", summarise("outline"))
	dag.Step(b, "text", summarise("text"), outline)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{InterruptBefore: []string{"text"}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	_, err = d.Run(ctx, "summary-1", nil,
		dispatcher.Settings(Model{"small", 500}, "the shop"),
		dispatcher.Labels(map[string]string{"tenant": "blue"}),
		dispatcher.Correlation("order-7"))
	fmt.Println(err)

	res, err := d.Resume(ctx, "summary-1", dispatcher.Settings(Model{"large", 4000}, "ann"))
	if err != nil {
		log.Fatal(err)
	}
	for _, note := range res.State.Notes.Slice() {
		fmt.Println(note)
	}
	then, err := d.At(ctx, "summary-1", "1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("then %s\nnow  %s\n", then.Settings, res.Settings)
	fmt.Println(res.Labels["tenant"], res.Correlation)

	_, err = d.Run(ctx, "summary-2", nil, dispatcher.Settings(map[string]string{"api_key": "hush"}, "ann"))
	fmt.Println(err)
	// Output:
	// dispatcher: run "summary-1" is interrupted before text: Resume ends the pause
	// outline by small in 500 tokens
	// text by large in 4000 tokens
	// then {"max_tokens":500,"name":"small"}
	// now  {"max_tokens":4000,"name":"large"}
	// blue order-7
	// dispatcher: run "summary-2": settings hold what looks like a secret at .api_key: its name says so: name where it is found, and have the node fetch it
}
