package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A heap is a state that is as bad as the sum of what is piled on it.
type heap struct {
	Sum  state.Sum[int]
	Text state.List[string]
}

func (h *heap) Check() error {
	if n := h.Sum.Get(); n > 100 && n < math.MaxInt {
		return errors.New("it topples")
	}
	return nil
}

// heaps are ways in which two parallel visits, each of them well, make a superstep that can't be
// merged.
var heaps = map[string]struct {
	pile  func(h *heap)
	kind  string // of the fault, as it is told after a restart
	limit int
}{
	"a sum that overflows": {func(h *heap) { h.Sum.Add(math.MaxInt) }, "merge", 0},
	"a check that fails":   {func(h *heap) { h.Sum.Add(60) }, "check", 0},
	"a state too large":    {func(h *heap) { h.Text.Append(strings.Repeat("x", 600)) }, "limit", 1000},
}

// heapGraph has one and other pile something up in parallel, in a Loop or an Each each of which
// then fails, for as long as mended says no. Their failure is followed; or that of the Loop in
// which they stand, if they are wrecked with it.
func heapGraph(t testing.TB, pile func(h *heap), items, wrecked bool, mended *bool, began func(ctx context.Context)) *dag.Graph[heap] {
	add := func(ctx context.Context, h *heap) error {
		began(ctx)
		if h.Text.Append("add"); !*mended {
			pile(h)
		}
		return nil
	}
	bad := func(ctx context.Context, _ *heap) error {
		began(ctx)
		return errWeather
	}
	note := func(ctx context.Context, _ *heap) error { began(ctx); return nil }
	part := func(b *dag.Builder[heap], name string) interface {
		dag.Edge[heap]
		Failed() dag.Edge[heap]
	} {
		if items {
			return dag.Each(b, name, func(*heap) []int { return []int{0, 1} }, func(ctx context.Context, h *heap, i int) error {
				return []func(context.Context, *heap) error{add, bad}[i](ctx, h)
			}).With(dag.Policy{Parallel: 1})
		}
		body := dag.New[heap]("body")
		dag.Step(body, "bad", bad, dag.Step(body, "add", add))
		return dag.Loop(b, name, frozen(t, body), func(*heap) bool { return true }, 2)
	}
	b := dag.New[heap]("heap")
	if !wrecked {
		one, other := part(b, "one"), part(b, "other")
		dag.Step(b, "rescue", note, dag.All[heap](one.Failed(), other.Failed()))
		dag.End(b, dag.All[heap](one, other))
		return frozen(t, b)
	}
	around := dag.New[heap]("around")
	part(around, "one")
	part(around, "other")
	loop := dag.Loop(b, "around", frozen(t, around), func(*heap) bool { return true }, 2)
	dag.Step(b, "rescue", note, loop.Failed())
	dag.End(b, dag.Edge[heap](loop))
	return frozen(t, b)
}

// Of a superstep that can't be merged all that counts runs again, also what a Loop or an Each has
// finished that failed and keeps it: else it could never be merged, whatever is mended.
func TestNothingOfAMergeThatFailsCounts(t *testing.T) {
	t.Parallel()
	for name, c := range heaps {
		for _, items := range []bool{false, true} {
			for _, wrecked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, items=%t, wrecked=%t", name, items, wrecked), func(t *testing.T) {
					t.Parallel()
					var w witness
					mended, store := false, new(memory.Store)
					g := heapGraph(t, c.pile, items, wrecked, &mended, w.note)
					o := dispatcher.Eager(dispatcher.Options{Limits: dispatcher.Limits{StateBytes: c.limit}})
					add, bad := "%s/1/add", "%s/1/bad"
					if items {
						add, bad = "%s/1", "%s/2"
					}
					var again []string
					for _, path := range []string{"one", "other"} {
						if wrecked {
							path = "around/1/" + path
						}
						again = append(again, fmt.Sprintf(add, path), fmt.Sprintf(bad, path))
					}
					fails := func(res *dispatcher.Result[heap], err error) {
						t.Helper()
						var fault *dispatcher.FaultError
						var limit *dispatcher.LimitError
						if res.Status != checkpoint.StatusFailed || !(errors.As(err, &fault) && fault.Kind == c.kind || c.kind == "limit" && errors.As(err, &limit)) {
							t.Fatalf("the run is %s, %v, want a fault of kind %s", res.Status, err, c.kind)
						}
						w.expect(t, slices.Clone(again)...)
						timeReplayed(t, process(t, g, store, o), store)
					}
					d := process(t, g, store, o)
					fails(d.Run(t.Context(), run, nil))
					fails(d.Resume(t.Context(), run))                       // nobody has mended it
					fails(process(t, g, store, o).Resume(t.Context(), run)) // nor has another process
					mended = true
					res, err := process(t, g, store, o).Resume(t.Context(), run)
					completes(t, res, err)
					w.expect(t, append(again, "rescue")...)
					if got := res.State.Text.Slice(); !slices.Equal(got, []string{"add", "add"}) || res.State.Sum.Get() != 0 {
						t.Errorf("the state is %s, want what both did once they were mended", asJSON(t, res.State))
					}
					timeReplayed(t, d, store)
				})
			}
		}
	}
}
