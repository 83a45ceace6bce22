package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// waitingLine is a line of nodes that each wait for a key, in a loop of this name, or in none.
func waitingLine(t testing.TB, loop string, names, keys []string) *dag.Graph[Talk] {
	t.Helper()
	b := dag.New[Talk]("talk")
	var last []dag.Edge[Talk]
	for i, name := range names {
		last = []dag.Edge[Talk]{dag.Step(b, name, func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: keys[i]})
			if err == nil {
				s.Said.Append(keys[i] + r.Payload)
			}
			return err
		}, last...)}
	}
	if loop == "" {
		return frozen(t, b)
	}
	around := dag.New[Talk]("around")
	dag.Loop(around, loop, frozen(t, b), func(*Talk) bool { return true }, 2)
	return frozen(t, around)
}

// migrated is a process whose graph is another one, and which says what nodes are called in it.
func migrated(t testing.TB, g *dag.Graph[Talk], store checkpoint.Store, nodes map[string]string) *process {
	t.Helper()
	moves := []dispatcher.Migration{{Name: "names", Nodes: nodes}}
	return under(t, dispatcher.Options{Paranoid: true, Migrations: moves}, g, store, continuation.Options{})
}

// A wait goes with its node when that is renamed while it waits: it ends with its trigger, no later
// resume counts as a lapse of it, and no trigger of the run is left behind.
func TestAWaitGoesWithANodeThatIsRenamed(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e", "f"}
	next := slices.Concat([]string{"question"}, keys[1:])
	for name, c := range map[string]struct {
		was, is string // the loop
		nodes   map[string]string
		path    string
	}{
		"a node":                   {"", "", map[string]string{"a": "question"}, "question"},
		"a loop and what is in it": {"loop", "lap", map[string]string{"loop": "lap", "loop/a": "lap/question"}, "lap/1/question"},
	} {
		t.Run(name, func(t *testing.T) {
			store := &memory.Store{}
			begin(t, waitingLine(t, c.was, keys, keys), store, continuation.Options{}).waits(run)
			p := migrated(t, waitingLine(t, c.is, next, keys), store, c.nodes)
			for _, key := range keys {
				tr := reply2("t-"+key, key)
				tr.LeaveIt = true
				if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
					t.Fatal(err)
				}
				if runs, err := p.rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
					t.Fatalf("behind %s were recovered %q, %v", key, runs, err)
				}
				if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
					t.Fatalf("behind %s, again were recovered %q, %v", key, runs, err)
				}
			}
			if got, want := p.said(run), []string{"ax", "bx", "cx", "dx", "ex", "fx"}; !slices.Equal(got, want) {
				t.Errorf("said was %q, want %q", got, want)
			}
			all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
			if err != nil || len(all) != len(keys) {
				t.Fatalf("%+v, %v", all, err)
			}
			for _, v := range all {
				if v.Status != continuation.StatusResolved || v.Resumes != 1 || v.Lapses > 0 {
					t.Errorf("the wait of %s is %s, was resumed %d times and has lapsed %d", v.Path, v.Status, v.Resumes, v.Lapses)
				}
			}
			if !slices.ContainsFunc(all, func(v continuation.View) bool { return v.Path == c.path }) {
				t.Errorf("no wait is of %s: %+v", c.path, all)
			}
		})
	}
}

// A trigger that was accepted under the old name is the node's under the new one, and failures that
// came before the migration count behind it.
func TestAFailureUnderTheOldNameCounts(t *testing.T) {
	fails := true
	graph := func(name string) *dag.Graph[Talk] {
		b := dag.New[Talk]("talk")
		dag.Step(b, name, func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "a"})
			if err == nil && fails {
				return errWeather
			}
			s.Said.Append(r.Payload)
			return err
		})
		return frozen(t, b)
	}
	store := &memory.Store{}
	p := begin(t, graph("ask"), store, continuation.Options{})
	p.waits(run)
	if _, err := p.rt.Trigger(t.Context(), reply2("t1", "a")); err != nil {
		t.Fatal(err)
	}
	fails = false
	p = migrated(t, graph("question"), store, map[string]string{"ask": "question"})
	if _, err := p.rt.Trigger(t.Context(), reply2("t2", "a")); err != nil {
		t.Fatal(err)
	}
	if v := p.stands(run, continuation.StatusResolved, continuation.Completed); v.Failures != 1 || v.Lapses > 0 || v.Path != "question" {
		t.Errorf("the wait of %s has failed %d times and lapsed %d", v.Path, v.Failures, v.Lapses)
	}
}

// What waits in a node that a migration forgets is superseded: nobody waits for its trigger, and
// one that it has is gone on with no more.
func TestAWaitOfANodeThatIsForgotten(t *testing.T) {
	graph := func(names ...string) *dag.Graph[Talk] {
		b := dag.New[Talk]("talk")
		for _, name := range names {
			dag.Step(b, name, func(ctx context.Context, _ *Talk) error {
				_, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: name})
				return err
			})
		}
		return frozen(t, b)
	}
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken %v", taken), func(t *testing.T) {
			store := &memory.Store{}
			p := begin(t, graph("a", "b"), store, continuation.Options{})
			p.waits(run)
			if taken {
				tr := reply2("t-a", "a")
				tr.LeaveIt = true
				if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
					t.Fatal(err)
				}
			}
			p = migrated(t, graph("b"), store, map[string]string{"a": ""})
			if out, err := p.rt.Trigger(t.Context(), reply2("t-b", "b")); err != nil || out.Status != continuation.StatusResolved {
				t.Errorf("%+v, %v", out, err)
			}
			if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
				t.Errorf("recovered %q, %v", runs, err)
			}
			all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
			if err != nil || len(all) != 2 {
				t.Fatalf("%+v, %v", all, err)
			}
			for _, v := range all {
				want := continuation.StatusResolved
				if v.Path == "a" {
					want = continuation.StatusSuperseded
				}
				if v.Status != want {
					t.Errorf("the wait of %s is %s, want %s", v.Path, v.Status, want)
				}
			}
		})
	}
}

// A node that is called as one that was forgotten, and waits under the same name, has a wait of its
// own: the one that was superseded stays what it is, and no trigger is meant for it.
func TestANodeCalledAsOneThatIsForgotten(t *testing.T) {
	waits := func(b *dag.Builder[Talk], name string, after ...dag.Edge[Talk]) dag.Edge[Talk] {
		return dag.Step(b, name, func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: name})
			if err == nil {
				s.Said.Append(name + r.Payload)
			}
			return err
		}, after...)
	}
	old, without, anew := dag.New[Talk]("talk"), dag.New[Talk]("talk"), dag.New[Talk]("talk")
	waits(old, "a")
	waits(old, "b")
	waits(old, "c")
	waits(without, "b")
	waits(without, "c")
	waits(anew, "b")
	waits(anew, "a", waits(anew, "c"))

	store := &memory.Store{}
	begin(t, frozen(t, old), store, continuation.Options{}).waits(run)
	p := migrated(t, frozen(t, without), store, map[string]string{"a": ""})
	if _, err := p.rt.Trigger(t.Context(), reply2("t-b", "b")); err != nil {
		t.Fatal(err)
	}
	p = begin(t, frozen(t, anew), store, continuation.Options{})
	if _, err := p.rt.Trigger(t.Context(), reply2("t-c", "c")); err != nil {
		t.Fatal(err)
	}
	ofA := func(status continuation.Status) (gone, is continuation.View) {
		t.Helper()
		all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
		all = slices.DeleteFunc(all, func(v continuation.View) bool { return v.Path != "a" })
		if err != nil || len(all) != 2 || all[0].ID == all[1].ID {
			t.Fatalf("the waits of a are %+v, %v; want two", all, err)
		}
		if gone, is = all[0], all[1]; gone.Status != continuation.StatusSuperseded || gone.Trigger != nil || is.Status != status {
			t.Errorf("the waits of a are %s with %+v, and %s; want superseded, and %s", gone.Status, gone.Trigger, is.Status, status)
		}
		return gone, is
	}
	gone, is := ofA(continuation.StatusPending)
	late := reply2("t-late", "a")
	late.Wait = gone.ID
	if _, err := p.rt.Trigger(t.Context(), late); !errors.Is(err, continuation.ErrTerminal) {
		t.Errorf("a trigger for the wait that was forgotten: %v", err)
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("t-a", "a")); err != nil || out.Wait != is.ID {
		t.Errorf("a trigger for the new wait: %+v, %v", out, err)
	}
	ofA(continuation.StatusResolved)
	if got, want := p.said(run), []string{"bx", "cx", "ax"}; !slices.Equal(got, want) {
		t.Errorf("said was %q, want %q", got, want)
	}
}
