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

// An Invitation is written, looked at by a person, and sent.
type Invitation struct {
	Name state.Value[string]
	Text state.Value[string]
}

func writeInvitation(_ context.Context, i *Invitation) error {
	i.Text.Set("Dear " + i.Name.Get() + ", come at eight.")
	return nil
}

func sendInvitation(_ context.Context, i *Invitation) error {
	fmt.Println("sent:", i.Text.Get())
	return nil
}

// A person corrects the state of a run that pauses. What has finished is not done again, and
// the log says who changed what, and why.
func Example_edit() {
	b := dag.New[Invitation]("invitation")
	written := dag.Step(b, "write", writeInvitation)
	dag.Step(b, "send", sendInvitation, written)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{InterruptBefore: []string{"send"}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	res, _ := d.Run(ctx, "friday", func(i *Invitation) { i.Name.Set("Ada") })
	fmt.Println(res.Interrupts[0], "with:", res.State.Text.Get())

	err = d.Edit(ctx, "friday", func(i *Invitation) { i.Text.Set("Dear Ada, come at nine.") },
		dispatcher.EditOptions{Reason: "the hall opens at nine"}, dispatcher.Author("Eve"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := d.Resume(ctx, "friday"); err != nil {
		log.Fatal(err)
	}
	for e := range d.Events(ctx, "friday", dispatcher.Listen{Deltas: true}) {
		if e.Kind == dispatcher.StateEdited {
			fmt.Println(e.String(), string(e.Delta))
		}
	}
	// Output:
	// before send with: Dear Ada, come at eight.
	// sent: Dear Ada, come at nine.
	// friday@7: state edited by Eve: the hall opens at nine {"Text":{"set":"Dear Ada, come at nine."}}
}
