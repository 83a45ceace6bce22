package dispatcher_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// buys is a visit that pays the same as any other, and notes under its path which payment that was.
func (m *till) buys(ctx context.Context, s *Tale) error {
	n, err := dag.Effect(ctx, "pay", 1, func(ctx context.Context, _ int) (int, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keys = append(m.keys, dag.Key(ctx))
		return len(m.keys), nil
	})
	if err == nil {
		s.Notes.Put(visitPath(ctx), fmt.Sprint(n))
	}
	return err
}

// A renaming is one program after the other, of one run, in whose graphs nodes have other names.
type renaming struct {
	till  till
	store memory.Store
	// fill adds what lies behind the first node, "s".
	fill []func(b *dag.Builder[Tale], m *till, s dag.Edge[Tale])
	// nodes are the names of the migration to each but the first program.
	nodes []map[string]string
}

// program is the n-th one.
func (r *renaming) program(t *testing.T, n int, before ...string) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	b := dag.New[Tale]("shop")
	r.fill[n](b, &r.till, dag.Step(b, "s", nothing[Tale]))
	var o dispatcher.Options
	if n > 0 {
		o = migrating(dispatcher.Migration{Name: "m", Nodes: r.nodes[n-1]})
	}
	o.InterruptBefore = before
	return process(t, frozen(t, b), &r.store, o)
}

// forks forks a run at a checkpoint, has the fork run by a program, and compares what its visits
// have noted. Nothing is paid.
func (r *renaming) forks(t *testing.T, d *dispatcher.Dispatcher[Tale], id, at, want string) {
	t.Helper()
	paid := len(r.till.keys)
	for _, how := range []dispatcher.EffectsOfFork{dispatcher.ReuseOrRefuse, dispatcher.ReuseOrLive} {
		ids, err := d.Fork(t.Context(), id, at, dispatcher.ForkOptions[Tale]{Effects: how})
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Run(t.Context(), ids[0], nil)
		completes(t, res, err)
		if got := asJSON(t, res.State.Notes); got != want || len(r.till.keys) != paid {
			t.Errorf("%s: the fork has %s, want %s, and pays under %q", how, got, want, r.till.keys[paid:])
		}
		sameMachine(t, d, ids[0])
	}
}

// chain adds nodes, each behind the one before it, that pay.
func chain(names ...string) func(b *dag.Builder[Tale], m *till, s dag.Edge[Tale]) {
	return func(b *dag.Builder[Tale], m *till, s dag.Edge[Tale]) {
		for _, name := range names {
			s = dag.Step(b, name, m.buys, s)
		}
	}
}

// loopOf adds a loop of two iterations over a chain.
func loopOf(t *testing.T, name string, names ...string) func(b *dag.Builder[Tale], m *till, s dag.Edge[Tale]) {
	return func(b *dag.Builder[Tale], m *till, s dag.Edge[Tale]) {
		body := dag.New[Tale]("body")
		chain(names...)(body, m, dag.Step(body, "in", nothing[Tale]))
		dag.Loop(b, name, frozen(t, body), func(s *Tale) bool { return s.Notes.Len() > len(names) }, 3, s)
	}
}

// itemsOf adds an item that is a chain.
func itemsOf(t *testing.T, name string, names ...string) func(b *dag.Builder[Tale], m *till, s dag.Edge[Tale]) {
	return func(b *dag.Builder[Tale], m *till, s dag.Edge[Tale]) {
		body := dag.New[Tale]("body")
		chain(names...)(body, m, dag.Step(body, "in", nothing[Tale]))
		dag.EachGraph(b, name, func(*Tale) []int { return []int{1} }, frozen(t, body), func(*Tale, int, *Tale) {},
			func(from *Tale, _ int, to *Tale) {
				for path, n := range from.Notes.All() {
					to.Notes.Put(path, n)
				}
			}, s)
	}
}

// A visit is the same in a fork and in the run that it comes from, whatever migrations behind the
// checkpoint call its node: the fork takes what that visit's effects have returned and no other's,
// though another node has the name now, and pays nothing again. That is so for a program from
// before the migrations and for one from behind them.
func TestForkFromBeforeARename(t *testing.T) {
	quiet(t)
	type fill = func(b *dag.Builder[Tale], m *till, s dag.Edge[Tale])
	for name, c := range map[string]struct {
		fill  []fill
		nodes []map[string]string
		stops [][2]string // before which node, and visit, each program but the last one stops
		was   string      // what forks by the first program note
		now   string      // and by the last one
	}{
		"a node": {
			[]fill{chain("a"), chain("z", "a")}, []map[string]string{{"a": "z"}},
			[][2]string{{"a", "a"}}, `{"a":"1"}`, `{"a":"2","z":"1"}`,
		},
		"one that has not begun": { // so the fork comes to the graph without its migration
			[]fill{chain("w", "a"), chain("w", "z", "a")}, []map[string]string{{"a": "z"}},
			[][2]string{{"a", "a"}}, `{"a":"2","w":"1"}`, `{"a":"3","w":"1","z":"2"}`,
		},
		"two that change names": {
			[]fill{chain("a", "b"), chain("b", "a")}, []map[string]string{{"a": "b", "b": "a"}},
			[][2]string{{"b", "b"}}, `{"a":"1","b":"2"}`, `{"a":"2","b":"1"}`,
		},
		"twice": {
			[]fill{chain("a", "b"), chain("z", "b", "a"), chain("y", "a", "z")},
			[]map[string]string{{"a": "z"}, {"z": "y", "b": "a", "a": ""}},
			[][2]string{{"a", "a"}, {"b", "b"}}, `{"a":"1","b":"2"}`, `{"a":"2","y":"1","z":"3"}`,
		},
		"in a loop": {
			[]fill{loopOf(t, "loop", "a"), loopOf(t, "lap", "z", "a")}, []map[string]string{{"loop": "lap", "loop/a": "lap/z"}},
			[][2]string{{"loop/a", "loop/1/a"}}, `{"loop/1/a":"1","loop/2/a":"3"}`,
			`{"lap/1/a":"2","lap/1/z":"1","lap/2/a":"4","lap/2/z":"3"}`,
		},
		"in an item": {
			[]fill{itemsOf(t, "each", "a"), itemsOf(t, "all", "z", "a")}, []map[string]string{{"each": "all", "each/a": "all/z"}},
			[][2]string{{"each/a", "each/1/a"}}, `{"each/1/a":"1"}`, `{"all/1/a":"2","all/1/z":"1"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &renaming{fill: c.fill, nodes: c.nodes}
			for i, before := range c.stops {
				d := r.program(t, i, before[0])
				res, err := d.Run(t.Context(), run, nil)
				if i > 0 {
					res, err = d.Resume(t.Context(), run)
				}
				rests(t, res, err, checkpoint.StatusInterrupted, before[1])
			}
			last := r.program(t, len(c.stops))
			res, err := last.Resume(t.Context(), run)
			completes(t, res, err)
			r.forks(t, r.program(t, 0), run, "1", c.was)
			r.forks(t, last, run, "1", c.now)
		})
	}
}

// The same is so where the run has gone back between migrations, before the checkpoint or behind
// it, and in forks of forks.
func TestForkBesideARewindOverARename(t *testing.T) {
	quiet(t)
	r := &renaming{
		fill:  []func(*dag.Builder[Tale], *till, dag.Edge[Tale]){chain("a"), chain("z", "a", "end")},
		nodes: []map[string]string{{"a": "z"}},
	}
	was, now := r.program(t, 0), r.program(t, 1)
	ends := func(d *dispatcher.Dispatcher[Tale], id string) {
		t.Helper()
		res, err := d.Resume(t.Context(), id)
		completes(t, res, err)
	}
	res, err := r.program(t, 0, "a").Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "a")
	ends(now, run) // z, a and end pay 1, 2 and 3
	found, err := now.At(t.Context(), run, "2")
	if err != nil {
		t.Fatal(err)
	}
	between := fmt.Sprintf("%s@%d", run, found.Cursor.Seq) // where z has paid

	for _, id := range []string{"f", "g"} {
		if _, err := was.Fork(t.Context(), run, "1", dispatcher.ForkOptions[Tale]{Into: []string{id}}); err != nil {
			t.Fatal(err)
		}
	}
	r.forks(t, was, "f", "0", `{"a":"1"}`)
	ends(now, "f")
	r.forks(t, now, "f", "", `{"a":"2","end":"3","z":"1"}`)
	r.forks(t, was, "f", "0", `{"a":"1"}`)
	r.forks(t, now, "f", "0", `{"a":"2","end":"3","z":"1"}`)
	ends(was, "g")
	r.forks(t, now, "g", "0", `{"a":"2","end":"3","z":"1"}`)

	if err := was.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	ends(was, run) // a pays 4
	r.forks(t, was, run, "1", `{"a":"4"}`)
	r.forks(t, now, run, between, `{"a":"2","end":"3","z":"1"}`)
}

// Of a checkpoint that was kept for its name, the entries behind it are gone: what is left of them
// tells of other turns, and of nodes with other names. A fork from there takes none of that for its
// own, and what is its own and not gone yet. What may be gone it does not do again.
func TestForkOfAKeptCheckpoint(t *testing.T) {
	quiet(t)
	for _, turns := range []bool{true, false} {
		r := &renaming{
			fill:  []func(*dag.Builder[Tale], *till, dag.Edge[Tale]){chain("a"), chain("z", "a")},
			nodes: []map[string]string{{"a": "z"}},
		}
		was, stops := r.program(t, 0), r.program(t, 0, "a")
		res, err := stops.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "a")
		if err := was.Tag(t.Context(), run, "1", "keep"); err != nil {
			t.Fatal(err)
		}
		now := stops
		if turns {
			res, err = was.Resume(t.Context(), run)
			completes(t, res, err)
			res, err = now.Turn(t.Context(), run, nil)
		} else {
			now = r.program(t, 1, "a")
			res, err = now.Resume(t.Context(), run)
		}
		rests(t, res, err, checkpoint.StatusInterrupted, "a")
		if err := now.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
			t.Fatal(err)
		}
		res, err = now.Resume(t.Context(), run) // payment 2
		completes(t, res, err)
		forkOne(t, was, "tag:keep", "f", dispatcher.ReuseOrLive)
		res, err = was.Run(t.Context(), "f", nil)
		if turns {
			refusedAsTrimmed(t, err)
			continue
		}
		completes(t, res, err)
		if got, want := asJSON(t, res.State.Notes), `{"a":"1"}`; got != want {
			t.Errorf("the fork has %s, want %s", got, want)
		}
	}
}
