package record_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/record"
)

// A book is a ledger whose time stands still until somebody moves it.
type book struct {
	*record.Ledger
	store *memory.Store
	now   time.Time
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{store: newStore(), now: time.UnixMilli(1_000_000)}
	b.Ledger = ledgerOver(t, b.store, func() time.Time { return b.now })
	return b
}

func ledgerOver(t *testing.T, s checkpoint.Store, now func() time.Time) *record.Ledger {
	t.Helper()
	l, err := record.NewLedger(s, record.LedgerOptions{Now: now})
	done(t, err)
	return l
}

// draft is a record as somebody makes one by hand.
func draft(id string) *record.Record {
	return &record.Record{
		ID: id, Task: record.Task{ID: "t", Goal: "walk", Status: record.TaskInProgress},
		Decisions: []record.Decision{{ID: "way", Description: "left", Status: dag.Tentative, Rationale: "short",
			MadeBy: bot, MadeAt: 1, OverridableBy: []dag.Authority{dag.Human}}},
		Metadata: record.Metadata{Priority: record.PriorityLow},
	}
}

// asks is a draft with a question that blocks a point.
func asks(id string, p record.ResumePoint, expires int64) *record.Record {
	r := draft(id)
	p.ID, p.ApprovalStatus = "p", record.ApprovalPending
	if p.RequiredAuthority == "" {
		p.RequiredAuthority = record.AnyAuthority
	}
	if p.OnTimeout == "" {
		p.OnTimeout = record.TimeoutEscalate
	}
	r.ResumePoints = []record.ResumePoint{p}
	r.QuestionsForUser = []record.Question{{ID: "q", Type: record.AskQuestion, Question: "coat?", Status: record.QuestionOpen,
		Priority: record.PriorityBlocking, BlocksResumePoints: []string{"p"}, ExpiresAt: expires}}
	return r
}

func (b *book) create(t *testing.T, r *record.Record) *record.Version {
	t.Helper()
	v, err := b.Create(t.Context(), r, bot)
	done(t, err)
	return v
}

// learn adds a version with a learning more.
func (b *book) learn(t *testing.T, v *record.Version, what string) *record.Version {
	t.Helper()
	next, err := b.Update(t.Context(), v.Record.ID, v.Record.ContentHash, func(r *record.Record) error {
		r.Learnings = append(r.Learnings, record.Learning{ID: what, Content: what, LearnedBy: bot})
		return nil
	}, bot)
	done(t, err)
	return next
}

// versions creates a record of that many versions.
func (b *book) versions(t *testing.T, id string, n int) []*record.Version {
	t.Helper()
	all := []*record.Version{b.create(t, draft(id))}
	for len(all) < n {
		all = append(all, b.learn(t, all[len(all)-1], string(rune('a'+len(all)%26))+id+string(rune('a'+len(all)/26))))
	}
	return all
}

// unchanged calls something that is to be refused, and checks that the store is as it was.
func (b *book) unchanged(t *testing.T, refused func() error) error {
	t.Helper()
	before := entries(t, b.store)
	err := refused()
	if err == nil {
		t.Error("not refused")
	}
	if entries(t, b.store) != before {
		t.Errorf("refused with %v, and changed the store", err)
	}
	return err
}

// forged is a store with the entries of another, of which change has made others: sealed anew, as
// somebody can who may write to the store.
func forged(t *testing.T, from checkpoint.Store, change func([]checkpoint.Entry) []checkpoint.Entry) checkpoint.Store {
	t.Helper()
	to := newStore()
	infos, err := from.List(t.Context(), checkpoint.Filter{})
	done(t, err)
	for _, i := range infos {
		var all []checkpoint.Entry
		for e, err := range from.Read(t.Context(), i.Run, 0, 0) {
			done(t, err)
			e.Data = append([]byte(nil), e.Data...)
			all = append(all, e)
		}
		lease, err := to.Acquire(t.Context(), i.Run, "forger")
		done(t, err)
		_, err = to.Append(t.Context(), lease, checkpoint.Head{}, change(all))
		done(t, err)
		done(t, to.Release(t.Context(), lease))
	}
	return to
}

// A damagedStore can't read one entry any more.
type damagedStore struct {
	checkpoint.Store
	seq uint64
}

func (s damagedStore) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, run, from, to) {
			if err == nil && e.Seq == s.seq {
				e, err = checkpoint.Entry{}, &checkpoint.CorruptError{Run: run, Seq: e.Seq, Reason: "a bit has flipped"}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
