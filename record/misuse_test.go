package record_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
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

// A record that is nil, as that of a version that can't be read, is none.
func TestRecordThatIsNil(t *testing.T) {
	var r *record.Record
	for name, call := range map[string]func() error{
		"Check":  r.Check,
		"Encode": func() error { _, err := r.Encode(); return err },
		"Hash":   func() error { _, err := r.Hash(); return err },
		"Seal":   r.Seal,
	} {
		var bad *record.InvalidError
		if err := call(); !errors.As(err, &bad) || err.Error() != "record: this is no record: it is nil" {
			t.Errorf("%s = %v", name, err)
		}
	}
}

// No run stands where the log of a record belongs: a dispatcher refuses its id, and changes
// nothing, whether the record is there or not.
func TestRunsStandInNoPlaceOfARecord(t *testing.T) {
	ctx := t.Context()
	b := newBook(t)
	b.create(t, draft("there"))
	d := inquire(t, b.store, []string{"a"}, func(context.Context, *Inquiry) error { return nil })
	if _, err := d.Run(ctx, "run", nil); err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{"there", "not there"} {
		id := "pawl.record/" + record
		for name, call := range map[string]func() error{
			"Run":     func() error { _, err := d.Run(ctx, id, nil); return err },
			"Start":   func() error { _, err := d.Start(ctx, id, nil); return err },
			"Turn":    func() error { _, err := d.Turn(ctx, id, nil); return err },
			"Enqueue": func() error { return d.Enqueue(ctx, id, nil) },
			"Note":    func() error { return d.Note(ctx, id, "a.b", 1) },
			"Tag":     func() error { return d.Tag(ctx, id, "", "tag") },
			"Trim":    func() error { return d.Trim(ctx, id, dispatcher.Retention{Last: 1}) },
			"Cancel":  func() error { return d.Cancel(ctx, id, nil) },
			"State":   func() error { _, err := d.State(ctx, id); return err },
			"Open":    func() error { _, err := d.Open(ctx, id); return err },
			"Fork":    func() error { _, err := d.Fork(ctx, id, "", dispatcher.ForkOptions[Inquiry]{}); return err },
			"Stream": func() error {
				for _, err := range d.Stream(ctx, id, nil, dispatcher.Listen{}) {
					return err
				}
				return nil
			},
		} {
			if err := call(); !errors.Is(err, dispatcher.ErrRunID) || !strings.Contains(err.Error(), "begins with pawl.record/") {
				t.Errorf("%s of %q = %v, want ErrRunID, and why", name, id, err)
			}
		}
		_, err := d.Fork(ctx, "run", "", dispatcher.ForkOptions[Inquiry]{Into: []string{id}})
		var bad *dispatcher.OptionError
		if !errors.As(err, &bad) || bad.Option != "Into" {
			t.Errorf("Fork into %q = %v, want an OptionError of Into", id, err)
		}
	}
	if v, err := b.Verify(ctx, "there"); err != nil || !v.Valid {
		t.Errorf("Verify = %+v, %v", v, err)
	}
	b.create(t, draft("not there"))
}
