package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An eachWorld is what the bodies of one run see, in all processes: whether what they do is
// durable already, and which of them are asked for by name to fail.
type eachWorld struct {
	t             testing.TB
	store         *eachMortal
	g             *dag.Graph[Tale]
	d             *dispatcher.Dispatcher[Tale]
	gauge         eachGauge
	calls, deaths int
}

// An eachMortal is a mortal store that compares each snapshot, which is of a live machine,
// with a replay of the log.
type eachMortal struct {
	mortal
	world   *eachWorld
	snaps   int
	appends int // tried, by all processes
}

func (s *eachMortal) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	if !s.died() {
		s.appends++
	}
	return s.mortal.Append(ctx, l, after, entries)
}

func (s *eachMortal) PutSnapshot(ctx context.Context, l checkpoint.Lease, snap checkpoint.Snapshot) error {
	want, err := dispatcher.Replayed(context.Background(), s.world.d, run, snap.Head.Seq)
	if err != nil {
		s.world.t.Errorf("a replay of %d entries: %v", snap.Head.Seq, err)
	}
	if !bytes.Equal(snap.Data, want) {
		s.world.t.Errorf("behind entry %d the machine is\n%s\nand a replay gives\n%s", snap.Head.Seq, snap.Data, want)
	}
	s.snaps++
	return s.mortal.PutSnapshot(ctx, l, snap)
}

// does is a body that says its path and what it was given. It fails the test if its visit is
// durable already, and does what its path is listed for.
func (w *eachWorld) does(ctx context.Context, s *Tale, what string) error {
	path := visitPath(ctx)
	if strings.Contains(path, "/") { // of an item
		defer w.gauge.begin()()
	}
	if w.store.isDone(path) {
		w.t.Errorf("call %d: visit %s runs again, and its entry is durable", w.calls, path)
	}
	s.Said.Append(path + "=" + what)
	s.Count.Add(1)
	s.Notes.Put(path, what)
	s.Tags.Add(what)
	switch {
	case strings.HasPrefix(what, "bad"):
		return errors.New("always")
	case strings.HasPrefix(what, "slip") && dag.Attempt(ctx) == 1:
		return errors.New("once")
	case strings.HasPrefix(what, "ask"):
		answer, err := dag.Ask[string](ctx, "why", what)
		if err != nil {
			return err
		}
		s.Said.Append(path + ": " + answer)
	}
	return nil
}

// tells is a body that notes which failures it is told of.
func (w *eachWorld) tells(ctx context.Context, s *Tale) error {
	for _, f := range dag.Failures(ctx) {
		s.Said.Append(fmt.Sprintf("%s: %s %s after %d", visitPath(ctx), f.Path, f.Message, f.Attempts))
	}
	return w.does(ctx, s, "told")
}

// An eachStory is a graph with an Each somewhere, whose run has one outcome however it is
// cut off.
type eachStory struct {
	name    string
	width   int // of bodies in flight at once; 0: any number
	options dispatcher.Options
	build   func(t testing.TB, w *eachWorld, b *dag.Builder[Tale])
}

// eachList returns a function items that returns these.
func eachList(items ...string) func(*Tale) []string {
	return func(*Tale) []string { return items }
}

// leaf is a graph of a route and what follows it, of which the visits say what Word holds.
func (w *eachWorld) leaf(t testing.TB) *dag.Graph[Tale] {
	b := dag.New[Tale]("leaf")
	does := func(ctx context.Context, s *Tale) error { return w.does(ctx, s, s.Word.Get()) }
	fetch := dag.Step(b, "fetch", does)
	beside := dag.Step(b, "beside", func(ctx context.Context, s *Tale) error { return w.does(ctx, s, "well") })
	dag.Step(b, "read", func(ctx context.Context, s *Tale) error { return w.does(ctx, s, "read") }, fetch, beside)
	return frozen(t, b)
}

func eachIn(_ *Tale, item string, to *Tale) { to.Word.Set(item) }

func eachOut(from *Tale, item string, to *Tale) {
	for _, line := range from.Said.All() {
		to.Said.Append(line)
	}
	to.Notes.Put(item, from.Word.Get())
	to.Count.Add(from.Count.Get())
}

// after adds nodes behind an Each that tell what came of it.
func (w *eachWorld) after(b *dag.Builder[Tale], e dag.RouteNode[Tale, dag.EachOutcome], rescued bool) {
	dag.Step(b, "done", w.tells, e.On(dag.Done))
	dag.Step(b, "empty", w.tells, e.On(dag.Empty))
	dag.Step(b, "plain", w.tells, e)
	if rescued {
		dag.Step(b, "rescue", w.tells, e.Failed())
	}
}

var eachStories = []eachStory{
	{"one after the other", 1, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachOf(4), w.does).With(dag.Policy{Parallel: 1}), false)
	}},
	{"side by side", 0, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		dag.Step(b, "beside", w.tells)
		w.after(b, dag.Each(b, "review", eachOf(5), w.does), false)
	}},
	{"no items", 0, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachOf(0), w.does), true)
	}},
	{"attempts", 2, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachList("a", "slip", "b", "slip too"), w.does).With(dag.Policy{Parallel: 2, Attempts: 2}), false)
	}},
	{"failed, and resumed", 2, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachList("a", "slip", "b", "slip too", "c", "d"), w.does).With(dag.Policy{Parallel: 2}), false)
	}},
	{"failed, and rescued", 2, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachList("a", "b", "bad", "c", "d", "e"), w.does).With(dag.Policy{Parallel: 2}), true)
	}},
	{"failed at once, and rescued", 0, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachList("a", "bad", "b", "bad too", "c"), w.does), true)
	}},
	{"collected", 2, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachList("bad 1", "a", "slip", "bad 2", "b"), w.does).With(dag.Policy{Parallel: 2, Attempts: 2, Errors: dag.Collect}), false)
	}},
	{"asks", 1, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachList("ask 1", "a", "ask 2", "b", "ask 3"), w.does).With(dag.Policy{Parallel: 1}), false)
	}},
	{"asks, and fails", 2, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachList("ask 1", "a", "bad", "ask 2", "b"), w.does).With(dag.Policy{Parallel: 2}), true)
	}},
	{"interrupted", 2, dispatcher.Options{
		InterruptBefore: []string{"review", "review/2"}, InterruptAfter: []string{"review/3", "review"},
	}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.Each(b, "review", eachOf(4), w.does).With(dag.Policy{Parallel: 2}), false)
	}},
	{"a graph for each", 2, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.EachGraph(b, "review", eachList("a", "slip", "b"), w.leaf(t), eachIn, eachOut).With(dag.Policy{Parallel: 1}), false)
	}},
	{"graphs, side by side", 0, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.EachGraph(b, "review", eachOf(3), w.leaf(t), eachIn, eachOut), false)
	}},
	{"graphs that fail, and are rescued", 0, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.EachGraph(b, "review", eachList("a", "bad", "b"), w.leaf(t), eachIn, eachOut).With(dag.Policy{Parallel: 1}), true)
	}},
	{"graphs that fail, and are collected", 0, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		w.after(b, dag.EachGraph(b, "review", eachList("bad 1", "a", "bad 2"), w.leaf(t), eachIn, eachOut).With(dag.Policy{Errors: dag.Collect}), false)
	}},
	{"graphs that ask", 2, dispatcher.Options{InterruptBefore: []string{"review/2/read"}, InterruptAfter: []string{"review/3/fetch", "review/1"}},
		func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
			w.after(b, dag.EachGraph(b, "review", eachList("ask 1", "a", "ask 2", "b"), w.leaf(t), eachIn, eachOut).With(dag.Policy{Parallel: 1}), false)
		}},
	{"an each in a loop in an each", 0, dispatcher.Options{InterruptAfter: []string{"outer/2/turn/1/review/1"}}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		turn := dag.New[Tale]("turn")
		dag.Each(turn, "review", eachList("slip", "ask"), w.does).With(dag.Policy{Parallel: 1, Attempts: 2})
		item := dag.New[Tale]("item")
		dag.Loop(item, "turn", frozen(t, turn), func(s *Tale) bool { return s.Count.Get() >= 4 }, 3)
		w.after(b, dag.EachGraph(b, "outer", eachOf(2), frozen(t, item), eachIn, eachOut).With(dag.Policy{Parallel: 2}), false)
	}},
	{"a loop that fails in an each, and is kept", 0, dispatcher.Options{}, func(t testing.TB, w *eachWorld, b *dag.Builder[Tale]) {
		turn := dag.New[Tale]("turn")
		first := dag.Each(turn, "review", eachOf(2), w.does)
		dag.Each(turn, "again", func(s *Tale) []string {
			if s.Count.Get() > 8 {
				return []string{"a", "bad", "b"}
			}
			return []string{"a", "b"}
		}, w.does, first).With(dag.Policy{Parallel: 1})
		l := dag.Loop(b, "turn", frozen(t, turn), func(*Tale) bool { return false }, 5)
		dag.Step(b, "rescue", w.tells, l.Failed())
	}},
}

// begin makes the world of a run that has not begun.
func (c *eachStory) begin(t testing.TB, o dispatcher.Options) *eachWorld {
	w := &eachWorld{t: t, store: new(eachMortal)}
	w.store.world = w
	b := dag.New[Tale]("tale")
	c.build(t, w, b)
	w.g = frozen(t, b)
	o.InterruptBefore, o.InterruptAfter = c.options.InterruptBefore, c.options.InterruptAfter
	d, err := dispatcher.New(w.g, w.store, o)
	if err != nil {
		t.Fatal(err)
	}
	w.d = d
	return w
}

// end brings the run to its end, over as many calls as it takes: the process dies as next
// says, questions are answered, interrupts resumed, and failures resumed.
func (w *eachWorld) end(next func(call int) (life int, written bool)) *dispatcher.Result[Tale] {
	w.t.Helper()
	ctx := context.Background()
	status := checkpoint.Status("")
	for {
		if w.store.died() {
			w.deaths++
		}
		life, written := next(w.calls)
		if w.calls++; w.calls > 300 {
			w.t.Fatalf("the run does not come to its end, and is %s", status)
		}
		if err := w.store.revive(ctx, life, written); err != nil {
			w.t.Fatal(err)
		}
		var res *dispatcher.Result[Tale]
		var err error
		if status == checkpoint.StatusInterrupted {
			res, err = w.d.Resume(ctx, run)
		} else {
			res, err = w.d.Run(ctx, run, nil)
		}
		if w.store.died() {
			if status = ""; !errors.Is(err, errDead) {
				w.t.Fatalf("call %d: the store died, and the call returns %v", w.calls, err)
			}
			continue
		}
		switch status = res.Status; status {
		case checkpoint.StatusCompleted:
			return res
		case checkpoint.StatusFailed:
		case checkpoint.StatusInterrupted:
			w.answer(ctx, res)
		default:
			w.t.Fatalf("the run is %s: %v", status, err)
		}
	}
}

func (w *eachWorld) answer(ctx context.Context, res *dispatcher.Result[Tale]) {
	for _, i := range res.Interrupts {
		if i.Kind != dispatcher.KindAsked {
			continue
		}
		if err := w.d.Answer(ctx, run, i.ID, "because"); err != nil && !errors.Is(err, errDead) {
			w.t.Fatal(err)
		}
	}
}

// same fails the test unless a run ended as one that was not disturbed, within its width.
func (w *eachWorld) same(c *eachStory, what string, res *dispatcher.Result[Tale], want string) {
	w.t.Helper()
	if got := asJSON(w.t, res.State); got != want {
		w.t.Errorf("%s: the state is\n%s\nwant\n%s", what, got, want)
	}
	if c.width > 0 && w.gauge.most > c.width {
		w.t.Errorf("%s: %d bodies were in flight, want %d", what, w.gauge.most, c.width)
	}
	for _, wrong := range w.store.wrong {
		w.t.Errorf("%s: %s", what, wrong)
	}
}

// A run whose processes all die after a few appends gets on all the same.
func TestEachSurvivesManyCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range eachStories {
		want := asJSON(t, c.begin(t, dispatcher.Options{}).end(func(int) (int, bool) { return 0, false }).State)
		for _, written := range []bool{false, true} {
			w := c.begin(t, dispatcher.Eager(dispatcher.Options{}))
			res := w.end(func(call int) (int, bool) { return 2 + call/8, written })
			w.same(&c, c.name, res, want)
		}
	}
}

// Promises P2, P3, P4 and P8, of items: a run that is killed at any append ends as if it had not
// been, and does nothing again that was durable. Every snapshot is what a replay gives.
func TestEachSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range eachStories {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, o := range []dispatcher.Options{
				dispatcher.Eager(dispatcher.Options{}), dispatcher.Eager(dispatcher.Options{Paranoid: true}), {},
			} {
				want := asJSON(t, c.begin(t, o).end(func(int) (int, bool) { return 0, false }).State)
				for k := 1; ; k++ {
					w := c.begin(t, o)
					res := w.end(func(int) (int, bool) { return max(0, k-w.store.appends), o.Paranoid })
					w.same(&c, fmt.Sprintf("crash at append %d", k), res, want)
					if w.deaths == 0 || t.Failed() {
						diedOften(t, k-1, 2)
						break
					}
				}
			}
		})
	}
}
