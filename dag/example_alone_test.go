package dag_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A Letter is written, confirmed by a person, and sent.
type Letter struct {
	To   state.Value[string]
	Text state.Value[string]
}

// An Office writes letters. What nodes depend on is their receiver.
type Office struct {
	Greeting string
}

func (o *Office) Write(_ context.Context, l *Letter) error {
	if l.To.Get() == "" {
		return errors.New("a letter to nobody")
	}
	l.Text.Set(o.Greeting + " " + l.To.Get())
	return nil
}

func (o *Office) Confirm(ctx context.Context, l *Letter) error {
	_, err := dag.Ask[bool](ctx, "sure", "Send it to "+l.To.Get()+"?")
	return err
}

func (o *Office) Send(ctx context.Context, l *Letter) error {
	fmt.Printf("sending %q, key %q, attempt %d\n", l.Text.Get(), dag.Key(ctx), dag.Attempt(ctx))
	return nil
}

// A node is tested by calling it: with no graph, no dispatcher and no store. Outside a run
// it makes its first attempt, has no key, and a question is answered by an error.
func Example_nodeAlone() {
	ctx := context.Background()
	office := &Office{Greeting: "Dear"}
	var letter Letter
	fmt.Println("write:", office.Write(ctx, &letter))

	letter.To.Set("Ada")
	fmt.Println("write:", office.Write(ctx, &letter))
	fmt.Println("send:", office.Send(ctx, &letter))

	err := office.Confirm(ctx, &letter)
	fmt.Println("confirm:", errors.Is(err, dag.ErrNoVisit))
	// Output:
	// write: a letter to nobody
	// write: <nil>
	// sending "Dear Ada", key "", attempt 1
	// send: <nil>
	// confirm: true
}
