package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An afterFunc is an Interceptor's After without its context.
type afterFunc func(c dispatcher.Call, outcomes []string) dispatcher.Change

// hookAfter returns options with interceptors of these Afters, called first, second,
// third…, who stand at nodes.
func hookAfter(nodes []string, afters ...afterFunc) dispatcher.Options {
	var o dispatcher.Options
	for i, after := range afters {
		o.Hooks.Intercept = append(o.Hooks.Intercept, dispatcher.Interceptor{
			Name: []string{"first", "second", "third"}[i], Nodes: nodes,
			After: func(_ context.Context, c dispatcher.Call, outcomes []string) dispatcher.Change {
				return after(c, outcomes)
			},
		})
	}
	return o
}

// substitution is what the entry of a visit tells of interceptors.
func substitution(t testing.TB, store checkpoint.Store, path string) checkpoint.Substitution {
	t.Helper()
	var s checkpoint.Substitution
	for _, e := range readLog(t, store) {
		if e.Kind == checkpoint.Done && e.Path == path && len(e.Data) > 0 {
			if err := json.Unmarshal(e.Data, &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// hooksTale has rulings on a, b and c, and an OnEnd that fails.
var hooksTale = dispatcher.Options{Hooks: dispatcher.Hooks{
	OnEnd: func(context.Context, dispatcher.End) error { return errWeather },
	Intercept: []dispatcher.Interceptor{{
		Name: "guard",
		Before: func(_ context.Context, c dispatcher.Call) dispatcher.Ruling {
			return map[string]dispatcher.Ruling{
				"a": dispatcher.Ask("may it?"), "b": dispatcher.Instead(saying("b")), "c": dispatcher.Deny("too late"),
			}[c.Path]
		},
	}},
}}

// choosing returns choose, whose function goes left, with a step on each side.
func choosing(t testing.TB, w *witness) *dag.Graph[Tale] {
	b := dag.New[Tale]("choosing")
	choose := dag.Route(b, "choose", w.routes(func(*Tale) way { return left }), []way{left, right})
	dag.Step(b, "west", w.sees(nil), choose.On(left))
	dag.Step(b, "east", w.sees(nil), choose.On(right))
	return frozen(t, b)
}

// After a visit each interceptor sees what those before it made of the result, and the
// entry tells who changed it.
func TestReplaced(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	var saw []string
	look := func(c dispatcher.Call, outcomes []string) {
		saw = append(saw, fmt.Sprint(c.State.(*Tale).Said.Slice(), outcomes))
	}
	o := hookAfter([]string{"choose"},
		func(c dispatcher.Call, outcomes []string) dispatcher.Change {
			look(c, outcomes)
			return dispatcher.Keep()
		},
		func(c dispatcher.Call, outcomes []string) dispatcher.Change {
			look(c, outcomes)
			return dispatcher.Replace(saying("turned", "right"))
		},
		func(c dispatcher.Call, outcomes []string) dispatcher.Change {
			look(c, outcomes)
			return dispatcher.Replace(saying("nodded", outcomes...))
		},
	)
	o.Hooks.Intercept = append(o.Hooks.Intercept, dispatcher.Interceptor{
		Nodes: []string{"east"}, Before: func(context.Context, dispatcher.Call) dispatcher.Ruling {
			return dispatcher.Instead(saying("flew east"))
		},
	})
	res, err := process(t, choosing(t, &w), &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "choose", "turned", "nodded", "flew east")
	w.expect(t, "choose")
	if want := []string{"[choose] [left]", "[choose] [left]", "[choose turned] [right]"}; !slices.Equal(saw, want) {
		t.Errorf("the interceptors saw %q, want %q", saw, want)
	}
	for path, want := range map[string]checkpoint.Substitution{
		"choose": {Replaced: []string{"second", "third"}},
		"east":   {Instead: "#4"},
	} {
		if got := substitution(t, &store, path); !reflect.DeepEqual(got, want) {
			t.Errorf("the entry of %s tells %+v, want %+v", path, got, want)
		}
	}
}

// After has a copy of what the visit wrote: what it writes there is in no state, and no interceptor
// behind it sees it.
func TestWritesOfAfterAreDropped(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	scribbles := func(c dispatcher.Call, _ []string) dispatcher.Change {
		s := c.State.(*Tale)
		if got := s.Said.Slice(); !slices.Equal(got, []string{"choose"}) || s.Count.Get() != 0 || s.Word.Get() != "" {
			t.Errorf("an interceptor saw %q, %d and %q", got, s.Count.Get(), s.Word.Get())
		}
		s.Said.Append("by the interceptor")
		s.Count.Add(7)
		s.Word.Set("by the interceptor")
		return dispatcher.Keep()
	}
	o := hookAfter([]string{"choose"}, scribbles, scribbles)
	o.Hooks.Intercept = append(o.Hooks.Intercept, dispatcher.Interceptor{
		Nodes: []string{"choose"}, After: func(context.Context, dispatcher.Call, []string) dispatcher.Change {
			return dispatcher.Replace(saying("replaced", "right"))
		},
	})
	res, err := process(t, choosing(t, &w), &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "choose", "replaced", "east")
	if res.State.Count.Get() != 0 || res.State.Word.Get() != "" {
		t.Errorf("the state has %d and %q of who only looked", res.State.Count.Get(), res.State.Word.Get())
	}
}

// Of a Choose interceptors see and choose any number of outcomes.
func TestChoiceReplaced(t *testing.T) {
	for _, c := range []struct {
		outcomes []string
		want     []string
	}{
		{nil, nil},
		{[]string{"right"}, []string{"east"}},
		{[]string{"right", "left", "right"}, []string{"west", "east"}},
	} {
		quiet(t)
		var w witness
		var store memory.Store
		b := dag.New[Tale]("choosing")
		choose := dag.Choose(b, "choose", func(context.Context, *Tale) ([]way, error) { return []way{left}, nil }, []way{left, right})
		dag.Step(b, "west", w.sees(nil), choose.On(left))
		dag.Step(b, "east", w.sees(nil), choose.On(right))
		o := hookAfter([]string{"choose"}, func(_ dispatcher.Call, outcomes []string) dispatcher.Change {
			if !slices.Equal(outcomes, []string{"left"}) {
				t.Errorf("the interceptor sees the outcomes %q", outcomes)
			}
			return dispatcher.Replace(saying("turned", c.outcomes...))
		})
		res, err := process(t, frozen(t, b), &store, o).Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, c.want...)
	}
}

// What a substitute, or After, may not do fails the visit as the node's own function would,
// and what it wrote is dropped.
func TestSubstitutesThatFail(t *testing.T) {
	fails := func(context.Context, any) ([]string, error) { return nil, errWeather }
	bang := func(context.Context, any) ([]string, error) { panic(errWeather) }
	for _, c := range []struct {
		name     string
		body     dispatcher.Substitute
		kind     dag.FailureKind
		attempts int
	}{
		{"undeclared outcome", saying("up", "up"), dag.FailedOutcome, 2},
		{"no outcome", saying("nowhere"), dag.FailedOutcome, 2},
		{"two outcomes", saying("both", "left", "right"), dag.FailedOutcome, 2},
		{"error", fails, dag.FailedError, 2},
		{"panic", bang, dag.FailedPanic, 2},
		{"goexit", func(context.Context, any) ([]string, error) { runtime.Goexit(); return nil, nil }, dag.FailedGoexit, 2},
		{"nil", nil, dag.FailedDenied, 1},
	} {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/before=%t", c.name, before), func(t *testing.T) {
				quiet(t)
				var store memory.Store
				o := hookAfter(nil, func(dispatcher.Call, []string) dispatcher.Change { return dispatcher.Replace(c.body) })
				attempts := c.attempts
				if before {
					o = hookBefore(nil, always(dispatcher.Instead(c.body)))
					attempts *= map[bool]int{true: 0, false: 1}[c.body == nil]
				}
				b := dag.New[Tale]("failing")
				dag.End(b, dag.Route(b, "choose", func(_ context.Context, s *Tale) (way, error) {
					s.Said.Append("choose")
					return left, nil
				}, []way{left, right}).With(dag.Policy{Attempts: 2}))
				d := process(t, frozen(t, b), &store, o)
				res, err := d.Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusFailed, "choose")
				var n *dispatcher.NodeError
				if !errors.As(err, &n) || n.Kind != c.kind || n.Attempt != attempts {
					t.Errorf("the error is %v (%+v), want kind %s after %d attempts", err, n, c.kind, attempts)
				}
				blast := c.kind == dag.FailedPanic || c.kind == dag.FailedGoexit // its stack tells
				if !blast && !strings.Contains(fmt.Sprint(err), `interceptor "first"`) {
					t.Errorf("the error does not say whose the failure is: %v", err)
				}
				says(t, res.State)
			})
		}
	}
	quiet(t)
	var w witness
	b := dag.New[Tale]("undeclared")
	dag.End(b, dag.Route(b, "choose", w.routes(func(*Tale) way { return "up" }), []way{left, right}))
	rescues := hookAfter(nil, func(dispatcher.Call, []string) dispatcher.Change {
		t.Error("asked about an outcome that is not declared")
		return dispatcher.Replace(saying("left", "left"))
	})
	res, err := process(t, frozen(t, b), new(memory.Store), rescues).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "choose")
	w.took()
	b = dag.New[Tale]("replaced")
	dag.End(b, dag.Route(b, "choose", w.routes(func(*Tale) way { return left }), []way{left, right}))
	second := hookAfter(nil,
		func(dispatcher.Call, []string) dispatcher.Change { return dispatcher.Replace(saying("up", "up")) },
		func(dispatcher.Call, []string) dispatcher.Change {
			t.Error("the second is asked about an outcome that is not declared")
			return dispatcher.Keep()
		})
	res, err = process(t, frozen(t, b), new(memory.Store), second).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "choose")
	w.took()
	o := hookBefore([]string{"b"}, always(dispatcher.Instead(saying("left", "left"))))
	res, err = process(t, line(t, &w, nil), new(memory.Store), o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "b") // a step has no outcomes
	zero := hookAfter([]string{"b"}, func(dispatcher.Call, []string) dispatcher.Change { return dispatcher.Change{} })
	res, err = process(t, line(t, &w, nil), new(memory.Store), zero).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "b")
	denied(t, err, "b", "first")
}

// Before is asked once about a visit, not about each attempt, and a substitute takes the
// place of the node's function in all of them, over a restart as well.
func TestSubstituteOfAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		asked, tried := 0, 0
		b := dag.New[Tale]("again")
		dag.Step(b, "call", w.sees(nil)).With(dag.Policy{Attempts: 4, Backoff: dag.Constant(time.Second)})
		g := frozen(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := hookBefore(nil, func(c dispatcher.Call) dispatcher.Ruling {
			if asked++; c.Attempt != tried+1 {
				t.Errorf("asked before attempt %d, want %d", c.Attempt, tried+1)
			}
			return dispatcher.Instead(func(ctx context.Context, s any) ([]string, error) {
				if tried++; dag.Attempt(ctx) != tried {
					t.Errorf("attempt %d, want %d", dag.Attempt(ctx), tried)
				}
				if tried == 2 {
					time.AfterFunc(time.Millisecond, cancel)
				}
				if tried < 4 {
					return nil, errWeather
				}
				return saying("substitute")(ctx, s)
			})
		})
		res, err := process(t, g, &store, o).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusCancelled, "call")
		if asked != 1 || tried != 2 {
			t.Errorf("asked %d times, tried %d times", asked, tried)
		}
		res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
		completes(t, res, err)
		says(t, res.State, "substitute")
		if asked != 2 || tried != 4 {
			t.Errorf("asked %d times, tried %d times", asked, tried)
		}
		w.expect(t)
	})
}

// Who waits for an answer has no result, and After is not asked about it.
func TestAfterAnAsk(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	var after []string
	o := hookAfter(nil, func(c dispatcher.Call, _ []string) dispatcher.Change {
		after = append(after, c.Path)
		return dispatcher.Keep()
	})
	g := line(t, &w, func(ctx context.Context, _ *Tale) error {
		_, _ = dag.Ask[bool](ctx, "sure", "sure?")
		return nil // whatever it returns, it is asked
	})
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	if err := process(t, g, &store, o).Answer(t.Context(), run, res.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
	if !slices.Equal(after, []string{"a", "b", "c"}) {
		t.Errorf("asked after %q", after)
	}
}

// Scenario 44, part 2: interceptors stand round visits of every kind, wherever these are
// nested, and know where: in loops, in embedded graphs, at items. What they write to the
// state before a visit is dropped.
func TestScenario44InterceptorsEverywhere(t *testing.T) {
	quiet(t)
	var w witness
	var l hookLog
	seen := func(word string, c dispatcher.Call) {
		l.add("%s %s %s %s", word, c.Path, c.Node, c.Kind)
	}
	g := everywhere(t, &w)
	o := dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{
		Before: func(_ context.Context, c dispatcher.Call) dispatcher.Ruling {
			seen("before", c)
			c.State.(*Tale).Said.Append("dropped")
			return dispatcher.Continue()
		},
		After: func(_ context.Context, c dispatcher.Call, _ []string) dispatcher.Change {
			seen("after", c)
			return dispatcher.Keep()
		},
	}}}}
	res, err := process(t, g, new(memory.Store), o).Run(t.Context(), run, nil)
	completes(t, res, err)
	l.expect(t,
		"before house house embed",
		"before house/rounds house/rounds loop",
		"before house/rounds/1/mop house/rounds/mop step", "after house/rounds/1/mop house/rounds/mop step",
		"before house/rounds/2/mop house/rounds/mop step", "after house/rounds/2/mop house/rounds/mop step",
		"before rooms rooms each",
		"before rooms/1 rooms step", "after rooms/1 rooms step",
		"before rooms/2 rooms step", "after rooms/2 rooms step",
		"before flats flats each",
		"before flats/1 flats embed", "before flats/1/tidy flats/tidy step", "after flats/1/tidy flats/tidy step",
		"before choose choose route", "after choose choose route",
	)
	says(t, res.State, "rooms/1", "rooms/2", "choose")
}

// everywhere returns house { rounds { mop } } → rooms → flats { tidy } → choose.
func everywhere(t testing.TB, w *witness) *dag.Graph[Tale] {
	mop, inner, tidy := dag.New[Tale]("mop"), dag.New[Tale]("house"), dag.New[Tale]("tidy")
	dag.Step(mop, "mop", w.sees(nil))
	dag.Loop(inner, "rounds", frozen(t, mop), func(*Tale) bool { return false }, 2)
	dag.Step(tidy, "tidy", w.sees(nil))
	b := dag.New[Tale]("everywhere")
	house := dag.Embed(b, "house", frozen(t, inner), func(_, _ *Tale) {}, func(_, _ *Tale) {})
	rooms := dag.Each(b, "rooms", func(*Tale) []int { return []int{1, 2} }, func(ctx context.Context, s *Tale, _ int) error {
		return w.sees(nil)(ctx, s)
	}, house).With(dag.Policy{Parallel: 1})
	flats := dag.EachGraph(b, "flats", func(*Tale) []int { return []int{1} }, frozen(t, tidy),
		func(*Tale, int, *Tale) {}, func(*Tale, int, *Tale) {}, rooms)
	choose := dag.Route(b, "choose", w.routes(func(*Tale) way { return left }), []way{left}, flats)
	dag.End(b, choose)
	return frozen(t, b)
}

// A visit of any kind can be denied, or needs an approval, before anything in it begins; one
// that runs no function has no substitute.
func TestRulingsOnEveryKind(t *testing.T) {
	for _, path := range []string{
		"house", "house/rounds", "house/rounds/mop", "house/rounds/2/mop", "rooms", "rooms/2", "flats", "flats/1", "flats/tidy", "choose",
	} {
		t.Run(path, func(t *testing.T) {
			quiet(t)
			var w, plain witness
			var store memory.Store
			g := everywhere(t, &w)
			_, err := process(t, everywhere(t, &plain), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
			if err != nil {
				t.Fatal(err)
			}
			holds := false
			deny := process(t, g, &store, hookBefore([]string{path}, func(c dispatcher.Call) dispatcher.Ruling {
				holds = c.Kind != dag.KindStep && c.Kind != dag.KindRoute
				return dispatcher.Deny("no")
			}))
			res, err := deny.Run(t.Context(), run, nil)
			if res.Status != checkpoint.StatusFailed {
				t.Fatalf("the run is %s, %v", res.Status, err)
			}
			denied(t, err, strings.Join(res.Cursor.Visits, ","), "first")

			if holds {
				res, err = process(t, g, &store, hookBefore([]string{path}, always(dispatcher.Instead(saying("x"))))).Resume(t.Context(), run)
				denied(t, err, strings.Join(res.Cursor.Visits, ","), "first")
			}
			ask := process(t, g, &store, hookBefore([]string{path}, always(dispatcher.Ask("may it?"))))
			res, err = ask.Resume(t.Context(), run)
			for err != nil {
				if res.Status != checkpoint.StatusInterrupted || len(res.Interrupts) == 0 {
					t.Fatalf("the run is %s, %v", res.Status, err)
				}
				for _, i := range res.Interrupts {
					if err := ask.Answer(t.Context(), run, i.ID, dispatcher.Approve); err != nil {
						t.Fatal(err)
					}
				}
				res, err = ask.Run(t.Context(), run, nil)
			}
			completes(t, res, err)
			w.expect(t, plain.took()...)
		})
	}
}
