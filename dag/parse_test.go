package dag_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A Ledger has every kind of cell.
type Ledger struct {
	Word  state.Value[string]
	Lines state.List[struct{ Title string }]
	Index state.Map[string, int]
	Tags  state.Set[string]
	Cost  state.Sum[float64]
	Deep  struct{ Count state.Sum[int] }
}

// everything is a graph with all that a graph can have.
func everything(t testing.TB) *dag.Graph[Ledger] {
	t.Helper()
	inside := dag.New[Notes]("inside")
	dag.Step(inside, "only", step)
	body := dag.New[Ledger]("body")
	write := dag.Step(body, "write", func(context.Context, *Ledger) error { return nil })
	dag.Embed(body, "embed", mustBuild(t, inside), func(*Ledger, *Notes) {}, func(*Notes, *Ledger) {}, write)
	b := dag.New[Ledger]("everything")
	work := func(context.Context, *Ledger) error { return nil }
	first := dag.Step(b, "first", work).With(dag.Policy{Attempts: 3})
	way := dag.Route(b, "way", func(context.Context, *Ledger) (Way, error) { return Left, nil }, ways, first)
	loop := dag.Loop(b, "again", mustBuild(t, body), func(*Ledger) bool { return true }, 3, way.On(Left))
	each := dag.Each(b, "each", func(*Ledger) []int { return nil }, func(context.Context, *Ledger, int) error { return nil })
	dag.EachGraph(b, "graphs", func(*Ledger) []string { return nil }, mustBuild(t, inside),
		func(*Ledger, string, *Notes) {}, func(*Notes, string, *Ledger) {}, each.On(dag.Empty)).With(dag.Policy{Errors: dag.Collect})
	some := dag.Choose(b, "some", func(context.Context, *Ledger) ([]Way, error) { return nil, nil }, ways)
	retreat := dag.Step(b, "retreat", work, first.Failed())
	dag.Step(b, "join", work, dag.Any(dag.All[Ledger](first, loop.On(dag.Exhausted)), way.On(Right, Left), retreat))
	dag.Fail(b, "broken", loop.Failed())
	dag.End(b, loop.On(dag.Done), way.Failed(), each.On(dag.Done), some)
	return mustBuild(t, b)
}

// plain is a plan without what is no part of its JSON.
func plain(p *dag.Plan) *dag.Plan {
	q := *p
	q.Nodes = make([]dag.PlanNode, len(p.Nodes))
	for i, n := range p.Nodes {
		n = *plainNode(&n)
		q.Nodes[i] = n
	}
	return &q
}

func plainNode(n *dag.PlanNode) *dag.PlanNode {
	p := &dag.PlanNode{
		Name: n.Name, Kind: n.Kind, Follows: n.Follows, Waits: n.Waits, Outcomes: n.Outcomes,
		FailureFollowed: n.FailureFollowed,
	}
	if n.Body != nil {
		p.Body = plain(n.Body)
	}
	if n.Item != nil {
		p.Item = plainNode(n.Item)
		p.Item.FailureFollowed = false // by its policy
	}
	return p
}

func samePlan(t *testing.T, path string, got, want *dag.Plan) {
	t.Helper()
	if got.Name != want.Name || got.Digest != want.Digest || got.Depth != want.Depth {
		t.Errorf("%s is %q of depth %d, %s; want %q, %d, %s", path, got.Name, got.Depth, got.Digest, want.Name, want.Depth, want.Digest)
	}
	if !bytes.Equal(got.JSON, want.JSON) {
		t.Errorf("%s is\n%s\nwant\n%s", path, got.JSON, want.JSON)
	}
	if !reflect.DeepEqual(got.Followers, want.Followers) {
		t.Errorf("%s has followers %v, want %v", path, got.Followers, want.Followers)
	}
	if !reflect.DeepEqual(got.Schema.Cells(), want.Schema.Cells()) {
		t.Errorf("%s has cells %v, want %v", path, got.Schema.Cells(), want.Schema.Cells())
	}
	for i := range want.Nodes {
		g, w := got.Nodes[i], want.Nodes[i]
		if w.Body != nil {
			samePlan(t, path+"/"+w.Name, g.Body, w.Body)
		}
		if w.Item != nil {
			gi, wi := *g.Item, *w.Item
			if wi.Body != nil {
				samePlan(t, path+"/"+w.Name, gi.Body, wi.Body)
			}
			gi.Body, wi.Body = nil, nil
			if !reflect.DeepEqual(gi, wi) {
				t.Errorf("%s/%s has items %+v, want %+v", path, w.Name, gi, wi)
			}
			g.Item, w.Item = nil, nil
		}
		g.Body, w.Body = nil, nil
		if !reflect.DeepEqual(g, w) {
			t.Errorf("%s/%s is %+v, want %+v", path, w.Name, g, w)
		}
	}
}

// A plan that is parsed is the plan that was built, without what only the program has.
func TestParsePlan(t *testing.T) {
	g := everything(t)
	p, err := dag.ParsePlan(g.Plan().JSON)
	if err != nil {
		t.Fatal(err)
	}
	samePlan(t, "everything", p, plain(g.Plan()))
	again, err := dag.ParsePlan(p.JSON)
	if err != nil {
		t.Fatal(err)
	}
	samePlan(t, "everything", again, p)
}

// resealed is a graph whose digest fits what was done to it.
func resealed(t *testing.T, graph []byte, old, replacement string) []byte {
	t.Helper()
	changed := strings.Replace(string(graph), old, replacement, 1)
	if changed == string(graph) {
		t.Fatalf("%s is not in %s", old, graph)
	}
	var d struct {
		Digest string `json:"digest"`
	}
	if err := json.Unmarshal(graph, &d); err != nil {
		t.Fatal(err)
	}
	bare := strings.Replace(changed, `"digest":"`+d.Digest+`",`, "", 1)
	sum := sha256.Sum256([]byte(bare))
	return []byte(strings.Replace(changed, d.Digest, "sha256:"+hex.EncodeToString(sum[:]), 1))
}

// What no Build would return is no graph.
func TestParsePlanRefuses(t *testing.T) {
	graph := everything(t).Plan().JSON
	if _, err := dag.ParsePlan(resealed(t, graph, `"name":"first"`, `"name":"other"`)); err == nil {
		t.Error("a graph with an edge to a node that is gone was parsed")
	}
	for _, c := range []struct{ old, replacement, want string }{
		{`"name":"everything"`, `"name":"a b"`, "contains"},
		{`"name":"way"`, `"name":"first"`, "taken"},
		{`"kind":"route"`, `"kind":"dance"`, `"dance"`},
		{`"kind":"route"`, `"kind":"loop"`, "graph: false"},
		{`"kind":"route"`, `"kind":"end"`, `"end"`},
		{`"kind":"embed"`, `"kind":"step"`, "graph: true"},
		{`"name":"first","kind":"step"`, `"name":"first","kind":"step","follows":"way"`, `"way"`},
		{`"on":["right","left"]`, `"on":["up"]`, `"up"`},
		{`"kind":"sum"`, `"kind":"product"`, "product"},
		{`"ends":[{"node":"again"`, `"ends":[{"node":"anew"`, `"anew"`},
	} {
		old := c.old
		if !strings.Contains(string(graph), old) {
			old = strings.ReplaceAll(old, `"right","left"`, `"left","right"`)
		}
		_, err := dag.ParsePlan(resealed(t, graph, old, c.replacement))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %s a graph is parsed with %v, want an error with %s", c.replacement, err, c.want)
		}
	}
	for _, text := range []string{"", "null", "{}", "[]", string(graph[:len(graph)-1]), strings.Replace(string(graph), `"name":"join"`, `"name":"meet"`, 1)} {
		if _, err := dag.ParsePlan([]byte(text)); err == nil {
			t.Errorf("%.40q was parsed as a graph", text)
		}
	}
}

// Graphs that are nested deeper than Build allows are refused before anything is made of them.
func TestParsePlanOfBottomlessGraph(t *testing.T) {
	graph := `{"name":"g","state":[],"nodes":[{"name":"n","kind":"step"}]}`
	for range dag.MaxDepth {
		graph = fmt.Sprintf(`{"name":"g","state":[],"nodes":[{"name":"n","kind":"embed","graph":%s}]}`, graph)
	}
	if _, err := dag.ParsePlan([]byte(graph)); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("a bottomless graph is parsed with %v", err)
	}
}

// Whatever is parsed says of itself what it was parsed from.
func FuzzParsePlan(f *testing.F) {
	f.Add(everything(f).Plan().JSON)
	f.Add([]byte(`{"name":"g","state":[],"nodes":[{"name":"n","kind":"step"}]}`))
	f.Fuzz(func(t *testing.T, graph []byte) {
		p, err := dag.ParsePlan(graph)
		if err != nil {
			return
		}
		if again, err := dag.ParsePlan(p.JSON); err != nil || again.Digest != p.Digest {
			t.Errorf("%s was parsed, and then: %v", graph, err)
		}
	})
}
