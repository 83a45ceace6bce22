package dagtest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dag/dagtest"
	"github.com/pawlgo/pawl/state"
)

// A Letter is written, confirmed by a person, and sent.
type Letter struct {
	To   state.Value[string]
	Sent state.Value[bool]
}

// Send asks before it sends. A second attempt looks first whether the first one has sent.
func Send(ctx context.Context, l *Letter) error {
	sure, err := dag.Ask[bool](ctx, "sure", "Send it to "+l.To.Get()+"?")
	if err != nil {
		return err
	}
	if dag.Attempt(ctx) > 1 {
		fmt.Println("looking for", dag.Key(ctx))
	}
	l.Sent.Set(sure)
	return nil
}

// A node is tested by calling it: with the answer of a person, and without one.
func Example() {
	var letter Letter
	letter.To.Set("Ada")

	v := &dagtest.Visit{}
	err := Send(dagtest.Context(context.Background(), v), &letter)
	fmt.Printf("waits: %t, asked %s\n", errors.Is(err, dagtest.ErrUnanswered), v.Asked()[0].Question)

	v = &dagtest.Visit{Key: "letter-7/send", Attempt: 2, Answers: map[string]any{"sure": true}}
	err = Send(dagtest.Context(context.Background(), v), &letter)
	fmt.Println("sent:", letter.Sent.Get(), err)
	// Output:
	// waits: true, asked "Send it to Ada?"
	// looking for letter-7/send
	// sent: true <nil>
}
