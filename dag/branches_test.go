package dag_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
)

// An order is paid if it is small, or large and approved, and refused otherwise: of the two
// only one can be, although paying can be reached in two ways, over two routes.
func TestBranchesOverTwoRoutesExcludeEachOther(t *testing.T) {
	b := dag.New[Notes]("order")
	size := dag.Route(b, "size", choose, ways)
	approval := dag.Route(b, "approval", choose, ways, size.On(Right))
	pay := dag.Step(b, "pay", step, size.On(Left), approval.On(Left))
	refuse := dag.Step(b, "refuse", step, approval.On(Right))
	dag.Step(b, "report", step, pay, refuse)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Plan().Nodes {
		if n.Name == "report" && n.Follows.Op != dag.OpAny {
			t.Errorf("report follows with %v, want any", n.Follows.Op)
		}
	}
}

// What can be reached in more ways than Build keeps apart needs a word, and builds with it.
func TestBranchesInTooManyWaysNeedAWord(t *testing.T) {
	for ways, lists := range map[int]bool{8: true, 9: false} {
		for _, word := range []bool{false, true} {
			b := dag.New[Notes]("deep")
			var exits []dag.Edge[Notes]
			var at []dag.Edge[Notes]
			for i := range ways {
				r := dag.Route(b, fmt.Sprint("r", i), choose, []Way{Left, Right}, at...)
				side := dag.Route(b, fmt.Sprint("s", i), choose, []Way{Left, Right}, r.On(Left))
				exits = append(exits, side.On(Left))
				dag.End[Notes](b, side.On(Right))
				at = []dag.Edge[Notes]{r.On(Right)}
			}
			out := dag.Step(b, "out", step, exits...)
			rest := dag.Step(b, "rest", step, at...)
			if word {
				dag.Step(b, "both", step, dag.Any[Notes](out, rest))
			} else {
				dag.Step(b, "both", step, out, rest)
			}
			_, err := b.Build()
			if want := lists || word; (err == nil) != want {
				t.Errorf("%d ways, word %v: %v", ways, word, err)
			}
			if err != nil && !strings.Contains(err.Error(), "write dag.All or dag.Any") {
				t.Error(err)
			}
		}
	}
}

// What joins others in too many ways is not known well enough to be the same as anything, and
// neither is what is made from it, beside what is known or together with that: a node that follows
// both needs a word.
func TestWhatIsMadeFromTooManyWaysNeedsAWord(t *testing.T) {
	for name, add := range map[string]func(b *dag.Builder[Notes], out dag.Node[Notes], z dag.RouteNode[Notes, Way]) (x, y dag.Edge[Notes]){
		"all of it and more": func(b *dag.Builder[Notes], out dag.Node[Notes], z dag.RouteNode[Notes, Way]) (x, y dag.Edge[Notes]) {
			return dag.Step(b, "narrow", step, dag.All[Notes](z.On(Left), out)), dag.Step(b, "left", step, z.On(Left))
		},
		"all of more and it": func(b *dag.Builder[Notes], out dag.Node[Notes], z dag.RouteNode[Notes, Way]) (x, y dag.Edge[Notes]) {
			return dag.Step(b, "narrow", step, dag.All[Notes](out, z.On(Left))), dag.Step(b, "left", step, z.On(Left))
		},
		"any of it and others": func(b *dag.Builder[Notes], out dag.Node[Notes], z dag.RouteNode[Notes, Way]) (x, y dag.Edge[Notes]) {
			narrow := dag.Step(b, "narrow", step, dag.All[Notes](z.On(Right), out))
			return dag.Step(b, "wide", step, dag.Any[Notes](z.On(Left), narrow)), dag.Step(b, "always", step)
		},
	} {
		b := dag.New[Notes]("wide")
		var exits []dag.Edge[Notes]
		for i := range 9 {
			r := dag.Route(b, fmt.Sprint("r", i), choose, ways)
			exits = append(exits, r.On(Left))
			dag.End[Notes](b, r)
		}
		out := dag.Step(b, "out", step, dag.Any(exits...))
		z := dag.Route(b, "z", choose, ways)
		dag.End[Notes](b, z)
		x, y := add(b, out, z)
		dag.Step(b, "joins", step, x, y)
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), `"joins": joins edges of which some may be taken`) {
			t.Errorf("%s: Build returns %v", name, err)
		}
	}
}

// What can be reached in several ways may be one of all that a node follows. If none of the ways
// goes with the others, it is said by what they exclude each other.
func TestBranchesInSeveralWaysAreAllFollowed(t *testing.T) {
	for _, way := range ways {
		b := dag.New[Notes]("ways")
		r, s, z := dag.Route(b, "r", choose, ways), dag.Route(b, "s", choose, ways), dag.Route(b, "z", choose, ways)
		dag.End[Notes](b, r, s, z)
		either := dag.Any(dag.All(r.On(Left), z.On(Left)), dag.All(s.On(Left), z.On(Left)))
		dag.Step(b, "both", step, dag.All[Notes](dag.Step(b, "either", step, either), z.On(way)))
		_, err := b.Build()
		if never := way != Left; (err != nil) != never || never && !strings.Contains(err.Error(), `can never run`) {
			t.Errorf("on %s of z Build returns %v", way, err)
		}
		if err != nil && !strings.Contains(err.Error(), `they exclude each other, by what becomes of node "z"`) {
			t.Error(err)
		}
	}
}
