package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// eachNest is a graph with an Each, an Each of graphs, and a Loop with an Each in it.
func eachNest(t testing.TB, w *witness) *dag.Graph[Tale] {
	t.Helper()
	one := func(ctx context.Context, s *Tale, item string) error { return w.sees(nil)(ctx, s) }
	leaf := dag.New[Tale]("leaf")
	dag.Step(leaf, "read", w.sees(nil))
	turn := dag.New[Tale]("turn")
	dag.Each(turn, "item", eachOf(2), one)
	b := dag.New[Tale]("tale")
	review := dag.Each(b, "review", eachOf(2), one)
	fetch := dag.EachGraph(b, "fetch", eachOf(2), frozen(t, leaf), func(*Tale, string, *Tale) {},
		func(from *Tale, _ string, to *Tale) { to.Said.Append(from.Said.Slice()...) }, review)
	dag.Loop(b, "turn", frozen(t, turn), func(s *Tale) bool { return len(s.Said.Slice()) >= 8 }, 3, fetch)
	return frozen(t, b)
}

// eachNestVisits are the paths of its bodies.
var eachNestVisits = []string{
	"review/1", "review/2", "fetch/1/read", "fetch/2/read",
	"turn/1/item/1", "turn/1/item/2", "turn/2/item/1", "turn/2/item/2",
}

// A name at which a run pauses means a node, all items or iterations, or one visit. What it
// can't mean is refused.
func TestEachNamesOfInterrupts(t *testing.T) {
	t.Parallel()
	var w witness
	g := eachNest(t, &w)
	for _, c := range []struct {
		name    string
		paused  string   // the visits before which the run pauses
		pending []string // and those after which it does
	}{
		{"review", "review", []string{"review"}},
		{"review/2", "review/2", []string{"review/2"}},
		{"review/3", "", nil},
		{"fetch", "fetch", []string{"fetch"}},
		{"fetch/2", "fetch/2", []string{"fetch/2"}},
		{"fetch/read", "fetch/1/read fetch/2/read", []string{"fetch/1/read", "fetch/2/read"}},
		{"fetch/1/read", "fetch/1/read", []string{"fetch/1/read"}},
		{"turn/item", "turn/1/item turn/2/item", []string{"turn/1/item", "turn/2/item"}},
		{"turn/2/item/1", "turn/2/item/1", []string{"turn/2/item/1"}},
	} {
		for _, after := range []bool{false, true} {
			o := dispatcher.Options{InterruptBefore: []string{c.name}}
			if after {
				o = dispatcher.Options{InterruptAfter: []string{c.name}}
			}
			store, seen := new(memory.Store), map[string]bool{}
			res, err := process(t, g, store, o).Run(t.Context(), run, nil)
			var paused []string
			for res.Status == checkpoint.StatusInterrupted {
				for _, i := range res.Interrupts {
					if seen[i.ID] {
						t.Errorf("%s: %s pauses twice", c.name, i)
					}
					seen[i.ID] = true
					paused = append(paused, i.Path)
				}
				res, err = process(t, g, store, o).Resume(t.Context(), run)
			}
			completes(t, res, err)
			if got := strings.Join(paused, " "); got != c.paused {
				t.Errorf("%s, after=%t: the run paused at %q, want %q", c.name, after, got, c.paused)
			}
			says(t, res.State, eachNestVisits...)
			w.expect(t, slices.Clone(eachNestVisits)...)
		}
	}
	for name, want := range map[string]string{
		"review/0":        `each "review" has items from 1 on`,
		"review/01":       `each "review" has items from 1 on`,
		"review/1/read":   `node "review" holds no graph`,
		"review/read":     `node "review" holds no graph`,
		"fetch/1/2":       `graph leaf has no node "2"`,
		"fetch/1/write":   `graph leaf has no node "write"`,
		"turn/item/1":     `numbers are given for some loops and eaches only`,
		"turn/1/item/1/x": `node "item" holds no graph`,
		"turn/4/item/1":   `loop "turn" has iterations 1 to 3`,
	} {
		_, err := dispatcher.New(g, new(memory.Store), dispatcher.Options{InterruptBefore: []string{name}})
		var option *dispatcher.OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// Hooks and observers see items as visits of the Each's node.
func TestEachIsObserved(t *testing.T) {
	t.Parallel()
	var w witness
	var asked, seen []string
	o := dispatcher.Options{
		InterruptIf: func(b dispatcher.Boundary) bool {
			asked = append(asked, fmt.Sprintf("%s %s %t", b.Path, b.Node, b.After))
			return false
		},
		Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.FrameEntered || e.Kind == dispatcher.VisitDone {
				seen = append(seen, fmt.Sprintf("%s %s %s %d %s", e.Kind, e.Path, e.Node, e.Attempt, e.Outcome))
			}
		},
	}
	res, err := process(t, eachNest(t, &w), new(memory.Store), o).Run(t.Context(), run, nil)
	completes(t, res, err)
	for _, want := range []string{
		"review review false", "review/1 review false", "review/1 review true", "review review true",
		"fetch/2 fetch false", "fetch/2/read fetch/read false", "fetch/2/read fetch/read true", "fetch/2 fetch true",
		"turn/2/item/1 turn/item false", "turn/2/item turn/item true",
	} {
		if !slices.Contains(asked, want) {
			t.Errorf("nobody was asked about %s:\n%s", want, strings.Join(asked, "\n"))
		}
	}
	for _, want := range []string{
		"frame entered review review 0 ", "visit done review/2 review 1 ", "visit done review review 0 done",
		"frame entered fetch fetch 0 ", "frame entered fetch/2 fetch 0 ", "visit done fetch/2/read fetch/read 1 ",
		"visit done fetch/2 fetch 0 ", "visit done turn/2/item/2 turn/item 1 ", "visit done turn turn 0 done",
	} {
		if !slices.Contains(seen, want) {
			t.Errorf("nobody was told %q:\n%s", want, strings.Join(seen, "\n"))
		}
	}
}

// The frames of an Each and of its items have checkpoints, which can be read.
func TestEachHasCheckpoints(t *testing.T) {
	t.Parallel()
	var w witness
	d := process(t, eachNest(t, &w), new(memory.Store), dispatcher.Options{})
	if res, err := d.Run(t.Context(), run, nil); err != nil {
		completes(t, res, err)
	}
	var points []string
	for p, err := range d.History(t.Context(), run) {
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, p.String())
		if _, err := d.At(t.Context(), run, p.Address()); err != nil {
			t.Errorf("%s can't be read: %v", p, err)
		}
	}
	want := []string{
		"review@1", "@1", "fetch/1@1", "fetch/2@1", "fetch@1", "@2",
		"turn/1/item@1", "turn/1@1", "turn/2/item@1", "turn/2@1", "@3",
	}
	slices.Sort(points[2:4]) // side by side
	if !slices.Equal(points, want) {
		t.Errorf("the checkpoints are %q, want %q", points, want)
	}
}

// An item's key has its number, and it is told of the failures that its Each follows.
func TestEachKeysAndFailures(t *testing.T) {
	t.Parallel()
	b := dag.New[Tale]("tale")
	broken := dag.Step(b, "broken", func(context.Context, *Tale) error { return errors.New("torn page") })
	dag.Each(b, "review", eachOf(2), func(ctx context.Context, s *Tale, item string) error {
		s.Said.Append(fmt.Sprint(dag.Key(ctx), " ", item, " ", dag.Attempt(ctx), " ", dag.Failures(ctx)[0].Path))
		return nil
	}, broken.Failed())
	for _, store := range []checkpoint.Store{new(memory.Store), nil} {
		d, err := dispatcher.New(frozen(t, b), store, dispatcher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Start(t.Context(), run, nil)
		completes(t, res, err)
		says(t, res.State, "tale/review/1 item1 1 broken", "tale/review/2 item2 1 broken")
	}
}

// Eaches nest as deep as any graph, and no deeper.
func TestEachInEachInEach(t *testing.T) {
	t.Parallel()
	pass := func(*Tale, string, *Tale) {}
	count := func(from *Tale, _ string, to *Tale) { to.Count.Add(from.Count.Get()) }
	leaf := dag.New[Tale]("leaf")
	dag.Step(leaf, "one", func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil })
	g, leaves := frozen(t, leaf), 1
	for depth := 2; depth <= dag.MaxDepth; depth++ {
		n := 1 + depth%7/6 // two items on each seventh level
		b := dag.New[Tale]("tale")
		dag.EachGraph(b, "each", eachOf(n), g, pass, count)
		g, leaves = frozen(t, b), leaves*n
	}
	store := new(memory.Store)
	res, err := process(t, g, store, dispatcher.Options{InterruptBefore: []string{strings.Repeat("each/", 31) + "one"}}).Run(t.Context(), run, nil)
	if len(res.Interrupts) != leaves {
		t.Fatalf("%d leaves wait, want %d: %v", len(res.Interrupts), leaves, err)
	}
	res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	if res.State.Count.Get() != leaves {
		t.Errorf("%d leaves are counted, want %d", res.State.Count.Get(), leaves)
	}
	b := dag.New[Tale]("tale")
	dag.EachGraph(b, "each", eachOf(1), g, pass, count)
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "graphs are nested 33 deep, the limit is 32") {
		t.Errorf("33 deep: %v", err)
	}
}

// An item that has not begun takes little memory, however much it will.
func TestEachItemsAreSmall(t *testing.T) {
	t.Parallel()
	if dispatcher.ItemBytes > 150 {
		t.Errorf("an item that has not begun takes %d bytes, want at most 150", dispatcher.ItemBytes)
	}
}

// Ten thousand items of a run on a disk that is synced are done once each, over a cancel and
// a close of the store. In how many appends is the disk's affair: see
// TestEachQuickItemsShareAppends.
func TestEachTenThousandOnDisk(t *testing.T) {
	t.Parallel()
	const n = 10_000
	ctx, cancel := context.WithCancel(t.Context())
	ran, appends := 0, 0
	b := dag.New[Tale]("tale")
	dag.Each(b, "review", eachOf(n), func(ctx context.Context, s *Tale, item string) error {
		if ran++; item == "item5000" { // one after the other
			cancel()
		}
		s.Count.Add(1)
		return nil
	}).With(dag.Policy{Parallel: 1})
	g, dir := frozen(t, b), t.TempDir()
	for _, status := range []checkpoint.Status{checkpoint.StatusCancelled, checkpoint.StatusCompleted} {
		store, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := dispatcher.New(g, store, dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.Appended {
				appends++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Run(ctx, run, nil)
		if res.Status != status {
			t.Fatalf("the run is %s: %v", res.Status, err)
		}
		if status == checkpoint.StatusCancelled && (len(res.Cursor.Visits) != n/2 || len(res.Finished) != n/2) {
			t.Errorf("cancelled in item 5000, %d are done and %d to do", len(res.Finished), len(res.Cursor.Visits))
		}
		if status == checkpoint.StatusCompleted && res.State.Count.Get() != n {
			t.Errorf("%d items are counted", res.State.Count.Get())
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		ctx = t.Context()
	}
	if ran != n {
		t.Errorf("%d items ran, want %d", ran, n)
	}
	t.Logf("%d appends for %d items", appends, n)
}
