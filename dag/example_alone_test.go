package dag_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A Letter is sent once its text is written.
type Letter struct {
	To   state.Value[string]
	Text state.Value[string]
}

// An Outbox sends letters, each key once.
type Outbox struct {
	sent []string
}

// Greet and Send are nodes: functions of a context and the state. What they depend on is
// their receiver.
func (o *Outbox) Greet(_ context.Context, l *Letter) error {
	if l.To.Get() == "" {
		return errors.New("a letter to nobody")
	}
	l.Text.Set("Dear " + l.To.Get())
	return nil
}

func (o *Outbox) Send(ctx context.Context, l *Letter) error {
	o.sent = append(o.sent, dag.Key(ctx)+":"+l.Text.Get())
	return nil
}

// A node is tested by calling it. It needs no graph, no dispatcher and no store; outside a
// run it makes its first attempt, has no key, and a question is answered by an error.
func Example_nodeAlone() {
	ctx := context.Background()
	var outbox Outbox

	var letter Letter
	fmt.Println(outbox.Greet(ctx, &letter))

	letter.To.Set("Ada")
	fmt.Println(outbox.Greet(ctx, &letter), letter.Text.Get())
	fmt.Println(outbox.Send(ctx, &letter), outbox.sent)

	fmt.Println(dag.Attempt(ctx), dag.Failures(ctx))
	_, err := dag.Ask[bool](ctx, "sure", "Send it?")
	fmt.Println(errors.Is(err, dag.ErrNoVisit))
	// Output:
	// a letter to nobody
	// <nil> Dear Ada
	// <nil> [:Dear Ada]
	// 1 []
	// true
}
