package record_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/record"
)

// A subscription ends when its record is deleted, also if another one is made under its id before
// it looks again, however many versions that has, or if it comes back with fewer than were seen. It
// goes on behind what it has seen if the record comes back whole.
func TestSubscribeBesideADelete(t *testing.T) {
	for name, of := range map[string]struct {
		then func(*testing.T, *book, []byte)
		want []string
	}{
		"nothing":      {func(*testing.T, *book, []byte) {}, nil},
		"a shorter":    {func(t *testing.T, b *book, _ []byte) { b.anew(t, 1) }, nil},
		"as long":      {func(t *testing.T, b *book, _ []byte) { b.anew(t, 2) }, nil},
		"a longer":     {func(t *testing.T, b *book, _ []byte) { b.anew(t, 3) }, nil},
		"the older":    {func(t *testing.T, b *book, backup []byte) { b.restore(t, backup[:bytes.IndexByte(backup, '\n')+1]) }, nil},
		"the same one": {func(t *testing.T, b *book, backup []byte) { b.learn(t, b.restore(t, backup), "more") }, []string{"more"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			b.learn(t, b.create(t, draft("r")), "one")
			seen, got := 0, []string(nil)
			for v, err := range b.Subscribe(t.Context(), "r", 0) {
				if err != nil {
					if !errors.Is(err, record.ErrNotFound) || of.want != nil {
						t.Errorf("behind %d versions: %v", seen, err)
					}
					break
				}
				if seen++; seen > 2 {
					l := v.Record.Learnings
					if got = append(got, l[len(l)-1].ID); len(got) >= max(len(of.want), 1) {
						break
					}
				}
				if seen == 2 {
					var backup bytes.Buffer
					done(t, b.Export(t.Context(), "r", &backup))
					done(t, b.store.Delete(t.Context(), "pawl.record/r"))
					of.then(t, b, backup.Bytes())
				}
			}
			same(t, "seen behind it", got, of.want)
		})
	}
}

// Whoever has got a version may change what he got: the next one comes all the same.
func TestSubscribeByWhoChangesRecords(t *testing.T) {
	b := newBook(t)
	v := b.create(t, draft("r"))
	seen := 0
	for v2, err := range b.Subscribe(t.Context(), "r", 0) {
		if err != nil || v2.Unverified != "" {
			t.Fatalf("behind %d versions: %+v, %v", seen, v2, err)
		}
		v2.Record.Task.Goal = "swim"
		done(t, v2.Record.Seal())
		if seen++; seen == 3 {
			break
		}
		v = b.learn(t, v, string(rune('a'+seen)))
	}
}

// Of a store that can't tell what is new a subscription asks for it, and reads nothing again.
func TestSubscribeToAStoreThatTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t)
		b.versions(t, "r", 3)
		s := &crowded{Store: b.store}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		seen := 0
		for _, err := range ledgerOver(t, struct{ checkpoint.Store }{s}, nil).Subscribe(ctx, "r", 0) {
			if seen++; err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if seen != 4 || s.read != 5 { // two entries stand before the versions
			t.Errorf("%d were yielded, and %d entries read, want each of 5 once", seen, s.read)
		}
	})
}

// anew makes another record of the id, of that many versions.
func (b *book) anew(t *testing.T, n int) {
	t.Helper()
	r := draft("r")
	r.Task.Goal = "swim"
	v := b.create(t, r)
	for range n - 1 {
		v = b.learn(t, v, string(rune('a'+v.Number)))
	}
}

// restore imports a record.
func (b *book) restore(t *testing.T, backup []byte) *record.Version {
	t.Helper()
	v, err := b.Import(t.Context(), bytes.NewReader(backup))
	done(t, err)
	return v
}
