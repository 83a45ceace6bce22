package model_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/agent/model"
)

// fails is a model that fails this many times and then says hello.
func fails(times int, err error, asked *atomic.Int64) model.Func {
	return func(context.Context, model.Request) (model.Reply, error) {
		if asked.Add(1) <= int64(times) {
			return model.Reply{}, err
		}
		return model.Reply{Text: "hello", Tokens: 3}, nil
	}
}

// The first middleware is the outermost.
func TestThroughInOrder(t *testing.T) {
	var order []string
	named := func(name string) model.Middleware {
		return func(next model.Func) model.Func {
			return func(ctx context.Context, r model.Request) (model.Reply, error) {
				order = append(order, name)
				return next(ctx, r)
			}
		}
	}
	var asked atomic.Int64
	ask := model.Through(fails(0, nil, &asked), named("a"), named("b"))
	if reply, err := ask(t.Context(), model.Request{}); reply.Text != "hello" || err != nil {
		t.Errorf("%+v, %v", reply, err)
	}
	if !slices.Equal(order, []string{"a", "b"}) {
		t.Errorf("order %v", order)
	}
}

// Temporary troubles are waited out, each wait twice the last; no others are, and not for ever.
func TestRetried(t *testing.T) {
	busy, refused := &model.StatusError{Status: 503}, &model.StatusError{Status: 401}
	for name, c := range map[string]struct {
		fails int
		err   error
		asked int64
		took  time.Duration
		want  error
	}{
		"well":      {0, nil, 1, 0, nil},
		"twice":     {2, busy, 3, 3 * time.Second, nil},
		"for ever":  {99, busy, 4, 7 * time.Second, busy},
		"refused":   {99, refused, 1, 0, refused},
		"something": {99, errors.ErrUnsupported, 1, 0, errors.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int64
				began := time.Now()
				_, err := model.Through(fails(c.fails, c.err, &asked), model.Retried(4, time.Second))(t.Context(), model.Request{})
				if took := time.Since(began); asked.Load() != c.asked || took != c.took || !errors.Is(err, c.want) {
					t.Errorf("asked %d times in %v: %v", asked.Load(), took, err)
				}
			})
		})
	}
}

// Whoever cancels does not wait.
func TestRetriedObeysItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var asked atomic.Int64
		began := time.Now()
		_, err := model.Through(fails(99, &model.StatusError{Status: 503}, &asked), model.Retried(4, time.Hour))(ctx, model.Request{})
		if took := time.Since(began); took != time.Second || asked.Load() != 1 || err == nil {
			t.Errorf("asked %d times in %v: %v", asked.Load(), took, err)
		}
	})
}

// A budget that is used up lets nobody ask, and says that nothing has happened.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		budget, spent int
		asked         int64
	}{{0, 1 << 40, 1}, {10, 0, 1}, {10, 9, 1}, {10, 10, 0}, {10, 11, 0}} {
		var asked atomic.Int64
		_, err := model.Through(fails(0, nil, &asked), model.Within(c.budget, c.spent))(t.Context(), model.Request{})
		var over *model.BudgetError
		if asked.Load() != c.asked || errors.As(err, &over) != (c.asked == 0) || errors.Is(err, dag.NotDone) != (c.asked == 0) {
			t.Errorf("%+v: asked %d times, %v", c, asked.Load(), err)
		}
	}
}

// The log tells of calls and of nothing that was said.
func TestLogged(t *testing.T) {
	var b bytes.Buffer
	var asked, counted atomic.Int64
	ask := model.Through(fails(1, errors.New("busy"), &asked), model.Logged(slog.New(slog.NewTextHandler(&b, nil))), model.Counted(&counted))
	for range 2 {
		_, _ = ask(t.Context(), model.Request{Rules: "secret", Material: "secret"})
	}
	if s := b.String(); strings.Count(s, "\n") != 2 || !strings.Contains(s, "error=busy") || !strings.Contains(s, "tokens=3") ||
		strings.Contains(s, "secret") || strings.Contains(s, "hello") {
		t.Errorf("logged\n%s", s)
	}
	if counted.Load() != 2 {
		t.Errorf("counted %d", counted.Load())
	}
}
