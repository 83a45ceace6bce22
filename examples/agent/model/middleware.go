package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// Logged logs each call when it has ended: how long it took, what it cost and what it came to, but
// nothing that was said.
func Logged(l *slog.Logger) Middleware {
	return func(next Func) Func {
		return func(ctx context.Context, r Request) (Reply, error) {
			began := time.Now()
			reply, err := next(ctx, r)
			fields := []any{"took", time.Since(began).Round(time.Millisecond), "tokens", reply.Tokens, "calls", len(reply.Calls)}
			if err != nil {
				l.WarnContext(ctx, "the model was asked", append(fields, "error", err)...)
				return reply, err
			}
			l.InfoContext(ctx, "the model was asked", fields...)
			return reply, nil
		}
	}
}

// Retried asks at most this many times while the endpoint has temporary troubles, after waits that
// begin with pause and double. It is for troubles of seconds: what is counted here a crash forgets.
// Attempts that a crash must not forget are those of a [dag.Policy].
func Retried(attempts int, pause time.Duration) Middleware {
	return func(next Func) Func {
		return func(ctx context.Context, r Request) (Reply, error) {
			wait := pause
			for n := 1; ; n++ {
				reply, err := next(ctx, r)
				var refused *StatusError
				if err == nil || n >= attempts || !errors.As(err, &refused) || !refused.Temporary() {
					return reply, err
				}
				timer := time.NewTimer(wait)
				select {
				case <-timer.C:
				case <-ctx.Done():
					timer.Stop()
					return reply, err // of which the caller knows more than of the context
				}
				wait *= 2
			}
		}
	}
}

// A BudgetError says that a call was not made, because earlier ones have used up the budget.
type BudgetError struct{ Budget, Spent int }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("model: %d tokens are spent and the budget is %d; give the run a larger one", e.Spent, e.Budget)
}

// Unwrap returns [dag.NotDone]: the model was not asked.
func (e *BudgetError) Unwrap() error { return dag.NotDone }

// Within asks only while less than the budget is spent; no budget is 0. What is spent is an
// argument because a middleware that counted would begin again at 0 in every process: it belongs
// in the state of the run.
func Within(budget, spent int) Middleware {
	return func(next Func) Func {
		if budget == 0 || spent < budget {
			return next
		}
		return func(context.Context, Request) (Reply, error) {
			return Reply{}, &BudgetError{budget, spent}
		}
	}
}
