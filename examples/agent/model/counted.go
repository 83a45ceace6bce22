package model

import (
	"context"
	"sync/atomic"
)

// Counted counts the calls that go through it.
func Counted(calls *atomic.Int64) Middleware {
	return func(next Func) Func {
		return func(ctx context.Context, r Request) (Reply, error) {
			calls.Add(1)
			return next(ctx, r)
		}
	}
}
