package record_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/record"
)

// A crowded is a store in which something happens before the first lease is given, and that counts
// what is read.
type crowded struct {
	*memory.Store
	meanwhile func()
	read      int
}

func (s *crowded) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if f := s.meanwhile; f != nil {
		s.meanwhile = nil
		f()
	}
	return s.Store.Acquire(ctx, run, owner)
}

func (s *crowded) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, run, from, to) {
			if s.read++; !yield(e, err) {
				return
			}
		}
	}
}

// Who comes second reads what the first one has added, and not all of the record again; and if
// there is another record by then, or none, he is told of that.
func TestBesideAnotherWriter(t *testing.T) {
	const versions, preamble = 20, 2
	for name, c := range map[string]struct {
		meanwhile func(*book)
		read      int
		want      error
		learned   int
	}{
		"one version more": {func(b *book) {
			v, err := b.Get(t.Context(), "r")
			done(t, err)
			b.learn(t, v, "beside")
		}, versions + preamble + 1, nil, versions},
		"deleted": {func(b *book) { done(t, b.store.Delete(t.Context(), "pawl.record/r")) }, versions + preamble, record.ErrNotFound, 0},
		"another record": {func(b *book) {
			done(t, b.store.Delete(t.Context(), "pawl.record/r"))
			b.versions(t, "r", versions+5)
		}, -1, nil, versions + 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			r := asks("r", record.ResumePoint{}, 0)
			v := b.create(t, r)
			for i := 1; i < versions; i++ {
				v = b.learn(t, v, string(rune('A'+i)))
			}
			s := &crowded{Store: b.store, meanwhile: func() { c.meanwhile(b) }}
			v, err := ledgerOver(t, s, nil).Override(t.Context(), "r", "way", "right", "", ann)
			if !errors.Is(err, c.want) || c.want == nil && (err != nil || len(v.Record.Learnings) != c.learned || v.Record.Decisions[0].Description != "right") {
				t.Errorf("Override = %+v, %v", v, err)
			}
			if c.read >= 0 && s.read != c.read {
				t.Errorf("%d entries were read, want %d", s.read, c.read)
			}
			if verdict, err := b.Verify(t.Context(), "r"); c.want == nil && (err != nil || !verdict.Valid) {
				t.Errorf("Verify = %+v, %v", verdict, err)
			}
		})
	}
}

// A cutOff store has the context of an append end when that is durable.
type cutOff struct {
	*memory.Store
	end context.CancelFunc
}

func (s *cutOff) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	defer s.end()
	return s.Store.Append(ctx, l, after, entries)
}

// A context that ends behind an append keeps no lease: what was written is, and the next writer
// need not wait.
func TestContextThatEndsBehindAnAppend(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store := &cutOff{newStore(), cancel}
	_, err := ledgerOver(t, store, time.Now).Create(ctx, draft("r"), bot)
	done(t, err)
	for info, err := range checkpoint.Runs(t.Context(), store, checkpoint.Filter{}) {
		if done(t, err); info.Owner != "" {
			t.Errorf("%s is held by %s", info.Run, info.Owner)
		}
	}
}
