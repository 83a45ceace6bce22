package record_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
)

func decides(id string) func(context.Context, *Inquiry) error {
	return func(ctx context.Context, _ *Inquiry) error {
		return dag.Decide(ctx, dag.Decision{ID: id, Description: id})
	}
}

func decided(r *record.Record) []string {
	return ids(r.Decisions, func(d record.Decision) string { return d.ID })
}

func actions(r *record.Record) []string {
	var all []string
	for _, a := range r.ExecutionSummary.Actions {
		all = append(all, a.Description)
	}
	return all
}

// What a void took back counts again in a run that goes back to before the void, where it is done
// and is not run again; and does not if the run goes from there to behind the void.
func TestRecordOfWhatWasVoidedBehindTheCheckpoint(t *testing.T) {
	inner := dag.New[Inquiry]("inner")
	dag.Step(inner, "second", asksFor("on"), dag.Step(inner, "first", nothing))
	body, err := inner.Build()
	done(t, err)
	b := dag.New[Inquiry]("inquiry")
	ran := 0
	dag.Step(b, "decide", func(ctx context.Context, q *Inquiry) error {
		ran++
		return decides("way")(ctx, q)
	})
	dag.Loop(b, "loop", body, func(*Inquiry) bool { return true }, 1)
	d := inquiry(t, b, newStore(), dispatcher.Options{Parallel: 1})
	_, err = d.Run(t.Context(), "r", nil)
	rests(t, err)
	done(t, d.Edit(t.Context(), "r", func(q *Inquiry) { q.Answer.Set("hers") }, dispatcher.EditOptions{Void: []string{"decide"}}))
	info, err := d.Store().Stat(t.Context(), "r")
	done(t, err)
	same(t, "voided", decided(from(t, d, "r", record.Options{})), nil)

	done(t, d.Rewind(t.Context(), "r", "loop/1@1", dispatcher.RewindOptions{}))
	same(t, "before the void", decided(from(t, d, "r", record.Options{})), []string{"way"})
	done(t, d.Rewind(t.Context(), "r", fmt.Sprint("r@", info.Head.Seq), dispatcher.RewindOptions{}))
	same(t, "behind the void", decided(from(t, d, "r", record.Options{})), nil)
	done(t, d.Rewind(t.Context(), "r", "loop/1@1", dispatcher.RewindOptions{}))
	rests(t, goesOn(t, d, "r"))
	done(t, goesOn(t, d, "r"))
	same(t, "in the end", decided(from(t, d, "r", record.Options{})), []string{"way"})
	if ran != 1 {
		t.Errorf("decide ran %d times, want once", ran)
	}
}

// A run that goes on from a checkpoint that an earlier rewind has left behind tells what had come
// about up to there: what was said, done, answered and caused, and nothing of what came instead.
func TestRecordOfARunThatIsRewoundToWhatWasAbandoned(t *testing.T) {
	d := inquire(t, newStore(), []string{"a", "b", "c", "d"}, nothing,
		func(ctx context.Context, q *Inquiry) error {
			word, err := dag.Ask[string](ctx, "way", "way?")
			if err != nil {
				return err
			}
			return decides(word)(ctx, q)
		},
		func(ctx context.Context, _ *Inquiry) error {
			_, err := dag.Effect(ctx, "pay", 5, func(context.Context, int) (bool, error) { return true, nil })
			return err
		}, nothing)
	goOn := func(word string) {
		_, err := d.Run(t.Context(), "r", nil)
		rests(t, err)
		done(t, d.Answer(t.Context(), "r", "", word))
		_, err = d.Run(t.Context(), "r", nil)
		done(t, err)
	}
	effects := func() []string {
		return ids(from(t, d, "r", record.Options{}).ToolEffects, func(e record.ToolEffect) string { return fmt.Sprint(e.ID, " ", e.Abandoned) })
	}
	goOn("left")
	var third string
	for p, err := range d.History(t.Context(), "r") {
		if done(t, err); p.Superstep == 3 {
			third = p.Address()
		}
	}
	done(t, d.Rewind(t.Context(), "r", "1", dispatcher.RewindOptions{}))
	goOn("right")
	same(t, "the other way", decided(from(t, d, "r", record.Options{})), []string{"right"})
	same(t, "its effects", effects(), []string{"r/c#pay true", "r~1/c#pay false"})

	for range 2 { // the second time the rewind is as well to what was abandoned
		done(t, d.Rewind(t.Context(), "r", "1", dispatcher.RewindOptions{}))
		same(t, "back", decided(from(t, d, "r", record.Options{})), nil)
		done(t, d.Rewind(t.Context(), "r", third, dispatcher.RewindOptions{}))
		_, err := d.Run(t.Context(), "r", nil)
		done(t, err)
		r := from(t, d, "r", record.Options{})
		same(t, "decisions", decided(r), []string{"left"})
		same(t, "actions", actions(r), []string{"a", "b", "c", "d"})
		same(t, "questions", questions(t, d), []string{"way? answered left"})
		same(t, "effects", effects(), []string{"r/c#pay false", "r~1/c#pay true"})
	}
}

// What a visit was answered that begins anew in a run that goes back is asked anew, and told once.
// What others were answered stays, and so does what was approved: a frame that goes on, and an
// effect that has begun.
func TestRecordOfAnswersBehindARewind(t *testing.T) {
	inner := dag.New[Inquiry]("inner")
	dag.Step(inner, "second", asksFor("on"), dag.Step(inner, "first", asksFor("go")))
	body, err := inner.Build()
	done(t, err)
	b := dag.New[Inquiry]("inquiry")
	dag.Loop(b, "loop", body, func(*Inquiry) bool { return true }, 1)
	dag.Embed(b, "other", body, func(*Inquiry, *Inquiry) {}, func(*Inquiry, *Inquiry) {})
	dag.Step(b, "beside", asking("coat?", "hat?"))
	dag.Step(b, "pay", func(ctx context.Context, q *Inquiry) error {
		if _, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (bool, error) { return true, nil }); err != nil {
			return err
		}
		return asking("tip?")(ctx, q)
	})
	d := inquiry(t, b, newStore(), dispatcher.Options{Gates: dispatcher.Gates{Names: []string{"loop", "other", "pay", "pay#*"}}})
	end := func(path, key string) { t.Helper(); ends(t, d, path, key) }
	told := func(status record.QuestionStatus) []string { return asked(t, d, status) }
	_, err = d.Run(t.Context(), "r", nil)
	rests(t, err)
	for _, x := range [][2]string{{"loop", ""}, {"other", ""}, {"pay", ""}, {"pay", "charge"}, {"beside", "coat?"}, {"loop/1/first", "go"}} {
		end(x[0], x[1])
	}
	all := []string{"beside, coat?", "loop", "loop/1/first, go", "other", "pay", "pay, charge"}
	same(t, "answered", told(record.QuestionAnswered), all)
	same(t, "open", told(record.QuestionOpen), []string{"beside, hat?", "loop/1/second, on", "other/first, go", "pay, tip?"})

	done(t, d.Rewind(t.Context(), "r", "loop/1@1", dispatcher.RewindOptions{}))
	kept := []string{"loop", "loop/1/first, go", "other", "pay, charge"}
	same(t, "answered at the checkpoint", told(record.QuestionAnswered), kept)
	same(t, "open there", told(record.QuestionOpen), nil)
	_, err = d.Resume(t.Context(), "r")
	rests(t, err)
	same(t, "answered, once it goes on", told(record.QuestionAnswered), kept)
	open := []string{"beside, coat?", "loop/1/second, on", "other/first, go", "pay"}
	same(t, "open, once it goes on", told(record.QuestionOpen), open)
	end("pay", "")
	same(t, "open at last", told(record.QuestionOpen), []string{"beside, coat?", "loop/1/second, on", "other/first, go", "pay, tip?"})
}

// A visit that has failed does not begin anew if its failure is followed; if it is not, since an
// effect is in doubt, it does. Nor does one begin anew that a migration has forgotten.
func TestRecordOfAnswersOfVisitsThatFailedBehindARewind(t *testing.T) {
	store := newStore()
	program := func(forgets map[string]string) *dispatcher.Dispatcher[Inquiry] {
		return renamed(t, store, forgets, func(b *dag.Builder[Inquiry]) {
			inner := dag.New[Inquiry]("inner")
			dag.Step(inner, "second", asksFor("on"), dag.Step(inner, "first", asksFor("go")))
			body, err := inner.Build()
			done(t, err)
			dag.Loop(b, "loop", body, func(*Inquiry) bool { return true }, 1)
			late := dag.Step(b, "late", func(ctx context.Context, q *Inquiry) error {
				return cmp.Or(asksFor("when")(ctx, q), errors.New("too late"))
			})
			pay := dag.Step(b, "pay", func(ctx context.Context, q *Inquiry) error {
				if err := asksFor("sure")(ctx, q); err != nil {
					return err
				}
				_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (bool, error) {
					return false, errors.New("connection reset")
				}, dag.InDoubt(dag.DoubtFails))
				return err
			})
			dag.Step(b, "instead", nothing, late.Failed())
			dag.Step(b, "unpaid", nothing, pay.Failed())
			if forgets == nil {
				dag.Step(b, "gone", asking("size?", "colour?"))
			}
		})
	}
	was := program(nil)
	_, err := was.Run(t.Context(), "r", nil)
	rests(t, err)
	ends(t, was, "gone", "size?")
	d := program(map[string]string{"gone": ""})
	for _, x := range [][2]string{{"late", "when"}, {"pay", "sure"}, {"loop/1/first", "go"}} {
		ends(t, d, x[0], x[1])
	}
	kept := []string{"gone, size?", "late, when", "loop/1/first, go"}
	same(t, "answered", asked(t, d, record.QuestionAnswered), append(slices.Clone(kept), "pay, sure"))
	done(t, d.Rewind(t.Context(), "r", "loop/1@1", dispatcher.RewindOptions{}))
	_, err = d.Resume(t.Context(), "r")
	rests(t, err)
	same(t, "answered, once it goes on", asked(t, d, record.QuestionAnswered), kept)
	same(t, "open then", asked(t, d, record.QuestionOpen), []string{"loop/1/second, on", "pay, sure"})
}

// ends answers, or approves, what waits in a visit, and has the run go on.
func ends(t *testing.T, d *dispatcher.Dispatcher[Inquiry], path, key string) {
	t.Helper()
	o, err := d.Open(t.Context(), "r")
	done(t, err)
	k := slices.IndexFunc(o.Interrupts, func(i dispatcher.Interrupt) bool { return i.Path == path && i.Key == key })
	if k < 0 {
		t.Fatalf("nobody waits for %s in %s: %v", key, path, o.Interrupts)
	}
	answer := any("yes")
	if o.Interrupts[k].Kind != dispatcher.KindAsked {
		answer = dispatcher.Approve
	}
	done(t, d.Answer(t.Context(), "r", o.Interrupts[k].ID, answer))
	_, err = d.Resume(t.Context(), "r")
	rests(t, err)
}

// asked are the visits and keys of which questions are told.
func asked(t *testing.T, d record.Runs, status record.QuestionStatus) (all []string) {
	t.Helper()
	for _, q := range from(t, d, "r", record.Options{}).QuestionsForUser {
		if what, _, _ := strings.Cut(q.Context, ": "); q.Status == status {
			all = append(all, strings.TrimPrefix(what, "visit "))
		}
	}
	slices.Sort(all)
	return all
}

// A visit has the name that it had at the checkpoint that the run goes on from, be that before a
// migration or behind it, also where an earlier rewind has left the migration behind: voided by
// that name, it does not count.
func TestRecordOfWhatIsVoidedBehindARenameThatWasAbandoned(t *testing.T) {
	store := newStore()
	program := func(nodes map[string]string, node string) *dispatcher.Dispatcher[Inquiry] {
		return renamed(t, store, nodes, func(b *dag.Builder[Inquiry]) {
			first := dag.Step(b, "first", nothing)
			dag.Step(b, node, decides("way"), first)
			dag.Step(b, "ask", asksFor("on"), first)
		})
	}
	edit := func(d *dispatcher.Dispatcher[Inquiry], void ...string) string {
		done(t, d.Edit(t.Context(), "r", func(q *Inquiry) { q.Answer.Set(q.Answer.Get() + "!") }, dispatcher.EditOptions{Void: void}))
		info, err := store.Stat(t.Context(), "r")
		done(t, err)
		return fmt.Sprint("r@", info.Head.Seq)
	}
	was, is := program(nil, "a"), program(map[string]string{"a": "z"}, "z")
	_, err := was.Run(t.Context(), "r", nil)
	rests(t, err)
	before := edit(was)
	behind := edit(is)
	rewind := func(d *dispatcher.Dispatcher[Inquiry], to string) {
		t.Helper()
		done(t, d.Rewind(t.Context(), "r", to, dispatcher.RewindOptions{}))
		same(t, "rewound", decided(from(t, d, "r", record.Options{})), []string{"way"})
	}
	for _, c := range []struct {
		d        *dispatcher.Dispatcher[Inquiry]
		to, node string
	}{{was, before, "a"}, {is, behind, "z"}, {was, before, "a"}} {
		rewind(c.d, c.to)
		edit(c.d, c.node)
		same(t, "without "+c.node, decided(from(t, c.d, "r", record.Options{})), nil)
	}
}

// A fork of a run that was rewound counts its own rewinds: the keys of its effects are those that
// its nodes had.
func TestForkOfARewoundRunHasKeysOfItsOwn(t *testing.T) {
	var keys []string
	pay := func(ctx context.Context, _ *Inquiry) error {
		keys = append(keys, dag.Key(ctx)+"#e")
		_, err := dag.Effect(ctx, "e", 1, func(context.Context, int) (int, error) { return 1, nil })
		return err
	}
	d := inquire(t, newStore(), []string{"first", "second", "pay"}, nothing, nothing, pay)
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	done(t, d.Rewind(t.Context(), "r", "1", dispatcher.RewindOptions{}))
	_, err = d.Run(t.Context(), "r", nil)
	done(t, err)
	forks, err := d.Fork(t.Context(), "r", "2", dispatcher.ForkOptions[Inquiry]{Effects: dispatcher.Live})
	done(t, err)
	_, err = d.Run(t.Context(), forks[0], nil)
	done(t, err)
	told := from(t, d, forks[0], record.Options{}).ToolEffects
	same(t, "keys", ids(told, func(e record.ToolEffect) string { return e.IdempotencyKey }), keys[2:])
}
