package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A till is where visits pay. It knows payments by their keys.
type till struct {
	mu       sync.Mutex
	keys, by []string
}

// payers are those who have paid, in the order of their names.
func (m *till) payers() []string { return slices.Sorted(slices.Values(m.by)) }

// pays is a visit that pays, and behind that asks if it is to.
func (m *till) pays(by string, asks bool) part {
	return func(ctx context.Context, s *Tale) error {
		receipt, err := dag.Effect(ctx, "pay", by, func(ctx context.Context, by string) (string, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.keys, m.by = append(m.keys, dag.Key(ctx)), append(m.by, by)
			return "of " + by, nil
		})
		if err != nil {
			return err
		}
		s.Notes.Put(by, receipt)
		if asks {
			return asksOnce(ctx, s)
		}
		return nil
	}
}

func asksOnce(ctx context.Context, _ *Tale) error {
	_, err := dag.Ask[string](ctx, "q", "on?")
	return err
}

// goesOn has a run with this graph answer what a visit asks, if that is said, and go on.
func goesOn(t *testing.T, store *memory.Store, nodes map[string]string, answer string, make func(b *dag.Builder[Tale])) (*dispatcher.Result[Tale], error) {
	t.Helper()
	b := dag.New[Tale]("shop")
	make(b)
	o := dispatcher.Options{}
	if nodes != nil {
		o = migrating(dispatcher.Migration{Name: "m", Nodes: nodes})
	}
	d := process(t, frozen(t, b), store, o)
	if answer != "" {
		stands, err := d.Open(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(stands.Interrupts, func(i dispatcher.Interrupt) bool { return i.Path == answer })
		if i < 0 {
			t.Fatalf("%s asks nothing: %+v", answer, stands.Interrupts)
		}
		if err := d.Answer(t.Context(), run, stands.Interrupts[i].ID, "yes"); err != nil {
			t.Fatal(err)
		}
	}
	return d.Run(t.Context(), run, nil)
}

// What an effect of a forgotten visit has returned is nobody else's, whoever gets its name, and
// whenever.
func TestEffectsOfForgottenVisitsAreGone(t *testing.T) {
	quiet(t)
	var m till
	var store memory.Store
	_, _ = goesOn(t, &store, nil, "", func(b *dag.Builder[Tale]) {
		dag.Step(b, "z", m.pays("z", true))
		dag.Step(b, "y", m.pays("y", true))
		dag.Step(b, "wait", asksOnce)
	})
	_, _ = goesOn(t, &store, map[string]string{"z": ""}, "wait", func(b *dag.Builder[Tale]) {
		dag.Step(b, "y", m.pays("y", true))
		dag.Step(b, "wait", asksOnce)
	})
	res, err := goesOn(t, &store, map[string]string{"y": "z"}, "y", func(b *dag.Builder[Tale]) {
		dag.Step(b, "z", m.pays("y", true))
		dag.Step(b, "wait", asksOnce)
	})
	completes(t, res, err)
	if got, want := asJSON(t, res.State.Notes), `{"y":"of y"}`; got != want || !slices.Equal(m.payers(), []string{"y", "z"}) {
		t.Errorf("paid by %q, and the receipts are %s, want %s", m.by, got, want)
	}
}

// A node takes the name of one that is forgotten, in a graph that is renamed as well: each keeps
// what is its own.
func TestMigrationIntoANameThatIsTaken(t *testing.T) {
	quiet(t)
	for _, loops := range []bool{false, true} {
		var m till
		var store memory.Store
		around := func(b *dag.Builder[Tale], name string, fill func(b *dag.Builder[Tale])) {
			if !loops {
				fill(b)
				return
			}
			body := dag.New[Tale]("body")
			fill(body)
			dag.Loop(b, name, frozen(t, body), func(*Tale) bool { return true }, 2)
		}
		nodes := map[string]string{"x": "y", "y": ""}
		asked := "y"
		if loops {
			nodes = map[string]string{"loop": "lap", "loop/x": "lap/y", "loop/y": ""}
			asked = "lap/1/y"
		}
		_, err := goesOn(t, &store, nil, "", func(b *dag.Builder[Tale]) {
			around(b, "loop", func(b *dag.Builder[Tale]) {
				dag.Step(b, "x", m.pays("x", true))
				dag.Step(b, "y", m.pays("y", true))
			})
		})
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		next := func(b *dag.Builder[Tale]) {
			around(b, "lap", func(b *dag.Builder[Tale]) { dag.Step(b, "y", m.pays("x", true)) })
		}
		if _, err := goesOn(t, &store, nodes, "", next); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		res, err := goesOn(t, &store, nil, asked, next)
		completes(t, res, err)
		if got, want := asJSON(t, res.State.Notes), `{"x":"of x"}`; got != want || !slices.Equal(m.payers(), []string{"x", "y"}) {
			t.Errorf("paid by %q, and the receipts are %s, want %s", m.by, got, want)
		}
	}
}

// No two effects have one key: a node that gets a name which a migration took from another one has
// others. Visits that keep their names keep their keys.
func TestKeysOfANameThatWasTaken(t *testing.T) {
	quiet(t)
	for name, test := range map[string]struct {
		nodes map[string]string
		is    string // what the first node is called then, if it is there
	}{
		"renamed":   {map[string]string{"y": "w", "keeps": "keeps"}, "w"},
		"forgotten": {map[string]string{"y": "", "before": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var m till
			var store memory.Store
			_, _ = goesOn(t, &store, nil, "", func(b *dag.Builder[Tale]) {
				y := dag.Step(b, "y", m.pays("old", false))
				dag.Step(b, "keeps", asksThenPays(&m), y)
				dag.Step(b, "wait", asksOnce, y)
			})
			second := func(b *dag.Builder[Tale]) (after []dag.Edge[Tale]) {
				if test.is != "" {
					after = append(after, dag.Step(b, test.is, m.pays("old", false)))
				}
				return append(after, dag.Step(b, "wait", asksOnce, after...), dag.Step(b, "keeps", asksThenPays(&m), after...))
			}
			if test.is == "" { // the name is free in one graph, and another node's in the next one
				nodes := map[string]string{"y": ""}
				_, _ = goesOn(t, &store, nodes, "wait", func(b *dag.Builder[Tale]) { second(b) })
				test.nodes = nil
			}
			third := func(b *dag.Builder[Tale]) {
				after := second(b)
				front := dag.Step(b, "front", m.pays("front", false), after[len(after)-2:]...)
				dag.Step(b, "behind", m.pays("behind", false), dag.Step(b, "y", m.pays("new", false), front))
			}
			asked := "wait"
			if test.is == "" {
				asked = "keeps"
			}
			_, _ = goesOn(t, &store, test.nodes, asked, third)
			res, err := goesOn(t, &store, nil, map[string]string{"wait": "keeps", "keeps": ""}[asked], third)
			completes(t, res, err)
			if want := []string{"tale/y#pay", "tale/keeps#pay", "tale/front#pay", "tale~0.1/y#pay", "tale/behind#pay"}; !slices.Equal(m.keys, want) {
				t.Errorf("the keys are %q, want %q", m.keys, want)
			}
		})
	}
}

// What is inside a node whose name was taken from another one has other keys as well, and is in
// doubt under them.
func TestKeysInsideANameThatWasTaken(t *testing.T) {
	quiet(t)
	var m till
	var store memory.Store
	inner := func(f part) *dag.Graph[Tale] {
		body := dag.New[Tale]("body")
		dag.Step(body, "y", f)
		return frozen(t, body)
	}
	once := func(*Tale) bool { return true }
	_, _ = goesOn(t, &store, nil, "", func(b *dag.Builder[Tale]) {
		dag.Step(b, "wait", asksOnce, dag.Loop(b, "loop", inner(m.pays("old", false)), once, 2))
	})
	next := func(b *dag.Builder[Tale]) {
		wait := dag.Step(b, "wait", asksOnce, dag.Loop(b, "lap", inner(m.pays("old", false)), once, 2))
		dag.Loop(b, "loop", inner(func(ctx context.Context, s *Tale) error {
			return errors.Join(m.pays("new", false)(ctx, s), failsInDoubt(ctx))
		}), once, 2, wait)
	}
	_, err := goesOn(t, &store, map[string]string{"loop": "lap"}, "wait", next)
	var doubt *dag.InDoubtError
	if !errors.As(err, &doubt) || doubt.ID != "tale~0.1/loop/1/y#send" {
		t.Errorf("the run ends with %v", err)
	}
	b := dag.New[Tale]("shop")
	next(b)
	stands, err := process(t, frozen(t, b), &store, dispatcher.Options{}).Open(t.Context(), run)
	if err != nil || len(stands.Effects) != 2 || stands.Effects[1].ID != doubt.ID {
		t.Errorf("open is %+v, %v", stands, err)
	}
	if want := []string{"tale/loop/1/y#pay", "tale~0.1/loop/1/y#pay"}; !slices.Equal(m.keys, want) {
		t.Errorf("the keys are %q, want %q", m.keys, want)
	}
}

func failsInDoubt(ctx context.Context) error {
	_, err := dag.Effect(ctx, "send", 1, func(context.Context, int) (int, error) { return 0, errors.New("reset") })
	return err
}

func asksThenPays(m *till) part {
	return func(ctx context.Context, s *Tale) error {
		if err := asksOnce(ctx, s); err != nil {
			return err
		}
		return m.pays("keeps", false)(ctx, s)
	}
}

// A visit is not forgotten while nobody knows whether an effect of it happened.
func TestMigrationForgetsNoDoubt(t *testing.T) {
	quiet(t)
	var store memory.Store
	_, _ = goesOn(t, &store, nil, "", func(b *dag.Builder[Tale]) {
		dag.Step(b, "a", func(ctx context.Context, _ *Tale) error { return failsInDoubt(ctx) })
		dag.Step(b, "b", asksOnce)
	})
	head, err := store.Stat(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	_, err = goesOn(t, &store, map[string]string{"a": ""}, "", func(b *dag.Builder[Tale]) { dag.Step(b, "b", asksOnce) })
	changeRefused(t, &store, head.Head, err, `effect "send" of visit a was begun and has not ended, and its node is forgotten`)
}

// What a fork takes of the effects of a renamed visit is that visit's, though another one had its
// name.
func TestForkTakesTheEffectsOfARenamedVisit(t *testing.T) {
	for range 20 {
		var m till
		var store memory.Store
		b := dag.New[Tale]("shop")
		s := dag.Step(b, "s", m.pays("s", false))
		dag.Step(b, "z", m.pays("z", false), dag.Step(b, "y", m.pays("y", false), s))
		res, err := process(t, frozen(t, b), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		b = dag.New[Tale]("shop")
		dag.Step(b, "z", m.pays("y", false), dag.Step(b, "s2", m.pays("s", false)))
		d := process(t, frozen(t, b), &store, migrating(dispatcher.Migration{Name: "m", Nodes: map[string]string{"s": "s2", "y": "z"}}))
		forks, err := d.Fork(t.Context(), run, "1", dispatcher.ForkOptions[Tale]{})
		if err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), forks[0], nil)
		completes(t, res, err)
		if got, want := asJSON(t, res.State.Notes), `{"s":"of s","y":"of y"}`; got != want || len(m.by) != 3 {
			t.Fatalf("the receipts are %s, want %s; paid by %q", got, want, m.by)
		}
	}
}

// A run that waits where a migration has brought it stands there for everybody: the cursor that a
// call returns can be gone on from.
func TestMigrationOfARunThatWaits(t *testing.T) {
	quiet(t)
	var store memory.Store
	_, _ = goesOn(t, &store, nil, "", func(b *dag.Builder[Tale]) {
		dag.Step(b, "z", asksOnce)
		dag.Step(b, "old", asksOnce)
	})
	next := dag.New[Tale]("shop")
	dag.Step(next, "new", asksOnce)
	g := frozen(t, next)
	d := process(t, g, &store, migrating(dispatcher.Migration{Name: "m", Nodes: map[string]string{"z": "", "old": "new"}}))
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "new")
	stands, err := process(t, g, &store, dispatcher.Options{}).Open(t.Context(), run)
	if err != nil || stands.Cursor.String() != res.Cursor.String() || len(stands.Interrupts) != 1 {
		t.Errorf("the call returns %s, and others find %+v, %v", res.Cursor, stands, err)
	}
	again, err := d.Run(t.Context(), run, nil)
	if rests(t, again, err, checkpoint.StatusInterrupted, "new"); again.Cursor.Seq != res.Cursor.Seq {
		t.Errorf("a further call writes: %s, behind %s", again.Cursor, res.Cursor)
	}
	if _, err := d.Resume(t.Context(), run, dispatcher.From(res.Cursor)); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Errorf("Resume from there: %v", err)
	}
}

// A node that is in the graph is not forgotten, whatever is around it is called.
func TestMigrationForgetsNoNodeInsideARenamedOne(t *testing.T) {
	body := dag.New[Tale]("body")
	dag.Step(body, "y", asksOnce)
	b := dag.New[Tale]("shop")
	dag.Loop(b, "lap", frozen(t, body), func(*Tale) bool { return true }, 2)
	o := migrating(dispatcher.Migration{Name: "m", Nodes: map[string]string{"loop": "lap", "loop/y": ""}})
	var refused *dispatcher.OptionError
	if _, err := dispatcher.New(frozen(t, b), new(memory.Store), o); !errors.As(err, &refused) {
		t.Errorf("New returns %v, want an OptionError", err)
	}
}

// What a visit of a past iteration depends on is looked at though a migration gives its name to
// another node.
func TestDependenciesOfANameThatWasTaken(t *testing.T) {
	quiet(t)
	var store memory.Store
	depends := func(name string) part {
		return func(ctx context.Context, s *Tale) error {
			if s.Said.Append(name); s.Said.Len() > 2 {
				return asksOnce(ctx, s)
			}
			return dag.Depends(ctx, dag.Dependency{Name: "of " + name, StaleAfter: time.Nanosecond})
		}
	}
	loops := func(names ...string) func(b *dag.Builder[Tale]) {
		return func(b *dag.Builder[Tale]) {
			body := dag.New[Tale]("body")
			var after []dag.Edge[Tale]
			for _, name := range names {
				after = []dag.Edge[Tale]{dag.Step(body, name, depends(name), after...)}
			}
			dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Said.Len() > 3 }, 5)
		}
	}
	_, _ = goesOn(t, &store, nil, "", loops("y", "z"))
	res, err := goesOn(t, &store, map[string]string{"loop/y": "loop/z"}, "", loops("z"))
	if rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/z"); len(res.Warnings) != 2 ||
		!strings.Contains(res.Warnings[0], `"of y"`) || !strings.Contains(res.Warnings[1], `"of z"`) {
		t.Errorf("the warnings are %q, want one of y and one of z", res.Warnings)
	}
}

// usesOld is a visit that depends on what is stale, as on says.
func usesOld(name string, on dag.OnStale) part {
	return func(ctx context.Context, s *Tale) error {
		s.Said.Append(name)
		return dag.Depends(ctx, dag.Dependency{Name: "of " + name, Captured: time.Unix(1, 0), StaleAfter: time.Minute, OnStale: on})
	}
}

func failsAlways(context.Context, *Tale) error { return errors.New("no") }

// A run does not go on behind what is stale because a migration gives the name of the forgotten
// visit that used it to another one, or the next migration does, and that one could run again.
func TestStaleUnderANameThatWasTaken(t *testing.T) {
	for _, twice := range []bool{false, true} {
		quiet(t)
		var store memory.Store
		next := func(name string) func(b *dag.Builder[Tale]) {
			return func(b *dag.Builder[Tale]) {
				dag.Step(b, name, usesOld("b", dag.Ignore))
				dag.Step(b, "c", failsAlways)
			}
		}
		_, _ = goesOn(t, &store, nil, "", func(b *dag.Builder[Tale]) {
			a := dag.Step(b, "a", usesOld("a", dag.Invalidate))
			dag.Step(b, "b", usesOld("b", dag.Ignore), a)
			dag.Step(b, "c", failsAlways, a)
		})
		nodes := map[string]string{"a": "", "b": "a"}
		if twice {
			o := migrating(dispatcher.Migration{Name: "m", Nodes: map[string]string{"a": ""}})
			o.Now = func() time.Time { return time.Unix(2, 0) } // it is not stale yet
			b := dag.New[Tale]("shop")
			next("b")(b)
			res, err := process(t, frozen(t, b), &store, o).Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusFailed, "c")
			nodes = map[string]string{"b": "a"}
		}
		_, err := goesOn(t, &store, nodes, "", next("a"))
		var stale *dispatcher.StaleError
		if !errors.As(err, &stale) || stale.Path != "a (forgotten)" || stale.Dependency.Name != "of a" || stale.Rewind != "0" {
			t.Errorf("the run ends with %v, want that it is stale", err)
		}
	}
}

// Nobody is asked about what only a forgotten visit used of which nothing is merged, and no run is
// refused for it.
func TestStaleAndForgotten(t *testing.T) {
	body := dag.New[Tale]("body")
	dag.Step(body, "y", failsAlways, dag.Step(body, "x", usesOld("x", dag.Invalidate)))
	inner := frozen(t, body)
	for name, a := range map[string]func(b *dag.Builder[Tale]){
		"invalidated": func(b *dag.Builder[Tale]) { dag.Step(b, "a", usesOld("a", dag.Invalidate)) },
		"asked about": func(b *dag.Builder[Tale]) { dag.Step(b, "a", usesOld("a", dag.Revalidate)) },
		"in a loop":   func(b *dag.Builder[Tale]) { dag.Loop(b, "a", inner, func(*Tale) bool { return true }, 2) },
		"an item": func(b *dag.Builder[Tale]) {
			dag.Each(b, "a", func(*Tale) []int { return []int{1, 2} }, func(ctx context.Context, s *Tale, item int) error {
				if item == 2 {
					return failsAlways(ctx, s)
				}
				return usesOld("a", dag.Invalidate)(ctx, s)
			}).With(dag.Policy{Parallel: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			var store memory.Store
			_, _ = goesOn(t, &store, nil, "", func(b *dag.Builder[Tale]) {
				a(b)
				dag.Step(b, "b", failsAlways)
			})
			res, err := goesOn(t, &store, map[string]string{"a": ""}, "", func(b *dag.Builder[Tale]) { dag.Step(b, "b", usesOld("b", dag.Ignore)) })
			completes(t, res, err)
			says(t, res.State, "b")
		})
	}
}
