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

// A Ticket is one message to a help desk.
type Ticket struct {
	Message state.Value[string]
	Reply   state.Value[string]
}

// A Desk is where a ticket goes.
type Desk string

const (
	Billing   Desk = "billing"
	Technical Desk = "technical"
	Spam      Desk = "spam"
)

func triage(_ context.Context, t *Ticket) (Desk, error) {
	switch message := t.Message.Get(); {
	case strings.Contains(message, "invoice"):
		return Billing, nil
	case strings.Contains(message, "broken"):
		return Technical, nil
	}
	return Spam, nil
}

func replyWith(text string) func(context.Context, *Ticket) error {
	return func(_ context.Context, t *Ticket) error {
		t.Reply.Set(text)
		return nil
	}
}

func signReply(_ context.Context, t *Ticket) error {
	t.Reply.Set(t.Reply.Get() + " Yours, the help desk")
	return nil
}

// A router chooses one of several ways. Every outcome is followed by a node or by an end:
// Build refuses a graph that forgets one.
func Example_router() {
	b := dag.New[Ticket]("help-desk")
	desk := dag.Route(b, "triage", triage, []Desk{Billing, Technical, Spam})
	billing := dag.Step(b, "billing", replyWith("Here is a copy."), desk.On(Billing))
	technical := dag.Step(b, "technical", replyWith("Turn it off and on."), desk.On(Technical))
	dag.Step(b, "sign", signReply, billing, technical) // whichever was taken
	dag.End(b, desk.On(Spam))
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}

	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range []string{"I lost my invoice", "my lamp is broken", "you have won!"} {
		run := dispatcher.NewRunID()
		res, err := d.Run(context.Background(), run, func(t *Ticket) { t.Message.Set(message) })
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %q\n", message, res.State.Reply.Get())
	}
	// Output:
	// I lost my invoice: "Here is a copy. Yours, the help desk"
	// my lamp is broken: "Turn it off and on. Yours, the help desk"
	// you have won!: ""
}
