package record_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
	"github.com/pawlgo/pawl/supervisor"
)

// A run of one graph stops at a question. Another graph, over another store, takes its work over
// from the approved point; the record of the new run names the old one as its parent, also where
// only the file of it went along.
func TestWorkIsHandedOverToAnotherGraph(t *testing.T) {
	b := newBook(t)
	d := inquire(t, b.store, []string{"ask"}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Ask[string](ctx, "who", "who goes on?")
		return err
	})
	_, err := d.Run(t.Context(), "first", nil)
	rests(t, err)
	b.now = time.Now()
	v := b.create(t, from(t, d, "first", record.Options{Goal: "walk"}))
	point := v.Record.ResumePoints[0].ID
	if _, err := record.HandOver(v.Record, point, b.now); !errors.Is(err, record.ErrNotApproved) {
		t.Errorf("before it is approved: %v", err)
	}
	_, err = b.Answer(t.Context(), "first", v.Record.QuestionsForUser[0].ID, "the other graph", ann)
	done(t, err)
	v, err = b.Approve(t.Context(), "first", point, ann)
	done(t, err)

	data, err := v.Record.Encode()
	done(t, err)
	read, err := record.Decode(data)
	done(t, err)
	work, err := record.HandOver(read, point, b.now)
	done(t, err)
	same(t, "work", []any{work.Point.NextSteps, work.Record.QuestionsForUser[0].Answer, len(work.Open)}, []any{[]string{"ask"}, "the other graph", 0})

	other := inquire(t, newStore(), []string{"go"}, func(ctx context.Context, q *Inquiry) error {
		return dag.Learn(ctx, dag.Learning{ID: "l", Content: q.Answer.Get()})
	})
	_, err = other.Start(t.Context(), "second", func(q *Inquiry) { q.Answer.Set(work.Record.Task.Goal) }, dispatcher.Labels(work.Labels()))
	done(t, err)
	r := from(t, other, "second", record.Options{})
	same(t, "then", []any{r.ParentCRHash, r.Learnings[0].Content}, []any{v.Record.ContentHash, "walk"})

	second := b.create(t, r)
	all, err := b.Ancestors(t.Context(), second.Record.ContentHash)
	done(t, err)
	same(t, "chain", ids(all, func(v record.Version) string { return v.Record.ID }), []string{"first", "first", "first"})
}

// What is handed over is what was approved, unaltered; what somebody should know first is told:
// age above a day, doubts, blockers, and conditions that nobody has checked.
func TestHandOverWarnsAndRefuses(t *testing.T) {
	b := newBook(t)
	r := asks("r", record.ResumePoint{Preconditions: []string{"it is dry"}}, 0)
	r.Blockers = []record.Blocker{{ID: "b", Description: "no coat", ReportedBy: bot}, {ID: "gone", Resolved: true, ReportedBy: bot}}
	r.ToolEffects = []record.ToolEffect{{ID: "e", ToolName: "t", Status: record.EffectInDoubt}, {ID: "not", ToolName: "t", Status: record.EffectNotDone}}
	b.create(t, r)
	_, err := b.Skip(t.Context(), "r", "q", ann)
	done(t, err)
	v, err := b.Approve(t.Context(), "r", "p", ann)
	done(t, err)
	work, err := record.HandOver(v.Record, "p", b.now.Add(24*time.Hour))
	done(t, err)
	want := []string{"blocker b: no coat", "nobody knows whether effect e has happened", "nobody has checked that it is dry"}
	same(t, "a day later", work.Warnings, want)
	same(t, "done", ids(work.Done, func(e record.ToolEffect) string { return e.ID }), []string{"e"})
	work, err = record.HandOver(v.Record, "p", b.now.Add(30*time.Hour))
	done(t, err)
	same(t, "later", work.Warnings, append([]string{"the record is 30 hours old"}, want...))

	altered := v.Record.Clone()
	altered.Task.Goal = "swim"
	var invalid *record.InvalidError
	if _, err := record.HandOver(altered, "p", b.now); !errors.As(err, &invalid) {
		t.Errorf("altered: %v", err)
	}
	if _, err := record.HandOver(v.Record, "x", b.now); !errors.Is(err, record.ErrNotFound) {
		t.Errorf("no point: %v", err)
	}
	v, err = b.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error {
		q := r.QuestionsForUser[0]
		q.ID, q.Status, q.AnsweredBy, q.AnsweredAt = "late", record.QuestionOpen, nil, 0
		r.QuestionsForUser = append(r.QuestionsForUser, q)
		return nil
	}, bot)
	done(t, err)
	if _, err := record.HandOver(v.Record, "p", b.now); !errors.Is(err, record.ErrBlocked) {
		t.Errorf("a question was asked after the approval: %v", err)
	}
	denied := newBook(t)
	denied.create(t, asks("r", record.ResumePoint{}, 0))
	v, err = denied.Deny(t.Context(), "r", "p", "too wet", ann)
	done(t, err)
	if _, err := record.HandOver(v.Record, "p", b.now); !errors.Is(err, record.ErrNotApproved) || strings.Contains(err.Error(), "Approve") {
		t.Errorf("denied, which nobody can approve any more: %v", err)
	}
}

// A run goes on, and its record with it: what the log tells now is a new version, what people have
// decided in the ledger stays, and points from which the run has gone on are gone.
func TestRecordGoesOnWithItsRun(t *testing.T) {
	b := newBook(t)
	d := inquire(t, b.store, []string{"decide", "ask"}, func(ctx context.Context, q *Inquiry) error {
		return dag.Decide(ctx, dag.Decision{ID: "way", Description: "left", OverridableBy: []dag.Authority{dag.Human}})
	}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Ask[string](ctx, "coat", "coat?")
		return errors.Join(err, dag.Learn(ctx, dag.Learning{ID: "l", Content: "dry"}))
	})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	before := from(t, d, "r", record.Options{})
	b.create(t, before)
	_, err = b.Override(t.Context(), "r", "way", "right", "", ann)
	done(t, err)

	_, err = b.Answer(t.Context(), "r", before.QuestionsForUser[0].ID, "no", bot) // which the run never heard
	done(t, err)

	done(t, d.Answer(t.Context(), "r", "", "yes", dispatcher.Author("ann")))
	_, err = d.Run(t.Context(), "r", nil)
	done(t, err)
	v, err := b.Advance(t.Context(), "r", from(t, d, "r", record.Options{}), cron)
	done(t, err)
	r := v.Record
	same(t, "then", []any{v.Number, r.Decisions[0].Description, r.QuestionsForUser[0].Answer, len(r.ResumePoints), r.Task.Status, r.ExecutionSummary.StepsCompleted, len(r.Learnings)},
		[]any{4, "right", "yes", 0, "completed", 2, 1})
	for _, old := range []*record.Record{before, r} {
		if again, err := b.Advance(t.Context(), "r", old, cron); err != nil || again.Number != 4 {
			t.Errorf("what is known already: %+v, %v", again, err)
		}
	}
}

// Records are kept beside runs, and nobody takes them for some: a supervisor does not recover
// them, a dispatcher does not run them, and the store itself finds them whole. All in a directory,
// where they are there again when it is opened again.
func TestRecordsLiveBesideRuns(t *testing.T) {
	dir := t.TempDir()
	store, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{})
	done(t, err)
	d := inquire(t, store, []string{"only"}, nothing)
	_, err = d.Run(t.Context(), "r", nil)
	done(t, err)
	l := ledgerOver(t, store, nil)
	v, err := l.Create(t.Context(), from(t, d, "r", record.Options{}), ann)
	done(t, err)
	_, err = l.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error { r.Task.Goal = "walk"; return nil }, ann)
	done(t, err)

	s, err := supervisor.New(store, supervisor.Options{}, d)
	done(t, err)
	if got, err := s.Recover(t.Context()); err != nil || len(got.Rested)+len(got.Failed)+len(got.Left)+len(got.Busy) > 0 {
		t.Errorf("a supervisor recovers %+v, %v", got, err)
	}
	others, err := store.List(t.Context(), checkpoint.Filter{Graph: "pawl.record"})
	done(t, err)
	if len(others) != 1 || others[0].Status != checkpoint.StatusCompleted {
		t.Fatalf("in the store it is %+v", others)
	}
	key := others[0].Run
	if _, err := d.Run(t.Context(), key, nil); err == nil {
		t.Error("a dispatcher has run a record")
	}
	if _, err := d.Turn(t.Context(), key, nil); err == nil {
		t.Error("a dispatcher has begun a turn of a record")
	}
	for finding, err := range checkpoint.Verify(t.Context(), store, key) {
		t.Errorf("the store finds %v, %v", finding, err)
	}
	done(t, store.Close())

	again, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{})
	done(t, err)
	defer func() { done(t, again.Close()) }()
	l = ledgerOver(t, again, nil)
	verdict, err := l.Verify(t.Context(), "r")
	if v, gerr := l.Get(t.Context(), "r"); gerr != nil || err != nil || !verdict.Valid || v.Number != 2 || v.Record.Task.Goal != "walk" {
		t.Errorf("opened again it is %+v, %v, %+v, %v", v, gerr, verdict, err)
	}
}

// An id that no store can keep is refused, and a record without one gets one.
func TestRecordIDs(t *testing.T) {
	b := newBook(t)
	b.create(t, draft(strings.Repeat("x", 244)))
	for _, id := range []string{strings.Repeat("x", 245), "a\nb"} {
		err := b.unchanged(t, func() error { _, err := b.Create(t.Context(), draft(id), ann); return err })
		if !errors.Is(err, checkpoint.ErrRunID) || !strings.Contains(err.Error(), "1 to 244 bytes") {
			t.Errorf("%.9q: %v", id, err)
		}
	}
	v := b.create(t, draft(""))
	w := b.create(t, draft(""))
	if got := []string{v.Record.ID, w.Record.ID}; slices.Contains(got, "") || v.Record.ID == w.Record.ID {
		t.Errorf("ids %q", got)
	}
}
