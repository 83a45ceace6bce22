package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// changeLine is a chain of steps that say their paths.
func changeLine(t testing.TB, w *witness, names ...string) *dag.Graph[Tale] {
	b := dag.New[Tale]("line")
	var after []dag.Edge[Tale]
	for _, name := range names {
		after = []dag.Edge[Tale]{dag.Step(b, name, w.sees(counts), after...)}
	}
	return frozen(t, b)
}

// changeHeld starts a run and lets it rest before a visit.
func changeHeld[S any](t testing.TB, g *dag.Graph[S], store checkpoint.Store, before string) {
	t.Helper()
	res, err := process(t, g, store, dispatcher.Options{InterruptBefore: []string{before}}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, before)
}

// changeRefused checks that a call was refused for exactly these reasons, and that it
// changed nothing.
func changeRefused(t testing.TB, store checkpoint.Store, head checkpoint.Head, err error, reasons ...string) {
	t.Helper()
	var changed *dispatcher.GraphChangedError
	if !errors.As(err, &changed) {
		t.Errorf("the call returned %v, want a graph that has changed: %q", err, reasons)
		return
	}
	if !slices.Equal(changed.Changes, reasons) {
		t.Errorf("the call is refused because of %q, want %q", changed.Changes, reasons)
	}
	if info, _ := store.Stat(t.Context(), run); info.Head != head {
		t.Errorf("a call that was refused moved the head from %d to %d", head.Seq, info.Head.Seq)
	}
}

// A graph whose past is the same goes on: a new node takes its place behind what is done.
func TestChangedGraphGoesOn(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	old := changeLine(t, &w, "a", "b", "c")
	changeHeld(t, old, &store, "c")
	w.expect(t, "a", "b")
	next := changeLine(t, &w, "a", "b", "c", "d")
	d := process(t, next, &store, dispatcher.Options{})
	res, err := d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "c", "d")
	says(t, res.State, "a", "b", "c", "d")

	log := readLog(t, &store)
	at := slices.IndexFunc(log, func(e checkpoint.Entry) bool { return e.Kind == checkpoint.Migrated })
	if at < 0 || log[at+1].Kind != checkpoint.Resumed {
		t.Fatalf("the log is %v, want the change before the resume", kinds(log, checkpoint.Migrated, checkpoint.Resumed))
	}
	if info, _ := store.Stat(t.Context(), run); info.Digest != next.Digest() {
		t.Errorf("the run is of graph %s, want %s", info.Digest, next.Digest())
	}
	for _, g := range []*dag.Graph[Tale]{old, next} {
		res, err := process(t, g, &store, dispatcher.Options{}).State(t.Context(), run)
		if err != nil || res.Status != checkpoint.StatusCompleted {
			t.Fatalf("State is %s, %v", res.Status, err)
		}
		says(t, res.State, "a", "b", "c", "d")
		at, err := process(t, g, &store, dispatcher.Options{}).At(t.Context(), run, "2")
		if err != nil {
			t.Fatal(err)
		}
		says(t, at.State, "a", "b")
	}
}

// What has changed in the past is named, visit by visit and cell by cell, and nothing else
// is.
func TestChangedPastIsRefused(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	changeHeld(t, changeLine(t, &w, "a", "b", "c", "d"), &store, "c")
	before, _ := store.Stat(t.Context(), run)
	for _, c := range []struct {
		rule    string
		names   []string
		reasons []string
	}{
		{"a visit that is done is gone", []string{"a", "c", "d"}, []string{
			"visit b is done, and its node is gone", "visit c is open, and it followed b and follows a",
		}},
		{"a new node before one that is done", []string{"a", "x", "b", "c", "d"}, []string{
			"visit b is done, and it followed a and follows x",
		}},
		{"a new node before one that is open", []string{"a", "b", "x", "c", "d"}, []string{
			"visit c is open, and it followed b and follows x",
		}},
	} {
		_, err := process(t, changeLine(t, &w, c.names...), &store, dispatcher.Options{}).Resume(t.Context(), run)
		t.Log(c.rule, err)
		changeRefused(t, &store, before.Head, err, c.reasons...)
	}
	w.took()
}

// A run is brought from graph to graph as often as it has to be, and every position of it
// can be read by each of them.
func TestChangedAgainAndAgain(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	names := strings.Split("abcdefgh", "")
	var graphs []*dag.Graph[Tale]
	for i := 1; i < len(names); i++ {
		g := changeLine(t, &w, names[:i+1]...)
		graphs = append(graphs, g)
		res, err := process(t, g, &store, dispatcher.Options{InterruptBefore: []string{names[i]}}).Run(t.Context(), run, nil)
		if i > 1 { // it waits before the visit of the graph before
			res, err = process(t, g, &store, dispatcher.Options{InterruptBefore: []string{names[i]}}).Resume(t.Context(), run)
		}
		rests(t, res, err, checkpoint.StatusInterrupted, names[i])
	}
	w.expect(t, names[:len(names)-1]...)
	log := readLog(t, &store)
	if n := len(kinds(log, checkpoint.Migrated)); n != len(graphs)-1 {
		t.Errorf("the log has %d changes, want %d", n, len(graphs)-1)
	}
	for k, g := range graphs {
		d := process(t, g, &store, dispatcher.Options{})
		for i := 1; i < len(names); i++ {
			res, err := d.At(t.Context(), run, string(rune('0'+i)))
			if err != nil {
				t.Fatalf("graph %d can't read superstep %d: %v", k, i, err)
			}
			says(t, res.State, names[:i]...)
		}
		if k < len(graphs)-1 {
			before, _ := store.Stat(t.Context(), run)
			_, err := d.Resume(t.Context(), run)
			var reasons []string
			for _, name := range names[k+2:] {
				reasons = append(reasons, "visit "+name+" is done, and its node is gone")
			}
			reasons[len(reasons)-1] = "visit h is open, and its node is gone"
			changeRefused(t, &store, before.Head, err, reasons...)
		}
	}
	res, err := process(t, graphs[len(graphs)-1], &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	says(t, res.State, names...)
}

// A node that follows only what is done begins with the next superstep, or is skipped: while
// a superstep is open, when that has ended.
func TestChangedGraphWithANodeBeside(t *testing.T) {
	quiet(t)
	var w witness
	build := func(more bool) *dag.Graph[Tale] {
		b := dag.New[Tale]("beside")
		a := dag.Route(b, "a", w.routes(func(*Tale) way { return left }), []way{left, right})
		x := dag.Step(b, "x", w.sees(nil), a)
		y := dag.Step(b, "y", w.sees(nil), a)
		dag.End(b, a.On(right))
		if more {
			on := dag.Step(b, "on", w.sees(nil), a.On(left))
			dag.Step(b, "off", w.sees(nil), a.On(right))
			dag.Step(b, "root", w.sees(nil))
			dag.Step(b, "last", w.sees(nil), dag.All[Tale](on, x, y))
		}
		return frozen(t, b)
	}
	var store memory.Store
	changeHeld(t, build(false), &store, "y")
	w.expect(t, "a", "x")
	d := process(t, build(true), &store, dispatcher.Options{})
	res, err := d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "y", "on", "root", "last")
	says(t, res.State, "a", "x", "y", "on", "root", "last")
}

// Cancel and Answer say nothing about the graph: they work from a program of any.
func TestChangedGraphIsToldAndCancelled(t *testing.T) {
	quiet(t)
	var w witness
	build := func(names ...string) *dag.Graph[Tale] {
		b := dag.New[Tale]("asks")
		a := dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
			w.note(ctx)
			word, err := dag.Ask[string](ctx, "word", "which?")
			s.Word.Set(word)
			return err
		})
		var after dag.Edge[Tale] = a
		for _, name := range names {
			after = dag.Step(b, name, w.sees(nil), after)
		}
		return frozen(t, b)
	}
	var store memory.Store
	res, err := process(t, build(), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	d := process(t, build("b"), &store, dispatcher.Options{})
	if err := d.Cancel(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "yes"); err != nil {
		t.Fatal(err)
	}
	d = process(t, build("b", "c"), &store, dispatcher.Options{})
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if res.State.Word.Get() != "yes" {
		t.Errorf("the word is %q, want the answer", res.State.Word.Get())
	}
	w.expect(t, "asks", "asks", "b", "c")
}

// A reader of events reads a log of several graphs: each event is told once, and of each
// superstep the state.
func TestChangedGraphIsToldToReaders(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	changeHeld(t, changeLine(t, &w, "a", "b", "c"), &store, "b")
	next := changeLine(t, &w, "a", "b", "x", "c")
	var live []string
	o := dispatcher.Options{Observe: func(e dispatcher.Event) {
		if !e.Live {
			live = append(live, e.String())
		}
	}}
	res, err := process(t, next, &store, o).Resume(t.Context(), run)
	completes(t, res, err)
	var read []string
	said := 0
	for e, err := range process(t, next, &store, dispatcher.Options{}).Events(t.Context(), run, dispatcher.Listen{States: true}) {
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, e.String())
		if e.Kind == dispatcher.SuperstepEnded {
			said++
			var s Tale
			if err := json.Unmarshal(e.State, &s); err != nil {
				t.Fatal(err)
			}
			says(t, &s, []string{"a", "b", "x", "c"}[:said]...)
		}
	}
	if said != 4 || !slices.Equal(read[len(read)-len(live):], live) {
		t.Errorf("a reader was told\n%s\nthe observer\n%s", strings.Join(read, "\n"), strings.Join(live, "\n"))
	}
	if !slices.ContainsFunc(live, func(e string) bool { return strings.Contains(e, "graph migrated") }) {
		t.Errorf("nobody was told of the change: %q", live)
	}
}

// A visit failed in a frame, and so did the visit that holds it, and a changed graph follows both
// failures, or forgets the first and follows the second: the frame goes on, with what was done in
// it.
func TestChangedGraphFollowsBothFailures(t *testing.T) {
	quiet(t)
	type failable interface {
		dag.Edge[Tale]
		Failed() dag.Edge[Tale]
	}
	once := func(*Tale) bool { return true }
	gives := func(from, to *Tale) { to.Count.Add(from.Count.Get()) }
	for _, kind := range []string{"loop", "embed", "each", "loop in a loop"} {
		for _, way := range []string{"both", "only inside", "forgotten", "all forgotten"} {
			var w witness
			build := func(more bool) *dag.Graph[Tale] {
				body, b := dag.New[Tale]("body"), dag.New[Tale]("top")
				if !more || !strings.HasSuffix(way, "forgotten") {
					c := dag.Step(body, "c", w.sees(func(context.Context, *Tale) error { return errWeather }))
					if more {
						dag.Step(body, "mend", w.sees(nil), c.Failed())
						dag.End(body, dag.Edge[Tale](c))
					}
				}
				if way != "all forgotten" {
					dag.Step(body, "d", w.sees(counts))
				} else if more {
					dag.Step(body, "e", w.sees(counts))
				}
				var hold failable
				switch kind {
				case "loop":
					hold = dag.Loop(b, "hold", frozen(t, body), once, 1)
				case "embed":
					hold = dag.Embed(b, "hold", frozen(t, body), func(_, _ *Tale) {}, gives)
				case "each":
					hold = dag.EachGraph(b, "hold", eachOf(1), frozen(t, body), func(*Tale, string, *Tale) {},
						func(from *Tale, _ string, to *Tale) { gives(from, to) })
				default:
					mid := dag.New[Tale]("mid")
					dag.Loop(mid, "in", frozen(t, body), once, 1)
					hold = dag.Loop(b, "hold", frozen(t, mid), once, 1)
				}
				if more && way != "only inside" {
					dag.Step(b, "rescue", w.sees(nil), hold.Failed())
					dag.End(b, dag.Edge[Tale](hold))
				}
				return frozen(t, b)
			}
			var store memory.Store
			res, err := process(t, build(false), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			if res.Status != checkpoint.StatusFailed {
				t.Fatalf("%s, %s: the run is %s: %v", kind, way, res.Status, err)
			}
			w.took()
			node, at := "hold/c", "hold/1/"
			switch kind {
			case "embed":
				at = "hold/"
			case "loop in a loop":
				node, at = "hold/in/c", "hold/1/in/1/"
			}
			var o dispatcher.Options
			ran := []string{at + "mend"}
			switch way {
			case "forgotten":
				o, ran = migrating(dispatcher.Migration{Name: "m", Nodes: map[string]string{node: ""}}), nil
			case "all forgotten":
				o, ran = migrating(dispatcher.Migration{Name: "m", Nodes: map[string]string{node: ""}}), []string{at + "e"}
			}
			res, err = process(t, build(true), &store, o).Resume(t.Context(), run)
			completes(t, res, err)
			w.expect(t, ran...)
			if got := res.State.Count.Get(); got != 1 {
				t.Errorf("%s, %s: the count is %d, want 1", kind, way, got)
			}
		}
	}
}

// New nodes that are not taken where the run stands are skipped, also if they follow only each
// other, and what follows one of them and something else does not wait for it.
func TestChangedGraphSkipsNewNodes(t *testing.T) {
	var w witness
	var store memory.Store
	goes := func(b *dag.Builder[Tale]) (r dag.RouteNode[Tale, string], a dag.Node[Tale]) {
		r = dag.Route(b, "r", func(context.Context, *Tale) (string, error) { return "x", nil }, []string{"x", "y"})
		return r, dag.Step(b, "a", w.sees(nil), r.On("x"))
	}
	old, b := dag.New[Tale]("skips"), dag.New[Tale]("skips")
	r, _ := goes(old)
	dag.End(old, r.On("y"))
	changeHeld(t, frozen(t, old), &store, "a")
	r, a := goes(b)
	other := dag.Step(b, "other", w.sees(nil), r.On("y"))
	dag.Step(b, "joins", w.sees(nil), dag.Step(b, "behind", w.sees(nil), other), a)
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	res, err := d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "a", "joins")
	sameMachine(t, d, run)
}
