package model_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/examples/agent/model"
)

// A middleware is a function from one way of asking to another; this one refuses long requests.
func ExampleThrough() {
	parrot := func(_ context.Context, r model.Request) (model.Reply, error) {
		return model.Reply{Text: r.Material + "!"}, nil
	}
	short := func(next model.Func) model.Func {
		return func(ctx context.Context, r model.Request) (model.Reply, error) {
			if len(r.Material) > 10 {
				return model.Reply{}, errors.New("the request is too long")
			}
			return next(ctx, r)
		}
	}
	ask := model.Through(parrot, short, model.Retried(3, time.Second))
	for _, material := range []string{"hello", "a very long story"} {
		reply, err := ask(context.Background(), model.Request{Material: material})
		fmt.Printf("%q %v\n", reply.Text, err)
	}
	// Output:
	// "hello!" <nil>
	// "" the request is too long
}
