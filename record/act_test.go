package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/record"
)

// Of two who change the same version one is first. The other is told what is there now, and
// nothing of the record forks in silence.
func TestLife12OneOfTwoWritersIsFirst(t *testing.T) {
	b := newBook(t)
	v := b.create(t, draft("r"))
	set := func(goal string) func(*record.Record) error {
		return func(r *record.Record) error { r.Task.Goal = goal; return nil }
	}
	won, err := b.Update(t.Context(), "r", v.Record.ContentHash, set("run"), bot)
	done(t, err)
	err = b.unchanged(t, func() error {
		_, err := b.Update(t.Context(), "r", v.Record.ContentHash, set("sit"), ann)
		return err
	})
	var conflict *record.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, record.ErrConflict) || show(conflict.Head) != show(won.Record) {
		t.Errorf("the second writer is told %v", err)
	}

	b.now = time.UnixMilli(1) // a clock that goes back does not take versions with it
	back, err := b.Update(t.Context(), "r", won.Record.ContentHash, set("walk on"), bot)
	done(t, err)
	same(t, "times", back.Record.LastModifiedAt, won.Record.LastModifiedAt)
	won = back

	writers, results := 8, make(chan error, 8)
	var together sync.WaitGroup
	for i := range writers {
		together.Go(func() { // ends with its one update
			l, err := record.NewLedger(b.store, record.LedgerOptions{})
			if err == nil {
				_, err = l.Update(t.Context(), "r", won.Record.ContentHash, set(fmt.Sprint(i)), bot)
			}
			results <- err
		})
	}
	together.Wait()
	won = nil
	for range writers {
		switch err := <-results; {
		case err == nil && won == nil:
			won, err = b.Get(t.Context(), "r")
			done(t, err)
		case err == nil:
			t.Error("two writers were first")
		case !errors.As(err, &conflict) || conflict.Head.ParentCRHash == "":
			t.Error(err)
		}
	}
	if won == nil || won.Number != 4 || won.Unverified != "" {
		t.Errorf("in the end it is %+v", won)
	}
}

// A decision that only people may override: an agent is refused, and a person is not; what was
// decided stays as a variant, and who decided otherwise is told.
func TestLife13OverridesNeedAuthority(t *testing.T) {
	b := newBook(t)
	made := draft("r")
	made.Decisions[0].Confidence, made.Decisions[0].Alternatives = 0.9, []dag.Alternative{{Description: "right"}}
	b.create(t, made)
	err := b.unchanged(t, func() error {
		_, err := b.Override(t.Context(), "r", "way", "right", "dry", bot)
		return err
	})
	if !errors.Is(err, record.ErrAuthority) {
		t.Errorf("an agent: %v", err)
	}
	v, err := b.Override(t.Context(), "r", "way", "right", "dry", ann)
	done(t, err)
	d := v.Record.Decisions[0]
	same(t, "decision", []any{v.Number, d.Description, d.Rationale, d.Status, d.MadeBy, v.Record.LastModifiedBy},
		[]any{2, "right", "dry", dag.Accepted, ann, ann})
	same(t, "variants", d.Variants, []record.Variant{{Author: bot, Decision: "left", Rationale: "short", Status: dag.Tentative}})
	same(t, "what the agent said of its own", []any{d.Confidence, len(d.Alternatives)}, []any{0, 0})

	contested, err := record.NewLedger(b.store, record.LedgerOptions{Overridden: dag.Contested})
	done(t, err)
	v, err = contested.Override(t.Context(), "r", "way", "ahead", "", ann)
	done(t, err)
	same(t, "by another policy", []any{v.Record.Decisions[0].Status, len(v.Record.Decisions[0].Variants)}, []any{dag.Contested, 2})
}

// An open question blocks its point until it is answered or skipped, which happens once. After it
// has expired the point's policy says what comes.
func TestLife17QuestionsBlockTheirPoint(t *testing.T) {
	for name, end := range map[string]func(b *book) (*record.Version, error){
		"answered": func(b *book) (*record.Version, error) { return b.Answer(t.Context(), "r", "q", "yes", ann) },
		"skipped":  func(b *book) (*record.Version, error) { return b.Skip(t.Context(), "r", "q", ann) },
	} {
		b := newBook(t)
		b.create(t, asks("r", record.ResumePoint{}, 0))
		if err := b.unchanged(t, func() error { _, err := b.Approve(t.Context(), "r", "p", ann); return err }); !errors.Is(err, record.ErrBlocked) {
			t.Errorf("approved while it is open: %v", err)
		}
		v, err := end(b)
		done(t, err)
		q := v.Record.QuestionsForUser[0]
		same(t, name, []any{q.Status, q.AnsweredBy, q.AnsweredAt}, []any{name, ann, 1_000_000})
		if err := b.unchanged(t, func() error { _, err := b.Answer(t.Context(), "r", "q", "no", ann); return err }); !errors.Is(err, record.ErrSettled) {
			t.Errorf("%s, and answered: %v", name, err)
		}
		v, err = b.Approve(t.Context(), "r", "p", ann)
		done(t, err)
		same(t, "approved", []any{v.Record.ResumePoints[0].ApprovalStatus, v.Record.ResumePoints[0].ApprovedBy}, []any{"approved", ann})
		if err := b.unchanged(t, func() error { _, err := b.Deny(t.Context(), "r", "p", "no", ann); return err }); !errors.Is(err, record.ErrSettled) {
			t.Errorf("approved, and denied: %v", err)
		}
	}

	for policy, want := range map[record.TimeoutPolicy][]any{
		record.TimeoutAbort:    {"denied", "any", record.Automatic, 1},
		record.TimeoutEscalate: {"pending", "human", nil, 1},
		record.TimeoutContinue: {"auto-approved", "any", record.Automatic, 1},
		record.TimeoutRetry:    {"pending", "any", nil, 2},
	} {
		b := newBook(t)
		b.create(t, asks("r", record.ResumePoint{OnTimeout: policy, SafeToAutoExecute: true}, 2_000_000))
		if v, err := b.Expire(t.Context(), "r"); err != nil || v.Number != 1 {
			t.Errorf("%s: before the time: %+v, %v", policy, v, err)
		}
		b.now = time.UnixMilli(2_000_000)
		for what, refused := range map[string]func() error{
			"answered": func() error { _, err := b.Answer(t.Context(), "r", "q", "late", ann); return err },
			"approved": func() error { _, err := b.Approve(t.Context(), "r", "p", ann); return err },
		} {
			if err := b.unchanged(t, refused); !errors.Is(err, record.ErrExpired) && !errors.Is(err, record.ErrBlocked) {
				t.Errorf("%s: %s too late: %v", policy, what, err)
			}
		}
		v, err := b.Expire(t.Context(), "r")
		done(t, err)
		p := v.Record.ResumePoints[0]
		same(t, string(policy), []any{p.ApprovalStatus, p.RequiredAuthority, p.ApprovedBy, len(v.Record.QuestionsForUser)}, want)
		if p.SafeToAutoExecute != (policy != record.TimeoutEscalate) {
			t.Errorf("%s: safe to go on from by itself: %v", policy, p.SafeToAutoExecute)
		}
		same(t, "question", []any{v.Record.QuestionsForUser[0].Status, v.Record.LastModifiedBy}, []any{"expired", record.Automatic})
		if again, err := b.Expire(t.Context(), "r"); err != nil || again.Number != v.Number {
			t.Errorf("%s: expired twice: %+v, %v", policy, again, err)
		}
		if policy == record.TimeoutRetry {
			q := v.Record.QuestionsForUser[1]
			same(t, "asked again", []any{q.ID, q.Status, q.ExpiresAt}, []any{"q~2", "open", 3_000_000})
			_, err := b.Answer(t.Context(), "r", "q~2", "yes", ann)
			done(t, err)
			_, err = b.Approve(t.Context(), "r", "p", bot)
			done(t, err)
		}
	}
}

// What needs a person is never gone on from without one: not because it is said to be safe, nor
// because its time is over. What anybody may do, and is safe, the system does.
func TestLife18SafeIsNoAuthority(t *testing.T) {
	b := newBook(t)
	r := asks("r", record.ResumePoint{RequiredAuthority: dag.Human, SafeToAutoExecute: true, OnTimeout: record.TimeoutContinue}, 2_000_000)
	r.ResumePoints = append(r.ResumePoints,
		record.ResumePoint{ID: "safe", RequiredAuthority: record.AnyAuthority, SafeToAutoExecute: true, OnTimeout: record.TimeoutAbort, ApprovalStatus: record.ApprovalPending},
		record.ResumePoint{ID: "unsafe", RequiredAuthority: record.AnyAuthority, OnTimeout: record.TimeoutAbort, ApprovalStatus: record.ApprovalPending},
		record.ResumePoint{ID: "agent", RequiredAuthority: dag.Agent, SafeToAutoExecute: true, OnTimeout: record.TimeoutAbort, ApprovalStatus: record.ApprovalPending})
	b.create(t, r)
	_, err := b.Answer(t.Context(), "r", "q", "yes", ann)
	done(t, err)
	for _, point := range []string{"p", "unsafe", "agent"} {
		if err := b.unchanged(t, func() error { _, err := b.AutoApprove(t.Context(), "r", point); return err }); !errors.Is(err, record.ErrAuthority) {
			t.Errorf("%s: %v", point, err)
		}
	}
	v, err := b.AutoApprove(t.Context(), "r", "safe")
	done(t, err)
	p := v.Record.ResumePoints[1]
	same(t, "safe", []any{p.ApprovalStatus, p.ApprovedBy, p.ApprovedBy.Type}, []any{"auto-approved", record.Automatic, dag.System})
	for _, by := range []record.Author{bot, cron} {
		if err := b.unchanged(t, func() error { _, err := b.Approve(t.Context(), "r", "p", by); return err }); !errors.Is(err, record.ErrAuthority) {
			t.Errorf("%s: %v", by, err)
		}
	}
	_, err = b.Approve(t.Context(), "r", "agent", bot)
	done(t, err)

	b.create(t, asks("late", record.ResumePoint{RequiredAuthority: dag.Human, SafeToAutoExecute: true, OnTimeout: record.TimeoutContinue}, 2_000_000))
	b.now = time.UnixMilli(3_000_000)
	v, err = b.Expire(t.Context(), "late")
	done(t, err)
	same(t, "late", []any{v.Record.ResumePoints[0].ApprovalStatus, v.Record.QuestionsForUser[0].Status}, []any{"pending", "expired"})
}

// A question that is open holds up its point also where nobody has to decide, and time decides
// nothing that somebody has decided.
func TestTimeAndOpenQuestions(t *testing.T) {
	b := newBook(t)
	free := record.ResumePoint{RequiredAuthority: record.AnyAuthority, SafeToAutoExecute: true, OnTimeout: record.TimeoutContinue}
	b.create(t, asks("auto", free, 0))
	if err := b.unchanged(t, func() error { _, err := b.AutoApprove(t.Context(), "auto", "p"); return err }); !errors.Is(err, record.ErrBlocked) {
		t.Errorf("approved by itself: %v", err)
	}

	r := asks("two", free, 2_000_000)
	q := r.QuestionsForUser[0]
	q.ID, q.ExpiresAt = "q2", 0
	r.QuestionsForUser = append(r.QuestionsForUser, q)
	b.create(t, r)
	b.create(t, asks("denied", free, 2_000_000))
	_, err := b.Deny(t.Context(), "denied", "p", "no", ann)
	done(t, err)
	b.now = time.UnixMilli(3_000_000)
	for id, want := range map[string]record.ApprovalStatus{"two": record.ApprovalPending, "denied": record.ApprovalDenied} {
		v, err := b.Expire(t.Context(), id)
		done(t, err)
		same(t, id, []any{v.Record.ResumePoints[0].ApprovalStatus, v.Record.QuestionsForUser[0].Status}, []any{want, "expired"})
	}
}

// Versions are made by their authors, and the record by whoever began it.
func TestWhoMadeARecord(t *testing.T) {
	b := newBook(t)
	first := b.create(t, draft("r")).Record
	b.now = b.now.Add(time.Hour)
	v, err := b.Update(t.Context(), "r", first.ContentHash, func(r *record.Record) error {
		r.CreatedBy, r.CreatedAt, r.Task.Goal = cron, 1, "run"
		return nil
	}, ann)
	done(t, err)
	same(t, "the second version", []any{v.Record.CreatedBy, v.Record.CreatedAt, v.Record.LastModifiedBy, v.Record.LastModifiedAt},
		[]any{first.CreatedBy, first.CreatedAt, ann, b.now.UnixMilli()})
}

// A point that nobody was asked about times out as well, counted from when it came to be.
func TestPointWithoutQuestionsTimesOut(t *testing.T) {
	b := newBook(t)
	r := asks("r", record.ResumePoint{OnTimeout: record.TimeoutRetry, TimeoutMs: 500}, 0)
	r.QuestionsForUser = nil
	b.create(t, r)
	b.now = time.UnixMilli(1_000_499)
	if v, err := b.Expire(t.Context(), "r"); err != nil || v.Number != 1 {
		t.Fatalf("too early: %+v, %v", v, err)
	}
	b.now = time.UnixMilli(1_000_500)
	v, err := b.Expire(t.Context(), "r")
	done(t, err)
	same(t, "point", []any{v.Number, v.Record.ResumePoints[0].RequiredAuthority}, []any{2, dag.Human})
	if v, err := b.Expire(t.Context(), "r"); err != nil || v.Number != 2 {
		t.Errorf("a second time: %+v, %v", v, err)
	}
}

// Of a point about which somebody was asked time decides when the question ends, and not how long
// the point has been there: it stays pending also when it was answered.
func TestPointWithAQuestionTimesOutWithThat(t *testing.T) {
	for name, end := range map[string]func(*book) error{
		"open":     func(*book) error { return nil },
		"answered": func(b *book) error { _, err := b.Answer(t.Context(), "r", "q", "yes", ann); return err },
		"skipped":  func(b *book) error { _, err := b.Skip(t.Context(), "r", "q", ann); return err },
	} {
		b := newBook(t)
		b.create(t, asks("r", record.ResumePoint{OnTimeout: record.TimeoutAbort, TimeoutMs: 500}, 0))
		done(t, end(b))
		b.now = b.now.Add(time.Hour)
		if v, err := b.Expire(t.Context(), "r"); err != nil || v.Record.ResumePoints[0].ApprovalStatus != record.ApprovalPending {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// What is asked again blocks the points that are to be tried again, and no other; and it is asked
// though something of that id has ended before.
func TestWhatIsAskedAgainBlocksWhatIsTriedAgain(t *testing.T) {
	b := newBook(t)
	r := asks("r", record.ResumePoint{OnTimeout: record.TimeoutRetry}, 2_000_000)
	later := r.ResumePoints[0]
	later.ID, later.OnTimeout = "escalated", record.TimeoutEscalate
	again := r.ResumePoints[0]
	again.ID = "p2"
	r.ResumePoints = append(r.ResumePoints, later, again)
	r.QuestionsForUser[0].BlocksResumePoints = []string{"p", "escalated", "p2"}
	ended := r.QuestionsForUser[0]
	ended.ID, ended.Status, ended.AnsweredBy, ended.BlocksResumePoints = "q~2", record.QuestionAnswered, &ann, []string{}
	r.QuestionsForUser = append(r.QuestionsForUser, ended)
	b.create(t, r)
	b.now = time.UnixMilli(2_000_000)
	v, err := b.Expire(t.Context(), "r")
	done(t, err)
	if len(v.Record.QuestionsForUser) != 3 {
		t.Fatalf("the questions are %s", show(v.Record.QuestionsForUser))
	}
	q := v.Record.QuestionsForUser[2]
	same(t, "asked again", []any{q.ID, q.Status, q.BlocksResumePoints}, []any{"q~3", "open", []string{"p", "p2"}})
	same(t, "what has ended", v.Record.QuestionsForUser[1], ended)
	_, err = b.Approve(t.Context(), "r", "escalated", ann)
	done(t, err)
}

// An update does not do what has a verb and an authority of its own, and what is refused, by the
// ledger or by who makes the change, has changed nothing.
func TestUpdateDecidesNothing(t *testing.T) {
	b := newBook(t)
	r := asks("r", record.ResumePoint{RequiredAuthority: dag.Human}, 0)
	r.ToolEffects = []record.ToolEffect{{ID: "e", ToolName: "t", Status: record.EffectDone}, {ID: "doubt", ToolName: "t", Status: record.EffectInDoubt}}
	v := b.create(t, r)
	mine := errors.New("mine")
	for name, change := range map[string]func(*record.Record) error{
		"answers":          func(r *record.Record) error { r.QuestionsForUser[0].Status = record.QuestionAnswered; return nil },
		"takes a question": func(r *record.Record) error { r.QuestionsForUser = nil; return nil },
		"adds an answered one": func(r *record.Record) error {
			q := r.QuestionsForUser[0]
			q.ID, q.Status = "q2", record.QuestionSkipped
			r.QuestionsForUser = append(r.QuestionsForUser, q)
			return nil
		},
		"approves":       func(r *record.Record) error { r.ResumePoints[0].ApprovalStatus = record.ApprovalGiven; return nil },
		"weakens a gate": func(r *record.Record) error { r.ResumePoints[0].RequiredAuthority = record.AnyAuthority; return nil },
		"takes a point":  func(r *record.Record) error { r.ResumePoints = nil; return nil },
		"adds an approved one": func(r *record.Record) error {
			p := r.ResumePoints[0]
			p.ID, p.ApprovalStatus = "p2", record.ApprovalGiven
			r.ResumePoints = append(r.ResumePoints, p)
			return nil
		},
		"adds one that ann answered": func(r *record.Record) error {
			q := r.QuestionsForUser[0]
			q.ID, q.AnsweredBy = "q2", &ann
			r.QuestionsForUser = append(r.QuestionsForUser, q)
			return nil
		},
		"adds one that ann approved": func(r *record.Record) error {
			p := r.ResumePoints[0]
			p.ID, p.ApprovedBy = "p2", &ann
			r.ResumePoints = append(r.ResumePoints, p)
			return nil
		},
		"decides otherwise":         func(r *record.Record) error { r.Decisions[0].Description = "right"; return nil },
		"takes a decision":          func(r *record.Record) error { r.Decisions = nil; return nil },
		"takes an effect":           func(r *record.Record) error { r.ToolEffects = r.ToolEffects[1:]; return nil },
		"changes an effect":         func(r *record.Record) error { r.ToolEffects[0].Reversible = true; return nil },
		"doubts an effect":          func(r *record.Record) error { r.ToolEffects[0].Status = record.EffectInDoubt; return nil },
		"rewrites a doubt":          func(r *record.Record) error { r.ToolEffects[1].IdempotencyKey = "k"; return nil },
		"says what came of a doubt": func(r *record.Record) error { r.ToolEffects[1].Outputs = json.RawMessage("{}"); return nil },
		"ends another than was in doubt": func(r *record.Record) error {
			r.ToolEffects[1].Status, r.ToolEffects[1].Inputs = record.EffectDone, json.RawMessage(`{"n":7}`)
			return nil
		},
		"is not valid": func(r *record.Record) error { r.Task.Status = "lost"; return nil },
		"fails":        func(r *record.Record) error { r.Task.Goal = "half"; return mine },
	} {
		if err := b.unchanged(t, func() error { _, err := b.Update(t.Context(), "r", v.Record.ContentHash, change, ann); return err }); err == nil {
			t.Errorf("%s: done", name)
		}
	}
	if err := b.unchanged(t, func() error {
		_, err := b.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error { r.Decisions[0].MadeBy = ann; return nil }, bot)
		return err
	}); !errors.Is(err, record.ErrAuthority) {
		t.Errorf("in somebody else's name: %v", err)
	}
	next, err := b.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error {
		r.Decisions[0].Status = dag.Accepted // it was tentative, and its maker's
		e := &r.ToolEffects[1]
		e.Status, e.Outputs, e.DurationMs = record.EffectDone, json.RawMessage(`{"value":7}`), 3
		r.Task.Status, r.ID, r.MerkleRoot = record.TaskCompleted, "another", "x"
		return nil
	}, bot)
	done(t, err)
	same(t, "what may be changed", []any{next.Record.ID, next.Record.Decisions[0].Status, next.Record.ParentCRHash, next.Number},
		[]any{"r", dag.Accepted, v.Record.ContentHash, 2})
	same(t, "nothing", b.learnNothing(t, next), 2)
}

// learnNothing is the number of the version after an update that changes nothing.
func (b *book) learnNothing(t *testing.T, v *record.Version) int {
	t.Helper()
	again, err := b.Update(t.Context(), v.Record.ID, v.Record.ContentHash, func(*record.Record) error { return nil }, ann)
	done(t, err)
	return again.Number
}

// What a call can't work with is refused before anything happens.
func TestLedgerRefuses(t *testing.T) {
	b := newBook(t)
	b.create(t, asks("r", record.ResumePoint{}, 0))
	nobody := record.Author{}
	var none context.Context
	var bad *record.ArgumentError
	for name, call := range map[string]func() error{
		"create nothing":  func() error { _, err := b.Create(t.Context(), nil, ann); return err },
		"create, nobody":  func() error { _, err := b.Create(t.Context(), draft("x"), nobody); return err },
		"update nothing":  func() error { _, err := b.Update(t.Context(), "r", "", nil, ann); return err },
		"answer, nobody":  func() error { _, err := b.Answer(t.Context(), "r", "q", "a", nobody); return err },
		"no context":      func() error { _, err := b.Get(none, "r"); return err },
		"a strategy":      func() error { _, err := b.Merge(t.Context(), "r", "r", "best", ann); return err },
		"no root":         func() error { _, err := b.Verify(t.Context(), "r", record.Root{}); return err },
		"advance nothing": func() error { _, err := b.Advance(t.Context(), "r", nil, ann); return err },
		"advance another": func() error { _, err := b.Advance(t.Context(), "r", full(t), ann); return err },
		"no writer":       func() error { return b.Export(t.Context(), "r", nil) },
		"no reader":       func() error { _, err := b.Import(t.Context(), nil); return err },
		"hand over nil":   func() error { _, err := record.HandOver(nil, "p", b.now); return err },
		"diff nil":        func() error { _, err := record.Diff(nil, draft("r")); return err },
		"no store":        func() error { _, err := record.NewLedger(nil, record.LedgerOptions{}); return err },
		"a policy": func() error {
			_, err := record.NewLedger(b.store, record.LedgerOptions{Overridden: dag.Rejected})
			return err
		},
	} {
		if err := b.unchanged(t, call); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, call := range map[string]func() error{
		"no record":   func() error { _, err := b.Get(t.Context(), "x"); return err },
		"no hash":     func() error { _, err := b.GetByHash(t.Context(), "x"); return err },
		"no question": func() error { _, err := b.Answer(t.Context(), "r", "x", "a", ann); return err },
		"no point":    func() error { _, err := b.Approve(t.Context(), "r", "x", ann); return err },
		"no decision": func() error { _, err := b.Override(t.Context(), "r", "x", "a", "", ann); return err },
		"no other":    func() error { _, err := b.Merge(t.Context(), "r", "x", record.PreferA, ann); return err },
	} {
		if err := b.unchanged(t, call); !errors.Is(err, record.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.unchanged(t, func() error { _, err := b.Create(t.Context(), draft("r"), ann); return err }); !errors.Is(err, record.ErrExists) {
		t.Errorf("an id twice: %v", err)
	}
	bogus := draft("x")
	bogus.Task.Status = "lost"
	var invalid *record.InvalidError
	if err := b.unchanged(t, func() error { _, err := b.Create(t.Context(), bogus, ann); return err }); !errors.As(err, &invalid) {
		t.Errorf("no record: %v", err)
	}
}

// A reader sees every version once, those that are there and those that come, and comes back
// where it was.
func TestSubscribe(t *testing.T) {
	for name, wrap := range map[string]func(checkpoint.Store) checkpoint.Store{
		"told":  func(s checkpoint.Store) checkpoint.Store { return s },
		"looks": func(s checkpoint.Store) checkpoint.Store { return struct{ checkpoint.Store }{s} },
	} {
		subscribes(t, name, wrap)
	}
	for _, err := range newBook(t).Subscribe(t.Context(), "x", 0) {
		if !errors.Is(err, record.ErrNotFound) {
			t.Errorf("no record: %v", err)
		}
	}
}

func subscribes(t *testing.T, name string, wrap func(checkpoint.Store) checkpoint.Store) {
	t.Helper()
	b := newBook(t)
	all := b.versions(t, "r", 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	defer cancel(nil)
	var seen []int
	for v, err := range ledgerOver(t, wrap(b.store), nil).Subscribe(ctx, "r", 1) {
		if err != nil {
			if !errors.Is(err, enough) {
				t.Errorf("%s: ends with %v", name, err)
			}
			break
		}
		seen = append(seen, v.Number)
		if len(seen) < 3 {
			all = append(all, b.learn(t, all[len(all)-1], fmt.Sprint(len(seen))))
		} else {
			cancel(enough)
		}
	}
	same(t, name, seen, []int{2, 3, 4})
}

// Who may not answer a question is told so, and may not skip it either; an override has to decide
// otherwise; and which run a record tells of no update says.
func TestRefusalsOfAnswersAndOverrides(t *testing.T) {
	b := newBook(t)
	v := b.create(t, gated("r"))
	for name, of := range map[string]struct {
		want   error
		refuse func() error
	}{
		"answer":   {record.ErrAuthority, func() error { _, err := b.Answer(t.Context(), "r", "q", "yes", bot); return err }},
		"skip":     {record.ErrAuthority, func() error { _, err := b.Skip(t.Context(), "r", "q", cron); return err }},
		"override": {record.ErrSettled, func() error { _, err := b.Override(t.Context(), "r", "way", "left", "", ann); return err }},
	} {
		if err := b.unchanged(t, of.refuse); !errors.Is(err, of.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	next, err := b.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error {
		r.Source, r.Task.Goal = &record.Source{Run: "another", Seq: 9}, "run"
		return nil
	}, ann)
	done(t, err)
	same(t, "source and goal", []any{next.Record.Source, next.Record.Task.Goal}, []any{nil, "run"})
}

// Before the first version there is none: who has seen fewer than none gets all.
func TestSubscribeFromBeforeTheBeginning(t *testing.T) {
	b := newBook(t)
	b.create(t, draft("r"))
	for v, err := range b.Subscribe(t.Context(), "r", -1) {
		if err != nil || v.Number != 1 {
			t.Errorf("%+v, %v", v, err)
		}
		break
	}
}

// A keeper is a store that can't take a lease back, though it does.
type keeper struct{ *memory.Store }

func (k keeper) Release(ctx context.Context, l checkpoint.Lease) error {
	return errors.Join(k.Store.Release(ctx, l), errors.New("no answer"))
}

// What is durable is no error, though the lease under which it was written could not be given back.
func TestVersionIsWrittenThoughItsLeaseIsKept(t *testing.T) {
	l := ledgerOver(t, keeper{newStore()}, time.Now)
	v, err := l.Create(t.Context(), draft("r"), bot)
	if err != nil || v.Number != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	if v, err = l.Override(t.Context(), "r", "way", "right", "", ann); err != nil || v.Number != 2 {
		t.Errorf("%+v, %v", v, err)
	}
}

// A store that hangs when a lease is given back holds nobody who writes a version for ever.
func TestVersionIsWrittenThoughTheStoreHangsBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Faulty
		store.FailRead = func(ctx context.Context, method, _ string) error {
			if method != "Release" {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		l := ledgerOver(t, &store, time.Now)
		if v, err := l.Create(t.Context(), draft("r"), bot); err != nil || v.Number != 1 {
			t.Errorf("%+v, %v", v, err)
		}
	})
}
