package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// anew exports a run as of a store that is no Archiver: all that has one time is one append. In a
// bubble, where no time passes, that is the whole log.
func anew(t testing.TB, store *memory.Store) string {
	t.Helper()
	return written(t, &pawltest.Mortal{Store: store})
}

// again imports a file into an Archiver and exports it from there: what it takes for appends it
// hands out as such.
func again(t testing.TB, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var store memory.Store
	if _, err := checkpoint.Import(t.Context(), &store, f, checkpoint.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	return written(t, &store)
}

// A log agrees with the graph that has made it also if nobody knows what was appended together.
func TestReplayOfALogThatIsSealedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		g := everything(t, s)
		for _, o := range []dispatcher.Options{{}, {Lag: 3}, {InterruptBefore: []string{"rounds/add"}, InterruptAfter: []string{"lines"}}} {
			file := anew(t, ran(t, g, o))
			charges, letters := s.charges, len(s.letters)
			pawltest.Replay(t, file, g)
			pawltest.Replay(t, again(t, file), g)
			if s.charges != charges || len(s.letters) != letters {
				t.Errorf("%d charges and %d letters more", s.charges-charges, len(s.letters)-letters)
			}
		}
	})
}

// So does one in which a person has had a hand at every turn: what was given is where it was.
func TestReplayOfWhatWasGivenAtOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		round := dag.New[interview]("round")
		dag.Each(round, "each", func(*interview) []int { return []int{1, 2, 3} }, func(ctx context.Context, s *interview, i int) error {
			if i == 2 && dag.Attempt(ctx) == 1 {
				return errors.New("not yet")
			}
			set, _ := dag.Settings[int](ctx)
			s.Said.Append(fmt.Sprint("item ", i, " under ", set))
			_, err := dag.Effect(ctx, "effect", i, func(_ context.Context, i int) (int, error) { return i, nil })
			return err
		}).With(dag.Policy{Attempts: 2, Errors: dag.Collect})
		inner, err := round.Build()
		if err != nil {
			t.Fatal(err)
		}
		b := dag.New[interview]("interview")
		first := dag.Step(b, "first", func(_ context.Context, s *interview) error {
			s.Said.Append(fmt.Sprint("after ", s.Said.Len()))
			return nil
		})
		dag.Loop(b, "loop", inner, func(*interview) bool { return false }, 2, first)
		dag.Step(b, "asks", func(ctx context.Context, s *interview) error {
			if dag.Attempt(ctx) == 1 {
				return errors.New("not yet")
			}
			word, err := dag.Ask[string](ctx, "word", "which?")
			if errors.Is(err, dag.ErrSkipped) {
				word, err = "skipped", nil
			}
			s.Said.Append(word)
			return err
		}, first).With(dag.Policy{Attempts: 2})
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var store memory.Store
		d, err := dispatcher.New(g, &store, dispatcher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, id := t.Context(), "order/7"
		must := func(err error) {
			t.Helper()
			if err != nil && !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
		}
		goesOn := func(options ...dispatcher.RunOption) {
			t.Helper()
			_, err := d.Run(ctx, id, nil, options...)
			must(err)
		}
		goesOn(dispatcher.Settings(1, "ann"))
		must(d.Edit(ctx, id, func(s *interview) { s.Said.Append("edited") }, dispatcher.EditOptions{Void: []string{"loop"}}))
		goesOn(dispatcher.Settings(2, "bob"))
		must(d.Answer(ctx, id, "", "hello"))
		goesOn()
		_, err = d.Turn(ctx, id, func(s *interview) { s.Said.Append("second") }, dispatcher.Settings(3, "ann"))
		must(err)
		must(d.Skip(ctx, id, ""))
		goesOn()
		at := ""
		for p, err := range d.History(ctx, id) {
			must(err)
			if p.Path == "loop/1" && p.Turn == 2 {
				at = p.Address()
			}
		}
		must(d.Rewind(ctx, id, at, dispatcher.RewindOptions{}))
		goesOn()
		must(d.Answer(ctx, id, "", "again"))
		goesOn()
		if res, err := d.State(ctx, id); err != nil || res.Status != checkpoint.StatusCompleted {
			t.Fatalf("the run is %s, %v", res.Status, err)
		}
		for _, file := range []string{written(t, &store), anew(t, &store), again(t, anew(t, &store))} {
			pawltest.Replay(t, file, g)
		}
	})
}

// What differs is told of such a log too, before a migration in it and behind.
func TestReplayNamesWhatDiffersAtOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		move := dispatcher.Migration{Name: "words", Nodes: map[string]string{"write": "draft"}}
		was := pastGraph(t, pastNode{name: "write", price: 1}, pastNode{name: "send", price: 2})
		now := func(draft, send int) *dag.Graph[Order] {
			return pastGraph(t, pastNode{name: "draft", price: draft}, pastNode{name: "send", price: send})
		}
		file := anew(t, pastRun(t, []string{"send"}, []dispatcher.Migration{move}, was, now(1, 2)))
		pawltest.Replay(t, file, now(1, 2), pawltest.Migrations(move))
		var h heard
		pawltest.Replay(&h, file, now(10, 3), pawltest.Migrations(move))
		h.expect(t, `visit draft: cell Total wrote {"add":1}, now {"add":10}`, `visit send: cell Total wrote {"add":2}, now {"add":3}`)
	})
}
