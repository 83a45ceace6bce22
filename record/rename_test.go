package record_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
)

// renamed makes a dispatcher of a graph whose migration calls nodes otherwise.
func renamed(t *testing.T, store checkpoint.Store, nodes map[string]string, fill func(b *dag.Builder[Inquiry])) *dispatcher.Dispatcher[Inquiry] {
	t.Helper()
	b := dag.New[Inquiry]("inquiry")
	fill(b)
	var o dispatcher.Options
	if nodes != nil {
		o.Migrations = []dispatcher.Migration{{Name: "m", Nodes: nodes}}
	}
	return inquiry(t, b, store, o)
}

// goesOn answers the question that a run waits for, if it does, and has it go on.
func goesOn(t *testing.T, d *dispatcher.Dispatcher[Inquiry], run string) error {
	t.Helper()
	stands, err := d.Open(t.Context(), run)
	done(t, err)
	for _, i := range stands.Interrupts {
		done(t, d.Answer(t.Context(), run, i.ID, "yes"))
	}
	_, err = d.Resume(t.Context(), run)
	return err
}

// Each effect that has begun in a run is told once, under the key that it has, though a migration
// gave the name of its node to another: in the run, behind a rewind to before that, and in a fork.
func TestRecordOfEffectsBehindARename(t *testing.T) {
	var keys []string
	pay := func(who string) func(context.Context, *Inquiry) error {
		return func(ctx context.Context, _ *Inquiry) error {
			_, err := dag.Effect(ctx, "pay", who, func(ctx context.Context, who string) (string, error) {
				keys = append(keys, dag.Key(ctx)+" "+who)
				return "of " + who, nil
			})
			return err
		}
	}
	loop := func(b *dag.Builder[Inquiry], name, node, who string, after ...dag.Edge[Inquiry]) dag.Edge[Inquiry] {
		body := dag.New[Inquiry]("body")
		dag.Step(body, node, pay(who))
		g, err := body.Build()
		done(t, err)
		return dag.Loop(b, name, g, func(*Inquiry) bool { return true }, 2, after...)
	}
	store := newStore()
	was := renamed(t, store, nil, func(b *dag.Builder[Inquiry]) {
		dag.Step(b, "wait", asksFor("on"), loop(b, "loop", "x", "cid", dag.Step(b, "a", pay("ann"))))
	})
	is := renamed(t, store, map[string]string{"a": "z", "loop": "lap"}, func(b *dag.Builder[Inquiry]) {
		wait := dag.Step(b, "wait", asksFor("on"), loop(b, "lap", "x", "cid", dag.Step(b, "z", pay("ann"))))
		loop(b, "loop", "x", "dan", dag.Step(b, "a", pay("bob"), wait))
	})
	told := func(run string) (all []string) {
		for _, e := range from(t, is, run, record.Options{}).ToolEffects {
			var who string
			if _, who, _ = strings.Cut(string(e.Inputs), `:"`); e.Status != record.EffectDone {
				t.Errorf("%s is %s", e.ID, e.Status)
			}
			all = append(all, strings.TrimSuffix(e.IdempotencyKey, "#pay")+"#pay "+strings.TrimSuffix(who, `"}`))
		}
		return all
	}
	_, err := was.Run(t.Context(), "r", nil)
	rests(t, err)
	done(t, goesOn(t, is, "r"))
	same(t, "the run", told("r"), keys)
	same(t, "its keys", keys, []string{"r/a#pay ann", "r/loop/1/x#pay cid", "r~0.1/a#pay bob", "r~0.1/loop/1/x#pay dan"})

	_, err = is.Fork(t.Context(), "r", "3", dispatcher.ForkOptions[Inquiry]{Into: []string{"f"}, Effects: dispatcher.Live})
	done(t, err)
	before := len(keys)
	done(t, goesOn(t, is, "f"))
	same(t, "its fork", told("f"), keys[before:])
	keys = keys[:before]

	done(t, is.Rewind(t.Context(), "r", "1", dispatcher.RewindOptions{})) // behind a
	rests(t, goesOn(t, is, "r"))
	done(t, goesOn(t, is, "r"))
	same(t, "rewound", told("r"), keys)
	same(t, "its keys", keys[before:], []string{"r~1/lap/1/x#pay cid", "r~1.1/a#pay bob", "r~1.1/loop/1/x#pay dan"})
}

// What a visit has said goes when that is voided under another name, and so does what was said in
// one that was forgotten inside it; behind a rewind to before the migration under the name that it
// had.
func TestRecordOfWhatIsVoidedUnderAnotherName(t *testing.T) {
	learns := func(id string) func(context.Context, *Inquiry) error {
		return func(ctx context.Context, _ *Inquiry) error { return dag.Learn(ctx, dag.Learning{ID: id, Content: id}) }
	}
	program := func(store checkpoint.Store, nodes map[string]string, loop, node string, inside bool) *dispatcher.Dispatcher[Inquiry] {
		return renamed(t, store, nodes, func(b *dag.Builder[Inquiry]) {
			body := dag.New[Inquiry]("body")
			if inside {
				dag.Step(body, "gone", learns("inside"))
			}
			dag.Step(body, "ask", asksFor("loop"))
			g, err := body.Build()
			done(t, err)
			first := dag.Step(b, "first", nothing)
			dag.Loop(b, loop, g, func(*Inquiry) bool { return true }, 2, first)
			dag.Step(b, node, learns("node"), first)
		})
	}
	learned := func(d *dispatcher.Dispatcher[Inquiry]) []string {
		return ids(from(t, d, "r", record.Options{}).Learnings, func(l record.Learning) string { return l.ID })
	}
	edit := func(d *dispatcher.Dispatcher[Inquiry], void ...string) {
		done(t, d.Edit(t.Context(), "r", func(q *Inquiry) { q.Answer.Set(q.Answer.Get() + "!") }, dispatcher.EditOptions{Void: void}))
	}
	for void, stays := range map[string][]string{"z": {"inside"}, "lap": {"node"}, "a": {"inside"}, "loop": {"node"}} {
		store := newStore()
		was := program(store, nil, "loop", "a", true)
		_, err := was.Run(t.Context(), "r", nil)
		rests(t, err)
		edit(was)
		info, err := store.Stat(t.Context(), "r")
		done(t, err)
		d := program(store, map[string]string{"a": "z", "loop": "lap", "loop/gone": ""}, "lap", "z", false)
		edit(d)
		same(t, "renamed", len(learned(d)), 2)
		if void == "a" || void == "loop" {
			done(t, was.Rewind(t.Context(), "r", fmt.Sprint("r@", info.Head.Seq), dispatcher.RewindOptions{}))
			d = was
		}
		edit(d, void)
		same(t, "without "+void, learned(d), stays)
	}
}

// A visit that has failed and succeeds under another name has not failed; an effect that it did not
// do before is another one now, since its key is.
func TestRecordOfAVisitThatSucceedsUnderAnotherName(t *testing.T) {
	store := newStore()
	fails := true
	pay := func(ctx context.Context, _ *Inquiry) error {
		_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
			if fails {
				return 0, errors.Join(dag.NotDone, errors.New("closed"))
			}
			return 1, nil
		})
		return err
	}
	was := renamed(t, store, nil, func(b *dag.Builder[Inquiry]) { dag.Step(b, "a", pay) })
	_, err := was.Run(t.Context(), "r", nil)
	rests(t, err)
	is := renamed(t, store, map[string]string{"a": "z"}, func(b *dag.Builder[Inquiry]) { dag.Step(b, "z", pay) })
	_, err = is.Resume(t.Context(), "r")
	rests(t, err)
	r := from(t, is, "r", record.Options{})
	same(t, "failed twice", []any{r.ExecutionSummary.StepsFailed, ids(r.Blockers, func(b record.Blocker) string { return b.ID })[0]}, []any{1, "failed:z"})
	fails = false
	done(t, goesOn(t, is, "r"))
	r = from(t, is, "r", record.Options{})
	same(t, "then", []any{r.ExecutionSummary.StepsFailed, r.ExecutionSummary.StepsCompleted}, []any{0, 1})
	same(t, "effects", ids(r.ToolEffects, func(e record.ToolEffect) string { return e.ID + " " + string(e.Status) }),
		[]string{"r/a#pay not-done", "r/z#pay done"})
}
