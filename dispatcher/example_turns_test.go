package dispatcher_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Conversation goes on for as long as somebody says something.
type Conversation struct {
	Said    state.Value[string]
	Answers state.List[string]
}

// speaks is the input of a turn.
func speaks(text string) func(*Conversation) {
	return func(c *Conversation) { c.Said.Set(text) }
}

func reply(ctx context.Context, c *Conversation) error {
	c.Answers.Append(fmt.Sprintf("%s: %s!", dag.Key(ctx), strings.ToUpper(c.Said.Get())))
	return nil
}

// A completed run is given new input as a turn: the same state, the same log, and keys of
// its own. Input for a run that is live, or that nobody runs at the moment, is posted, and
// is the next turn.
func Example_turns() {
	b := dag.New[Conversation]("parrot")
	dag.Step(b, "reply", reply)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := d.Run(ctx, "polly", speaks("hello")); err != nil {
		log.Fatal(err)
	}
	if _, err := d.Turn(ctx, "polly", speaks("who is there")); err != nil {
		log.Fatal(err)
	}
	if err := d.Enqueue(ctx, "polly", speaks("a cracker"), dispatcher.Message("web-81")); err != nil {
		log.Fatal(err)
	}
	if err := d.Enqueue(ctx, "polly", speaks("a cracker"), dispatcher.Message("web-81")); err != nil {
		log.Fatal(err) // said twice by a web server that was not sure counts once
	}
	res, err := d.Run(ctx, "polly", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, answer := range res.State.Answers.Slice() {
		fmt.Println(answer)
	}
	fmt.Println("turn", res.Turn, "superstep", res.Superstep)
	then, err := d.At(ctx, "polly", "1")
	fmt.Println("at first:", then.State.Answers.Len(), "answer", err)
	// Output:
	// polly/reply: HELLO!
	// polly/2/reply: WHO IS THERE!
	// polly/3/reply: A CRACKER!
	// turn 3 superstep 3
	// at first: 1 answer <nil>
}
