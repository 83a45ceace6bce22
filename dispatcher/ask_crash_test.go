package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An askMortal is a mortal whose process can die at a post as well.
type askMortal struct{ mortal }

func (m *askMortal) Post(ctx context.Context, run string, p checkpoint.Post) error {
	return m.process().Post(ctx, run, p)
}

// askAll returns a graph whose questions end in every way there is, and of which one sibling
// is at work when some of them are over.
func askAll(t testing.TB, sees func(part) part) *dag.Graph[Tale] {
	b := dag.New[Tale]("all")
	ask := func(name string, options ...dag.AskOption) dag.Node[Tale] {
		return dag.Step(b, name, sees(func(ctx context.Context, s *Tale) error {
			word, err := dag.Ask[string](ctx, "word", "which?", options...)
			info, _ := dag.Reply(ctx, "word")
			number, err2 := dag.Ask[int](ctx, "number", "how many?", dag.Within(90*time.Minute), dag.OrDefault(3))
			if err != nil && !errors.Is(err, dag.ErrExpired) && !errors.Is(err, dag.ErrSkipped) || err2 != nil {
				return errors.Join(err, err2)
			}
			s.Notes.Put(name, fmt.Sprint(info.How, " ", info.By, " ", word, number))
			return nil
		}))
	}
	works := dag.Step(b, "works", sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour+time.Minute) }))
	dag.Step(b, "last", sees(nil), works,
		ask("given"), ask("skipped"), ask("expired", dag.Within(time.Hour)), ask("default", dag.Within(time.Hour), dag.OrDefault("none")))
	return frozen(t, b)
}

// Promises P1, P2, P3 and P13: answers, skips, expiries and defaults survive crashes at every
// write, of the run and of those who answer. Each question ends once, and as it was told.
func TestAskSurvivesCrashes(t *testing.T) {
	for _, written := range []bool{false, true} {
		for k := 1; ; k++ {
			died := false
			synctest.Test(t, func(t *testing.T) { died = askCrash(t, k, written) })
			if !died || t.Failed() {
				// What can't share an append: that it is opened, what is asked, three messages,
				// what they say, and what is over after an hour, a minute later and after 90.
				if k <= 9 {
					t.Errorf("there were only %d writes", k-1)
				}
				break
			}
		}
	}
}

func askCrash(t *testing.T, k int, written bool) (died bool) {
	store := new(askMortal)
	g := askAll(t, func(f part) part {
		return func(ctx context.Context, s *Tale) error {
			if path := visitPath(ctx); store.isDone(path) {
				t.Errorf("visit %s runs again, and its entry is durable", path)
			}
			if f == nil {
				return nil
			}
			return f(ctx, s)
		}
	})
	what := fmt.Sprintf("crash at write %d, written: %t", k, written)
	for call := range 20 {
		life := 0
		if call == 0 {
			life = k
		}
		if err := store.revive(t.Context(), life, written); err != nil {
			t.Fatal(err)
		}
		d := process(t, g, store, dispatcher.Options{})
		helped := make(chan struct{})
		go func() { // ends when it has answered what is asked
			defer close(helped)
			lasts(time.Minute)
			askHelp(t, d)
		}()
		res, err := d.Run(t.Context(), run, nil)
		<-helped
		if store.died() {
			died = true
			continue
		}
		if err == nil {
			completes(t, res, err)
			for name, want := range map[string]string{
				"given": "answered Ada this7", "skipped": "skipped Eve 7", "expired": "expired  3", "default": "default  none3",
			} {
				if got, _ := res.State.Notes.Get(name); got != want {
					t.Errorf("%s: visit %s got %q, want %q", what, name, got, want)
				}
			}
			if all := askAnswers(t, store, run); len(all) != 8 {
				t.Errorf("%s: the log has the answers %+v", what, all)
			}
			if posts, err := store.Posts(t.Context(), run); len(posts) > 0 || err != nil {
				t.Errorf("%s: the posts %v are left, %v", what, posts, err)
			}
			return died
		}
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatalf("%s: %v", what, err)
		}
		askHelp(t, d)
		lasts(30 * time.Minute)
	}
	t.Fatalf("%s: the run does not come to its end", what)
	return died
}

// askHelp answers what a person can: of two visits both questions, of one the second one too.
func askHelp(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
	res, err := d.State(t.Context(), run)
	if err != nil {
		return // it was not opened, or the process has died
	}
	given := map[string]any{}
	for _, i := range res.Interrupts {
		switch {
		case i.Path == "skipped" && i.Key == "word":
			err = d.Skip(t.Context(), run, i.ID, dispatcher.Author("Eve"))
		case i.Path == "skipped":
			err = d.Answer(t.Context(), run, i.ID, 7)
		case i.Path == "given":
			given[i.ID] = map[string]any{"word": "this", "number": 7}[i.Key]
		}
		if err != nil && !errors.Is(err, errDead) && !errors.Is(err, dispatcher.ErrNotAwaited) {
			t.Errorf("%v: %v", i, err)
		}
	}
	if len(given) > 0 {
		err := d.Answers(t.Context(), run, given, dispatcher.Author("Ada"))
		if err != nil && !errors.Is(err, errDead) && !errors.Is(err, dispatcher.ErrNotAwaited) {
			t.Errorf("the answers %v: %v", given, err)
		}
	}
}

// Scenario 3.61: a process is killed at every write round an approval before a visit and one
// after it, and both are delivered twice by each of two processes: of those of one interrupt
// exactly one counts, and no body runs before it.
func TestAskApprovalsSurviveCrashes(t *testing.T) {
	for _, written := range []bool{false, true} {
		for k := 1; ; k++ {
			if died := askApprove(t, k, written); !died || t.Failed() {
				if k < 4 {
					t.Errorf("there were only %d writes", k)
				}
				break
			}
		}
	}
}

func askApprove(t *testing.T, k int, written bool) (died bool) {
	var w witness
	store := new(askMortal)
	g := line(t, &w, nil)
	what := fmt.Sprintf("crash at write %d, written: %t", k, written)
	accepted := map[string][]string{}
	var ids []string
	for call := range 20 {
		life := 0
		if call == 0 {
			life = k
		}
		if err := store.revive(t.Context(), life, written); err != nil {
			t.Fatal(err)
		}
		o := dispatcher.Options{InterruptBefore: []string{"b"}, InterruptAfter: []string{"b"}}
		d, other := process(t, g, store, o), process(t, g, store, o)
		res, err := d.Run(t.Context(), run, nil)
		if !store.died() && err == nil {
			completes(t, res, err)
			w.took()
			if all := askAnswers(t, store, run); len(all) != 2 {
				t.Errorf("%s: the log has the answers %+v", what, all)
			} else {
				for id, by := range accepted {
					slices.Sort(by)
					if by = slices.Compact(by); len(by) != 1 || all[id].By != by[0] {
						t.Errorf("%s: of interrupt %s were accepted those of %q, and the log says %+v", what, id, by, all[id])
					}
				}
			}
			return died
		}
		if errors.Is(err, dispatcher.ErrInterrupted) {
			begun := strings.Join(w.took(), " ")
			if before := res.Interrupts[0].Kind == dispatcher.KindBefore; before == strings.Contains(begun, "b") && len(ids) < 2 && !died {
				t.Errorf("%s: %v waits, and the bodies that ran are %s", what, res.Interrupts[0], begun)
			}
			id := res.Interrupts[0].ID
			ids = append(ids, id)
			for n, by := range []*dispatcher.Dispatcher[Tale]{d, other, d, other} {
				author := fmt.Sprint("process ", n%2)
				err := by.Answer(t.Context(), run, id, dispatcher.Approve, dispatcher.Author(author))
				switch {
				case err == nil:
					accepted[id] = append(accepted[id], author)
				case !errors.Is(err, errDead) && !errors.Is(err, dispatcher.ErrNotAwaited):
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		died = died || store.died()
	}
	t.Fatalf("%s: the run does not come to its end", what)
	return died
}
