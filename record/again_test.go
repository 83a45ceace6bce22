package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/record"
)

// An effect that begins again is what it is then: of how it began before nothing is told.
func TestEffectThatBeginsAgain(t *testing.T) {
	b := dag.New[Inquiry]("inquiry")
	dag.Step(b, "pay", func(ctx context.Context, _ *Inquiry) error {
		first := dag.Attempt(ctx) == 1
		options := []dag.EffectOption{dag.Replayable}
		if !first {
			options = nil
		}
		_, err := dag.Effect(ctx, "card", 40, func(context.Context, int) (int, error) {
			if first {
				return 0, errors.Join(dag.NotDone, errors.New("closed"))
			}
			return 1, nil
		}, options...)
		return err
	}).With(dag.Policy{Attempts: 2})
	d := inquiry(t, b, newStore(), dispatcher.Options{})
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	r := from(t, d, "r", record.Options{})
	if len(r.ToolEffects) != 1 || r.ToolEffects[0].Status != record.EffectDone || r.ToolEffects[0].IsReplayable {
		t.Errorf("the effects are %s", show(r.ToolEffects))
	}
}

// One that has not happened, and under which its process dies when it begins again, is in doubt.
func TestEffectThatBeginsAgainIsInDoubt(t *testing.T) {
	store := &pawltest.Mortal{Store: newStore()}
	b := dag.New[Inquiry]("inquiry")
	dag.Step(b, "pay", func(ctx context.Context, _ *Inquiry) error {
		_, err := dag.Effect(ctx, "card", 40, func(context.Context, int) (int, error) {
			if dag.Attempt(ctx) == 1 {
				return 0, errors.Join(dag.NotDone, errors.New("closed"))
			}
			store.Kill()
			return 1, nil
		})
		return err
	}).With(dag.Policy{Attempts: 2})
	d := inquiry(t, b, store, dispatcher.Options{})
	if _, err := d.Run(t.Context(), "r", nil); !errors.Is(err, pawltest.ErrDead) {
		t.Fatal(err)
	}
	done(t, store.Revive(t.Context()))
	r := from(t, inquiry(t, b, store, dispatcher.Options{}), "r", record.Options{})
	if len(r.ToolEffects) != 1 || r.ToolEffects[0].Status != record.EffectInDoubt {
		t.Errorf("the effects are %s", show(r.ToolEffects))
	}
}

// What is voided in a turn takes back nothing of the turns before.
func TestVoidIsOfItsTurn(t *testing.T) {
	turn := 0
	b := dag.New[Inquiry]("inquiry")
	dag.Step(b, "think", func(ctx context.Context, _ *Inquiry) error {
		return dag.Learn(ctx, dag.Learning{ID: fmt.Sprint("turn ", turn), Content: "dry"})
	})
	dag.Step(b, "ask", func(ctx context.Context, _ *Inquiry) error {
		if turn == 0 {
			return nil
		}
		_, err := dag.Ask[string](ctx, "who", "who?")
		return err
	})
	d := inquiry(t, b, newStore(), dispatcher.Options{})
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	turn++
	_, err = d.Turn(t.Context(), "r", nil)
	rests(t, err)
	learned := func() []string {
		return ids(from(t, d, "r", record.Options{}).Learnings, func(l record.Learning) string { return l.ID })
	}
	same(t, "before", learned(), []string{"turn 0", "turn 1"})
	done(t, d.Edit(t.Context(), "r", func(q *Inquiry) { q.Answer.Set("hers") }, dispatcher.EditOptions{Void: []string{"think"}}))
	same(t, "behind the void", learned(), []string{"turn 0"})
}

// Who may end a wait that several may is the strictest of them, in whatever order they stand.
func TestStrictestOfThoseWhoMayEndAWait(t *testing.T) {
	for _, order := range [][2]string{{"human", "agent"}, {"agent", "human"}} {
		d := inquire(t, newStore(), []string{"ask"}, func(ctx context.Context, _ *Inquiry) error {
			_, err := dag.Ask[string](ctx, "w", json.RawMessage(fmt.Sprintf(
				`{"continuation":1,"name":"w","of":[{"kind":"user_reply","authority":%q},{"kind":"user_reply","authority":%q}]}`, order[0], order[1])))
			return err
		})
		_, err := d.Run(t.Context(), "r", nil)
		rests(t, err)
		r := from(t, d, "r", record.Options{})
		same(t, fmt.Sprint(order), []any{len(r.QuestionsForUser), r.QuestionsForUser[0].RequiredAuthority, r.ResumePoints[0].RequiredAuthority}, []any{1, dag.Human, dag.Human})
	}
}

// A meddled store has something happen once, before a log is read or a lease taken.
type meddled struct {
	*memory.Store
	read, acquire func()
}

func (m *meddled) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	if m.read != nil {
		m.read()
	}
	return m.Store.Read(ctx, run, from, to)
}

func (m *meddled) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if m.acquire != nil {
		m.acquire()
	}
	return m.Store.Acquire(ctx, run, owner)
}

// Of two who create a record of one id at once the second is told that it is there.
func TestTwoWhoCreateOneRecord(t *testing.T) {
	b := newBook(t)
	s := &meddled{Store: b.store, acquire: sync.OnceFunc(func() { b.create(t, draft("r")) })}
	if _, err := ledgerOver(t, s, nil).Create(t.Context(), draft("r"), ann); !errors.Is(err, record.ErrExists) {
		t.Errorf("Create = %v, want ErrExists", err)
	}
}

// Runs of a store that is meddled with.
type runsOf struct {
	record.Runs
	store checkpoint.Store
}

func (r runsOf) Store() checkpoint.Store { return r.store }

// A run that is deleted, and begun anew under its id, while its record is made, has the record of
// the new one.
func TestRecordOfARunThatIsBegunAnewMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, word := newStore(), "old"
		d := inquire(t, store, []string{"think"}, func(ctx context.Context, _ *Inquiry) error {
			return dag.Learn(ctx, dag.Learning{ID: word, Content: "dry"})
		})
		_, err := d.Run(t.Context(), "r", nil)
		done(t, err)
		s := &begins{meddled: &meddled{Store: store, read: sync.OnceFunc(func() { done(t, store.Delete(t.Context(), "r")) })}}
		s.again = sync.OnceFunc(func() {
			<-time.After(time.Second) // of the bubble's clock
			word = "new"
			_, err := d.Run(t.Context(), "r", nil)
			done(t, err)
		})
		r, err := record.From(t.Context(), runsOf{d, s}, "r", record.Options{})
		done(t, err)
		same(t, "learned", ids(r.Learnings, func(l record.Learning) string { return l.ID }), []string{"new"})
	})
}

// A begins store has a run begun anew when somebody asks for it behind a reading that found none.
type begins struct {
	*meddled
	missed bool
	again  func()
}

func (b *begins) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range b.meddled.Read(ctx, run, from, to) {
			b.missed = b.missed || errors.Is(err, checkpoint.ErrNotFound)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (b *begins) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	if b.missed {
		b.again()
	}
	return b.meddled.Store.Stat(ctx, run)
}
