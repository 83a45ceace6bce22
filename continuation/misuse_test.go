package continuation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag/dagtest"
)

// A Runtime that New has not made says so, and kills nobody.
func TestRuntimeThatNobodyMade(t *testing.T) {
	for _, r := range []*continuation.Runtime{nil, {}} {
		for name, call := range map[string]func(context.Context) error{
			"Get":        func(ctx context.Context) error { _, err := r.Get(ctx, "id"); return err },
			"List":       func(ctx context.Context) error { _, err := r.List(ctx, continuation.Filter{}); return err },
			"List of":    func(ctx context.Context) error { _, err := r.List(ctx, continuation.Filter{Run: run}); return err },
			"Trigger":    func(ctx context.Context) error { _, err := r.Trigger(ctx, reply("t", "hello")); return err },
			"Sweep":      func(ctx context.Context) error { _, err := r.Sweep(ctx); return err },
			"Recover":    func(ctx context.Context) error { _, err := r.Recover(ctx); return err },
			"Serve":      func(ctx context.Context) error { return r.Serve(ctx, nil) },
			"Deliver":    func(ctx context.Context) error { _, err := r.Deliver(ctx); return err },
			"DeliveryOf": func(ctx context.Context) error { _, err := r.DeliveryOf(ctx, run); return err },
			"Stop": func(ctx context.Context) error {
				_, err := r.Stop(ctx, run, continuation.Stopping{Reason: "bored"})
				return err
			},
			"Supersede": func(ctx context.Context) error {
				_, err := r.Supersede(ctx, map[string]string{"a": "b"}, run, "ann")
				return err
			},
			"Handler": func(context.Context) error {
				_, err := r.Handler(continuation.HandlerOptions{Secret: secret, Window: time.Minute})
				return err
			},
		} {
			var bad *continuation.ArgumentError
			if err := call(t.Context()); !errors.As(err, &bad) || bad.What != "the Runtime" {
				t.Errorf("%s of a Runtime that is nil (%v): %v", name, r == nil, err)
			}
		}
	}
}

// A reply that JSON can't bring back is refused by the names that the program has for it, and asks
// nothing, whatever the wait is.
func TestARepliesTypeThatCantBe(t *testing.T) {
	type form struct{ Fields map[string]any }
	for name, w := range map[string]continuation.Wait{
		"one": {}, "with a default": {OnExpire: continuation.Default(form{})}, "all": continuation.All(continuation.Wait{}, continuation.Wait{}),
	} {
		visit := dagtest.Context(t.Context(), &dagtest.Visit{})
		_, err := continuation.Await[form](visit, "form", w)
		want := `continuation: the reply to "form": state: form.Fields[] is an interface, which JSON can't bring back: name a concrete type, or json.RawMessage`
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
}
