package continuation_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Runs of a graph of another name that a migration brings are the Runtime's before anybody has gone
// on with them: what they wait for is listed, takes triggers, ends in its time, and is told of.
// Those that no migration names are not.
func TestRunsOfAGraphThatIsCalledAnewAreTheRuntimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		graph := func(name string) *dag.Graph[Talk] {
			b := dag.New[Talk](name)
			dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
				r, err := continuation.Await[string](ctx, "answer", continuation.Wait{OnExpire: continuation.Default("nobody")})
				if err != nil {
					return err
				}
				return says(ctx, s, r)
			})
			return frozen(t, b)
		}
		store, was := &memory.Store{}, graph("was")
		scope := map[string]string{"of": "ann"}
		old := begin(t, was, store, continuation.Options{})
		old.waits("superseded", dispatcher.Labels(map[string]string{"of": "bob"}))
		for _, id := range []string{"triggers", "sweeps", "stops"} {
			old.waits(id, dispatcher.Labels(continuation.Owed(scope)))
			lasts(time.Second)
		}
		begin(t, graph("other"), store, continuation.Options{}).waits("alien", dispatcher.Labels(scope))
		p := under(t, dispatcher.Options{Paranoid: true, Migrations: []dispatcher.Migration{{Name: "called anew", From: was.Digest()}}},
			graph("is"), store, continuation.Options{Deliverer: &postman{}})
		p.waits("new", dispatcher.Labels(continuation.Owed(scope)))
		runs := func() (runs []string) {
			t.Helper()
			all, err := p.rt.List(t.Context(), continuation.Filter{Scope: scope})
			if err != nil {
				t.Error(err)
			}
			for _, v := range all {
				runs = append(runs, v.Run)
			}
			return runs
		}
		if got, want := runs(), []string{"new", "stops", "sweeps", "triggers"}; !slices.Equal(got, want) {
			t.Errorf("there are waits of %q, want %q", got, want)
		}
		tr := reply("t", "x")
		tr.Run = "triggers"
		if out, err := p.rt.Trigger(t.Context(), tr); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("the trigger: %+v, %v", out, err)
		}
		if end, err := p.rt.Stop(t.Context(), "stops", continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil || end.Status != checkpoint.StatusCancelled {
			t.Errorf("stopped: %+v, %v", end, err)
		}
		if ends, err := p.rt.Supersede(t.Context(), map[string]string{"of": "bob"}, "", "bob"); err != nil || len(ends) != 1 {
			t.Errorf("superseded: %+v, %v", ends, err)
		}
		lasts(continuation.DefaultWithin)
		if swept, err := p.rt.Sweep(t.Context()); err != nil || len(swept) != 2 {
			t.Errorf("swept %q, %v", swept, err)
		}
		if brought, err := p.rt.Deliver(t.Context()); err != nil || len(brought) != 3 {
			t.Errorf("brought of %q, %v", brought, err)
		}
		if _, err := p.rt.Stop(t.Context(), "alien", continuation.Stopping{Reason: continuation.CancelledByUser}); !errors.Is(err, continuation.ErrNotFound) {
			t.Errorf("a run of another graph: %v", err)
		}
		if got, want := runs(), []string{"new", "stops", "sweeps", "triggers"}; !slices.Equal(got, want) {
			t.Errorf("now there are waits of %q, want %q", got, want)
		}
	})
}

// A graph that a migration names, and that can't be read, is told of, and hides no run of another
// one: what those wait for is listed and found, takes triggers, and ends in its time.
func TestAGraphThatCannotBeReadHidesNoOtherRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, bad := &memory.Store{}, "sha256:"+strings.Repeat("0", 64)
		if err := store.PutGraph(t.Context(), bad, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		w := continuation.Wait{OnExpire: continuation.Default("nobody")}
		p := under(t, dispatcher.Options{Paranoid: true, Migrations: []dispatcher.Migration{{Name: "of what is bad", From: bad}}},
			waiting(t, w, dag.Policy{}, says), store, continuation.Options{})
		p.waits("triggers")
		p.waits("sweeps")
		tells := func(what string, n, want int, err error) {
			t.Helper()
			if n != want || !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "of what is bad") {
				t.Errorf("%s: %d, %v; want %d, and that the graph can't be read", what, n, err, want)
			}
		}
		all, err := p.rt.List(t.Context(), continuation.Filter{})
		tells("List", len(all), 2, err)
		if v, err := p.rt.Get(t.Context(), all[0].ID); err != nil || v.ID != all[0].ID {
			t.Errorf("Get: %+v, %v", v, err)
		}
		tr := reply("t", "x")
		tr.Run = "triggers"
		if out, err := p.rt.Trigger(t.Context(), tr); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("the trigger: %+v, %v", out, err)
		}
		lasts(continuation.DefaultWithin)
		swept, err := p.rt.Sweep(t.Context())
		tells("Sweep", len(swept), 1, err)
		p.stands("sweeps", continuation.StatusResolved, continuation.Completed)
	})
}

// asking is a graph of this name, of one node that waits.
func asking(t testing.TB, name, node string) *dag.Graph[Talk] {
	t.Helper()
	b := dag.New[Talk](name)
	dag.Step(b, node, func(ctx context.Context, s *Talk) error {
		_, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		return err
	})
	return frozen(t, b)
}

// A mover is a store in which something happens when it has first been listed.
type mover struct {
	*memory.Store
	move func()
}

func (m *mover) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := m.Store.List(ctx, f)
	m.move()
	return page, err
}

// A run that comes to the graph of the new name while runs are listed is among them, once and as it
// was read last.
func TestARunThatIsBroughtWhileRunsAreListed(t *testing.T) {
	store, was := &memory.Store{}, asking(t, "was", "ask")
	begin(t, was, store, continuation.Options{}).waits(run)
	of := dispatcher.Options{Paranoid: true, Migrations: []dispatcher.Migration{{Name: "called anew", From: was.Digest()}}}
	p := under(t, of, asking(t, "is", "ask"), store, continuation.Options{})
	looking := under(t, of, asking(t, "is", "ask"), &mover{store, sync.OnceFunc(func() {
		if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
			t.Errorf("the run does not go on: %v", err)
		}
	})}, continuation.Options{})
	all, err := looking.rt.List(t.Context(), continuation.Filter{})
	if err != nil || len(all) != 1 || all[0].Status != continuation.StatusResolved {
		t.Errorf("%+v, %v; want the wait once, and as it is by then", all, err)
	}
}

// Of a migration that names a graph by its digest no run of another graph of that name is the
// Runtime's.
func TestAMigrationOfOneGraphOfItsName(t *testing.T) {
	store, was := &memory.Store{}, asking(t, "was", "ask")
	begin(t, was, store, continuation.Options{}).waits(run)
	begin(t, asking(t, "was", "beg"), store, continuation.Options{}).waits("alien")
	p := under(t, dispatcher.Options{Paranoid: true, Migrations: []dispatcher.Migration{{Name: "called anew", From: was.Digest()}}},
		asking(t, "is", "ask"), store, continuation.Options{})
	if all, err := p.rt.List(t.Context(), continuation.Filter{}); err != nil || len(all) != 1 || all[0].Run != run {
		t.Errorf("%+v, %v; want the wait of %s alone", all, err, run)
	}
}
