package record_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
)

// questions tells, in order, what is asked in a run, and what was answered.
func questions(t *testing.T, d record.Runs) []string {
	t.Helper()
	all := ids(from(t, d, "r", record.Options{}).QuestionsForUser, func(q record.Question) string {
		return q.Question + " " + string(q.Status) + " " + q.Answer
	})
	slices.Sort(all)
	return all
}

// asking is a node that asks once or twice, the second time as one that knows the first answer.
func asking(what string, further ...string) func(context.Context, *Inquiry) error {
	return func(ctx context.Context, _ *Inquiry) error {
		for _, q := range append([]string{what}, further...) {
			if _, err := dag.Ask[string](ctx, q, q); err != nil {
				return err
			}
		}
		return nil
	}
}

// What was answered in a frame that is voided does not count: it is asked anew there, and told
// once. What the visit itself was answered that is voided stays, and so does what others were.
func TestRecordOfAnswersInAFrameThatWasVoided(t *testing.T) {
	item := dag.New[Inquiry]("item")
	dag.Step(item, "asks", asking("size?", "sure?"))
	items, err := item.Build()
	done(t, err)
	body := dag.New[Inquiry]("body")
	dag.EachGraph(body, "each", func(*Inquiry) []int { return []int{1, 2} }, items,
		func(*Inquiry, int, *Inquiry) {}, func(*Inquiry, int, *Inquiry) {})
	dag.Step(body, "beside", asking("coat?", "hat?"))
	inner, err := body.Build()
	done(t, err)
	b := dag.New[Inquiry]("inquiry")
	dag.Loop(b, "loop", inner, func(*Inquiry) bool { return true }, 2)
	d := inquiry(t, b, newStore(), dispatcher.Options{})
	goOn := func(question, path, value string) {
		t.Helper()
		o, err := d.Open(t.Context(), "r")
		done(t, err)
		k := slices.IndexFunc(o.Interrupts, func(i dispatcher.Interrupt) bool { return i.Key == question && i.Path == path })
		if k < 0 {
			t.Fatalf("nobody asks %s in %s: %v", question, path, o.Interrupts)
		}
		done(t, d.Answer(t.Context(), "r", o.Interrupts[k].ID, value))
		_, err = d.Run(t.Context(), "r", nil)
		rests(t, err)
	}
	void := func(frame, path string) {
		t.Helper()
		done(t, d.Edit(t.Context(), "r", func(q *Inquiry) { q.Answer.Set(q.Answer.Get() + "!") }, dispatcher.EditOptions{Frame: frame, Void: []string{path}}))
	}
	_, err = d.Run(t.Context(), "r", nil)
	rests(t, err)
	goOn("size?", "loop/1/each/1/asks", "small")
	goOn("size?", "loop/1/each/2/asks", "large")
	goOn("coat?", "loop/1/beside", "yes")
	same(t, "answered", questions(t, d), []string{"coat? answered yes", "hat? open ", "size? answered large", "size? answered small", "sure? open ", "sure? open "})

	void("loop/1", "loop/1/each")
	same(t, "without the items", questions(t, d), []string{"coat? answered yes", "hat? open "})
	_, err = d.Run(t.Context(), "r", nil)
	rests(t, err)
	goOn("size?", "loop/1/each/1/asks", "huge")
	same(t, "asked anew", questions(t, d), []string{"coat? answered yes", "hat? open ", "size? answered huge", "size? open ", "sure? open "})

	void("", "loop")
	same(t, "without the loop", questions(t, d), nil)
}

// Of a superstep that can't be merged nothing counts: neither what was done in it nor what was
// said. That counts once it was run again.
func TestRecordOfASuperstepThatCouldNotBeMerged(t *testing.T) {
	store := newStore()
	agree := false
	b := dag.New[Inquiry]("inquiry")
	for _, name := range []string{"left", "right"} {
		dag.Step(b, name, func(ctx context.Context, q *Inquiry) error {
			if name == "left" || !agree {
				q.Answer.Set(name)
			}
			return dag.Learn(ctx, dag.Learning{ID: name, Content: name})
		})
	}
	d := inquiry(t, b, store, dispatcher.Options{})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	r := from(t, d, "r", record.Options{})
	same(t, "not merged", []any{r.ExecutionSummary.StepsCompleted, len(r.Learnings)}, []any{0, 0})
	agree = true
	_, err = d.Run(t.Context(), "r", nil)
	done(t, err)
	r = from(t, d, "r", record.Options{})
	same(t, "run again", []any{r.ExecutionSummary.StepsCompleted, len(r.Learnings)}, []any{2, 2})
}

// Who has approved a visit that is voided is asked again, and so is who has approved an effect of
// it that has not begun: the approval is told once. That of an effect that has begun stays.
func TestRecordOfApprovalsOfAVisitThatWasVoided(t *testing.T) {
	b := dag.New[Inquiry]("inquiry")
	tips := true
	dag.Step(b, "pay", func(ctx context.Context, _ *Inquiry) error {
		does := func(key string) error {
			_, err := dag.Effect(ctx, key, 5, func(context.Context, int) (bool, error) { return true, nil })
			return err
		}
		err := does("charge")
		if tips {
			err = errors.Join(err, does("tip"))
		}
		return err
	})
	dag.Step(b, "beside", asksFor("on"))
	d := inquiry(t, b, newStore(), dispatcher.Options{Gates: dispatcher.Gates{Names: []string{"pay", "pay#*"}}})
	approve := func() {
		t.Helper()
		o, err := d.Open(t.Context(), "r")
		done(t, err)
		for _, i := range o.Interrupts {
			if i.Path == "pay" {
				done(t, d.Answer(t.Context(), "r", i.ID, dispatcher.Approve, dispatcher.Author("ann")))
			}
		}
	}
	goOn := func() {
		t.Helper()
		_, err := d.Resume(t.Context(), "r")
		rests(t, err)
	}
	told := func() []string {
		all := ids(from(t, d, "r", record.Options{}).QuestionsForUser, func(q record.Question) string {
			what, _, _ := strings.Cut(q.Context, ":")
			return what + " " + string(q.Status)
		})
		slices.Sort(all)
		return all
	}
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	approve()
	goOn()
	approve()
	tips = false
	goOn()
	same(t, "approved", told(), []string{"visit beside, on open", "visit pay answered", "visit pay, charge answered", "visit pay, tip answered"})
	done(t, d.Edit(t.Context(), "r", func(q *Inquiry) { q.Answer.Set("hers") }, dispatcher.EditOptions{Void: []string{"pay"}}))
	same(t, "voided", told(), []string{"visit beside, on open", "visit pay, charge answered"})
	goOn()
	same(t, "asked again", told(), []string{"visit beside, on open", "visit pay open", "visit pay, charge answered"})
	approve()
	goOn()
	same(t, "done again", told(), []string{"visit beside, on open", "visit pay answered", "visit pay, charge answered"})
}

// The answers of a visit that is voided itself stay, since it has them when it runs again; under
// another name as well, and what it is in goes with them.
func TestRecordOfAnswersOfAVisitThatWasVoided(t *testing.T) {
	program := func(store checkpoint.Store, nodes map[string]string, loop, node string) *dispatcher.Dispatcher[Inquiry] {
		return renamed(t, store, nodes, func(b *dag.Builder[Inquiry]) {
			body := dag.New[Inquiry]("body")
			dag.Step(body, node, asking("size?"))
			dag.Step(body, "beside", asking("coat?"))
			g, err := body.Build()
			done(t, err)
			dag.Loop(b, loop, g, func(*Inquiry) bool { return true }, 2)
		})
	}
	store := newStore()
	was := program(store, nil, "loop", "asks")
	res, err := was.Run(t.Context(), "r", nil)
	rests(t, err)
	k := slices.IndexFunc(res.Interrupts, func(i dispatcher.Interrupt) bool { return i.Key == "size?" })
	done(t, was.Answer(t.Context(), "r", res.Interrupts[k].ID, "small"))
	_, err = was.Run(t.Context(), "r", nil)
	rests(t, err)
	d := program(store, map[string]string{"loop": "lap", "loop/asks": "lap/says"}, "lap", "says")
	write := func(q *Inquiry) { q.Answer.Set(q.Answer.Get() + "!") }
	done(t, d.Edit(t.Context(), "r", write, dispatcher.EditOptions{Frame: "lap/1", Void: []string{"lap/1/says"}}))
	same(t, "its own", questions(t, d), []string{"coat? open ", "size? answered small"})
	done(t, d.Edit(t.Context(), "r", write, dispatcher.EditOptions{Void: []string{"lap"}}))
	same(t, "without the frame", questions(t, d), nil)
}
