package continuation_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An overtaken is slow: something happens before it first goes on with a run, or notes something.
type overtaken struct {
	continuation.Runs
	meanwhile func()
}

func (o *overtaken) before() {
	if f := o.meanwhile; f != nil {
		o.meanwhile = nil
		f()
	}
}

func (o *overtaken) Continue(ctx context.Context, run string, options ...dispatcher.RunOption) (*dispatcher.Result[struct{}], error) {
	o.before()
	return o.Runs.Continue(ctx, run, options...)
}

func (o *overtaken) Note(ctx context.Context, run, name string, value any, options ...dispatcher.RunOption) error {
	o.before()
	return o.Runs.Note(ctx, run, name, value, options...)
}

// A run that is deleted, and made anew under its id, between the look at it and what is done about
// it is looked at once more, however short it is: it waits, and what was to be done is of the one
// before.
func TestARunThatIsMadeAnewBehindALook(t *testing.T) {
	scope := map[string]string{"tenant": "t"}
	for name, does := range map[string]func(t *testing.T, p *process, rt *continuation.Runtime){
		"by a recovery": func(t *testing.T, p *process, rt *continuation.Runtime) {
			tr := reply("t", "hello")
			tr.LeaveIt = true
			if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			if runs, err := rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
				t.Errorf("recovered %q, %v", runs, err)
			}
		},
		"by who supersedes it": func(t *testing.T, p *process, rt *continuation.Runtime) {
			if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
				t.Fatal(err)
			}
			if ends, err := rt.Supersede(t.Context(), scope, "", "t"); err != nil || len(ends) > 0 {
				t.Errorf("superseded %+v, %v", ends, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), &memory.Store{}, continuation.Options{})
			begins := func() { p.waits(run, dispatcher.Labels(continuation.Owed(scope))) }
			begins()
			rt, err := continuation.New(&overtaken{p.d, func() {
				if err := p.store.Delete(t.Context(), run); err != nil {
					t.Error(err)
				}
				begins()
			}}, continuation.Options{})
			if err != nil {
				t.Fatal(err)
			}
			does(t, p, rt)
			p.stands(run, continuation.StatusPending, "")
		})
	}
}

// Errors by which a Runtime knows that it has to look again, or that somebody else is at work.
var refusals = []error{dispatcher.ErrStaleCursor, dispatcher.ErrBusy, dispatcher.ErrStillRunning}

// A hook may fail with any error, also with one of these: it would be told the same for ever, or
// nobody would be told of it.
func TestARecoveryWhoseHookFailsWithARefusal(t *testing.T) {
	g := waiting(t, continuation.Wait{}, dag.Policy{}, says)
	for _, refusal := range refusals {
		t.Run(refusal.Error(), func(t *testing.T) {
			p := talk(t, g)
			recoversOnce(t, p, g, refusal, func(asks func() error) dispatcher.Options {
				return dispatcher.Options{Hooks: dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error { return asks() }}}
			})
		})
	}
}

// Nor is Options.Revalidate asked for ever, which may return such an error as well.
func TestARecoveryWhoseRevalidationFailsWithARefusal(t *testing.T) {
	b := dag.New[Talk]("talk")
	price := dag.Step(b, "price", func(ctx context.Context, _ *Talk) error {
		return dag.Depends(ctx, dag.Dependency{Name: "price", Captured: time.Unix(0, 0), StaleAfter: 1, OnStale: dag.Revalidate})
	})
	dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		return err
	}, price)
	g := frozen(t, b)
	for _, refusal := range refusals {
		t.Run(refusal.Error(), func(t *testing.T) {
			p := talk(t, g)
			recoversOnce(t, p, g, refusal, func(asks func() error) dispatcher.Options {
				return dispatcher.Options{Revalidate: func(context.Context, dag.Dependency) error { return asks() }}
			})
		})
	}
}

// recoversOnce checks that the Recover of another process asks once what refuses, and returns that.
func recoversOnce(t *testing.T, p *process, g *dag.Graph[Talk], refusal error, of func(asks func() error) dispatcher.Options) {
	t.Helper()
	tr := reply("t", "hello")
	tr.LeaveIt = true
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	asked := 0
	next := under(t, of(func() error {
		if asked++; asked > 10 {
			return errWeather
		}
		return refusal
	}), g, p.store, continuation.Options{})
	if runs, err := next.rt.Recover(t.Context()); !errors.Is(err, refusal) || asked != 1 {
		t.Errorf("recovered %q, %v, asked %d times", runs, err, asked)
	}
}
