package record_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/record"
)

// A Ledger that NewLedger has not made says so, and kills nobody.
func TestLedgerThatNobodyMade(t *testing.T) {
	by := record.Author{Type: dag.Human, ID: "ann"}
	for _, l := range []*record.Ledger{nil, {}} {
		for name, call := range map[string]func(context.Context) error{
			"Create":      func(ctx context.Context) error { _, err := l.Create(ctx, &record.Record{}, by); return err },
			"Get":         func(ctx context.Context) error { _, err := l.Get(ctx, "r"); return err },
			"GetByHash":   func(ctx context.Context) error { _, err := l.GetByHash(ctx, "h"); return err },
			"History":     func(ctx context.Context) error { _, err := l.History(ctx, "r"); return err },
			"Ancestors":   func(ctx context.Context) error { _, err := l.Ancestors(ctx, "h"); return err },
			"Verify":      func(ctx context.Context) error { _, err := l.Verify(ctx, "r"); return err },
			"Root":        func(ctx context.Context) error { _, err := l.Root(ctx, "r"); return err },
			"Diff":        func(ctx context.Context) error { _, err := l.Diff(ctx, "r", "s"); return err },
			"Expire":      func(ctx context.Context) error { _, err := l.Expire(ctx, "r"); return err },
			"Approve":     func(ctx context.Context) error { _, err := l.Approve(ctx, "r", "p", by); return err },
			"AutoApprove": func(ctx context.Context) error { _, err := l.AutoApprove(ctx, "r", "p"); return err },
			"Answer":      func(ctx context.Context) error { _, err := l.Answer(ctx, "r", "q", "a", by); return err },
			"Merge":       func(ctx context.Context) error { _, err := l.Merge(ctx, "r", "s", record.Manual, by); return err },
			"Export":      func(ctx context.Context) error { return l.Export(ctx, "r", new(bytes.Buffer)) },
			"Import":      func(ctx context.Context) error { _, err := l.Import(ctx, strings.NewReader("{}")); return err },
			"Subscribe": func(ctx context.Context) error {
				for _, err := range l.Subscribe(ctx, "r", 0) {
					return err
				}
				return nil
			},
		} {
			var bad *record.ArgumentError
			if err := call(t.Context()); !errors.As(err, &bad) || bad.Argument != "Ledger" {
				t.Errorf("%s of a Ledger that is nil (%v): %v", name, l == nil, err)
			}
		}
	}
}
