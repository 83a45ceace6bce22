package dispatcher_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Chat keeps the name of the message that it answers.
type Chat struct {
	Message state.Value[string]
	Said    state.Value[string]
	Answers state.List[string]
}

// A web server takes each message once, however often its client sends it, the first one too. That
// one opens the run, and has no Message: its name is in the state with which the run was opened.
func Example_firstMessage() {
	b := dag.New[Chat]("chat")
	dag.Step(b, "reply", func(_ context.Context, c *Chat) error {
		c.Answers.Append("to " + c.Said.Get())
		return nil
	})
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	take := func(chat, message, text string) error { // a supervisor's Continue goes behind it
		input := func(c *Chat) {
			c.Message.Set(message)
			c.Said.Set(text)
		}
		if err := d.Create(ctx, chat, input); !errors.Is(err, dispatcher.ErrExists) {
			return err
		}
		first, err := d.At(ctx, chat, "0")
		if err != nil || first.State.Message.Get() == message {
			return err
		}
		return d.Enqueue(ctx, chat, input, dispatcher.Message(message))
	}
	for _, message := range []string{"m1", "m1", "m2", "m1", "m2"} {
		if err := take("polly", message, "hello "+message); err != nil {
			fmt.Println(err)
			return
		}
	}
	res, err := d.Continue(ctx, "polly")
	if err != nil {
		fmt.Println(err)
		return
	}
	now, err := d.State(ctx, "polly")
	fmt.Println(res.Turn, now.State.Answers.Slice(), err)
	// Output:
	// 2 [to hello m1 to hello m2] <nil>
}
