package dispatcher_test

import (
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// The three graphs whose runs are edited.
var changeGraphs = []struct {
	name string
	make func() *changeGraph
}{
	{"chain", changeChain}, {"nest", changeNest}, {"fan", changeFan},
}

// changeChain is a chain with a route, a join, and a failure that is followed.
func changeChain() *changeGraph {
	return &changeGraph{Name: "chain", Nodes: []*changeNode{
		{Name: "start", Kind: "step", Word: true},
		{Name: "way", Kind: "route", After: []string{"start"}, Outcomes: []string{"left", "right", "off"}, Takes: "left"},
		{Name: "left1", Kind: "step", After: []string{"way:left"}},
		{Name: "left2", Kind: "step", After: []string{"left1"}},
		{Name: "right1", Kind: "step", After: []string{"way:right"}},
		{Name: "join", Kind: "step", After: []string{"left2", "right1"}},
		{Name: "risky", Kind: "step", After: []string{"join"}, Broken: true},
		{Name: "rescue", Kind: "step", After: []string{"risky!"}},
		{Name: "last", Kind: "step", After: []string{"risky", "rescue"}},
		{Name: "wreck", Kind: "fail", After: []string{"way:off"}},
	}}
}

// changeNest is a loop in an embedded graph, beside a chain.
func changeNest() *changeGraph {
	body := &changeGraph{Name: "body", Nodes: []*changeNode{
		{Name: "draft", Kind: "step"},
		{Name: "check", Kind: "route", After: []string{"draft"}, Outcomes: []string{"good", "bad"}, Takes: "bad"},
		{Name: "mend", Kind: "step", After: []string{"check:bad"}},
		{Name: "praise", Kind: "step", After: []string{"check:good"}},
	}}
	box := &changeGraph{Name: "box", Nodes: []*changeNode{
		{Name: "lid", Kind: "step"},
		{Name: "spin", Kind: "loop", After: []string{"lid"}, Body: body, Most: 3, Until: 2},
		{Name: "shut", Kind: "step", After: []string{"spin"}},
	}}
	return &changeGraph{Name: "nest", Nodes: []*changeNode{
		{Name: "begin", Kind: "step", Word: true},
		{Name: "hold", Kind: "embed", After: []string{"begin"}, Body: box},
		{Name: "aside", Kind: "step", After: []string{"begin"}},
		{Name: "ask", Kind: "step", After: []string{"aside"}, Asks: true},
		{Name: "end", Kind: "step", After: []string{"hold", "ask"}, Join: "all"},
	}}
}

// changeFan is a fan-out of steps and of items, with a graph for each of some.
func changeFan() *changeGraph {
	shelf := &changeGraph{Name: "shelf", Nodes: []*changeNode{
		{Name: "fetch", Kind: "step"},
		{Name: "read", Kind: "step", After: []string{"fetch"}},
	}}
	return &changeGraph{Name: "fan", Nodes: []*changeNode{
		{Name: "plan", Kind: "step", Word: true},
		{Name: "scout1", Kind: "step", After: []string{"plan"}},
		{Name: "scout2", Kind: "step", After: []string{"plan"}},
		{Name: "pick", Kind: "route", After: []string{"plan"}, Outcomes: []string{"few", "many"}, Takes: "few"},
		{Name: "items", Kind: "each", After: []string{"scout1", "scout2"}, Join: "all", Items: 2},
		{Name: "shelves", Kind: "eachgraph", After: []string{"pick:few"}, Body: shelf, Items: 2},
		{Name: "rank", Kind: "step", After: []string{"items", "shelves"}, Join: "all"},
		{Name: "kinds", Kind: "choose", After: []string{"plan"}, Outcomes: []string{"new", "old", "lent"}, Takes: "old|lent"},
		{Name: "new", Kind: "step", After: []string{"kinds:new"}},
		{Name: "old", Kind: "step", After: []string{"kinds:old"}},
		{Name: "lent", Kind: "step", After: []string{"kinds:lent", "old"}, Join: "all"},
		{Name: "tell", Kind: "step", After: []string{"rank", "pick:many"}},
	}}
}

// A changeEdit is what a person does to a graph. What it does to each of the graphs depends
// on the node that it is done to, "" if it can't be done there.
type changeEdit struct {
	name             string
	chain, nest, fan string
	do               func(g *changeGraph, path string)
	states           string // the state type afterwards
}

func (e *changeEdit) target(graph string) string {
	return map[string]string{"chain": e.chain, "nest": e.nest, "fan": e.fan}[graph]
}

// changeSwap lets those that follow one edge follow another.
func changeSwap(g *changeGraph, was, is string) {
	for _, n := range g.Nodes {
		for i := range n.After {
			if name, rest, ok := strings.Cut(n.After[i], ":"); n.After[i] == was {
				n.After[i] = is
			} else if ok && name == was {
				n.After[i] = is + ":" + rest
			} else if n.After[i] == was+"!" {
				n.After[i] = is + "!"
			}
		}
	}
	for i := range g.Ends {
		if name, rest, ok := strings.Cut(g.Ends[i], ":"); ok && name == was {
			g.Ends[i] = is + ":" + rest
		}
	}
}

// changeInsert puts a node in the place before another one.
func changeInsert(g *changeGraph, path string, n *changeNode) *changeNode {
	in, i := g.find(path)
	in.Nodes = slices.Insert(in.Nodes, i, n)
	return in.Nodes[i+1]
}

func changeAppend(g *changeGraph, path string, n *changeNode) {
	in, _ := g.find(path)
	in.Nodes = append(in.Nodes, n)
}

func changeNone(*changeGraph, string) {}

// changeEdits are the edits of every day. A path of several nodes is "a b".
var changeEdits = []changeEdit{
	{"rename a node", "left2", "hold/spin/check", "scout2", func(g *changeGraph, path string) {
		in, i := g.find(path)
		was := in.Nodes[i].Name
		in.Nodes[i].Name = was + "-anew"
		changeSwap(in, was, was+"-anew")
	}, ""},
	{"insert downstream, at the end", "last", "end", "tell", func(g *changeGraph, path string) {
		changeAppend(g, path, &changeNode{Name: "more", Kind: "step", After: []string{path}})
	}, ""},
	{"insert downstream, inside", "join", "hold/shut", "shelves/read", func(g *changeGraph, path string) {
		in, i := g.find(path)
		in.Nodes = append(in.Nodes, &changeNode{Name: "more", Kind: "step", After: []string{in.Nodes[i].Name}})
	}, ""},
	{"insert upstream, at the root", "start", "begin", "plan", func(g *changeGraph, path string) {
		changeInsert(g, path, &changeNode{Name: "first", Kind: "step"}).After = []string{"first"}
	}, ""},
	{"insert upstream, in the middle", "left2", "hold/spin/mend", "rank", func(g *changeGraph, path string) {
		in, i := g.find(path)
		n := &changeNode{Name: "between", Kind: "step", After: in.Nodes[i].After, Join: in.Nodes[i].Join}
		next := changeInsert(g, path, n)
		next.After, next.Join = []string{"between"}, ""
	}, ""},
	{"insert beside", "left1", "hold/spin/draft", "pick", func(g *changeGraph, path string) {
		in, i := g.find(path)
		changeInsert(g, path, &changeNode{Name: "beside", Kind: "step", After: in.Nodes[i].After})
	}, ""},
	{"insert a node that follows nothing", "left1", "aside", "rank", func(g *changeGraph, path string) {
		changeInsert(g, path, &changeNode{Name: "root", Kind: "step"})
	}, ""},
	{"insert a node that is not taken", "left1", "hold/spin/mend", "shelves", func(g *changeGraph, path string) {
		in, i := g.find(path)
		route, _, _ := strings.Cut(in.Nodes[i].After[0], ":")
		other := map[string]string{"way": "right", "check": "good", "pick": "many"}[route]
		changeAppend(g, path, &changeNode{Name: "idle", Kind: "step", After: []string{route + ":" + other}})
	}, ""},
	{"remove the last node", "last", "end", "tell", func(g *changeGraph, path string) {
		in, i := g.find(path)
		for _, edge := range in.Nodes[i].After {
			if strings.Contains(edge, ":") {
				in.Ends = append(in.Ends, edge)
			}
		}
		in.Nodes = slices.Delete(in.Nodes, i, i+1)
	}, ""},
	{"remove a node in the middle", "left1", "aside", "items", func(g *changeGraph, path string) {
		in, i := g.find(path)
		n := in.Nodes[i]
		in.Nodes = slices.Delete(in.Nodes, i, i+1)
		for _, m := range in.Nodes {
			if k := slices.Index(m.After, n.Name); k >= 0 {
				m.After = slices.Concat(m.After[:k:k], n.After, m.After[k+1:])
			}
		}
	}, ""},
	{"retype a cell that is written", "start", "begin", "plan", changeNone, "retyped"},
	{"retype a cell that is not", "start", "begin", "plan", changeNone, "idle retyped"},
	{"make a cell of another kind", "start", "begin", "plan", changeNone, "other kind"},
	{"add a cell", "start", "begin", "plan", changeNone, "added"},
	{"remove a cell that is written", "start", "begin", "plan", changeNone, "removed"},
	{"remove a cell that is not", "start", "begin", "plan", changeNone, "idle removed"},
	{"rename a cell", "start", "begin", "plan", changeNone, "renamed"},
	{"reorder cells", "start", "begin", "plan", changeNone, "reordered"},
	{"add an outcome", "way", "hold/spin/check", "pick", func(g *changeGraph, path string) {
		n := g.node(path)
		n.Outcomes = append([]string{"none"}, n.Outcomes...)
		changeAppend(g, path, &changeNode{Name: "nothing", Kind: "step", After: []string{n.Name + ":none"}})
	}, ""},
	{"remove an outcome that is not taken", "way", "hold/spin/check", "kinds", func(g *changeGraph, path string) {
		in, i := g.find(path)
		n := in.Nodes[i]
		var gone string
		for _, o := range n.Outcomes {
			if !slices.Contains(strings.Split(n.Takes, "|"), o) {
				gone = o
			}
		}
		n.Outcomes = slices.DeleteFunc(n.Outcomes, func(o string) bool { return o == gone })
		in.Nodes = slices.DeleteFunc(in.Nodes, func(m *changeNode) bool { return slices.Contains(m.After, n.Name+":"+gone) })
	}, ""},
	{"rename the outcome that is taken", "way", "hold/spin/check", "pick", func(g *changeGraph, path string) {
		in, i := g.find(path)
		n := in.Nodes[i]
		was := n.Takes
		n.Takes = "renamed"
		n.Outcomes[slices.Index(n.Outcomes, was)] = n.Takes
		changeSwap(in, n.Name+":"+was, n.Name+":renamed")
	}, ""},
	{"take another outcome, which is new", "way", "hold/spin/check", "pick", func(g *changeGraph, path string) {
		in, i := g.find(path)
		n := in.Nodes[i]
		was := n.Takes
		n.Takes = "split"
		n.Outcomes = append(n.Outcomes, n.Takes)
		changeSwap(in, n.Name+":"+was, n.Name+":"+was+"|split")
	}, ""},
	{"choose one outcome less", "", "", "kinds", func(g *changeGraph, path string) {
		n := g.node(path)
		n.Outcomes, n.Takes = []string{"new", "old"}, "old"
		in, i := g.find("lent")
		in.Nodes = slices.Delete(in.Nodes, i, i+1)
	}, ""},
	{"choose one outcome more", "", "", "kinds", func(g *changeGraph, path string) {
		n := g.node(path)
		n.Outcomes = append(n.Outcomes, "lost")
		changeAppend(g, path, &changeNode{Name: "lost", Kind: "step", After: []string{"kinds:lost"}})
	}, ""},
	{"make a route a choose", "", "hold/spin/check", "pick", func(g *changeGraph, path string) {
		g.node(path).Kind = "choose"
		if path == "pick" {
			g.node("tell").Join = "any"
		}
	}, ""},
	{"reorder outcomes", "way", "hold/spin/check", "pick", func(g *changeGraph, path string) {
		slices.Reverse(g.node(path).Outcomes)
	}, ""},
	{"reorder nodes", "left1 right1", "aside hold", "scout1 scout2", func(g *changeGraph, path string) {
		a, b, _ := strings.Cut(path, " ")
		in, i := g.find(b)
		n := in.Nodes[i]
		in.Nodes = slices.Delete(in.Nodes, i, i+1)
		changeInsert(g, a, n)
	}, ""},
	{"change policies", "left1", "hold/spin/draft", "items", func(g *changeGraph, path string) {
		n := g.node(path)
		n.Policy = dag.Policy{Attempts: 3, Timeout: time.Minute}
		if n.Kind == "each" {
			n.Policy.Parallel, n.Policy.Errors = 1, dag.Collect
		}
	}, ""},
	{"raise the bound of a loop", "", "hold/spin", "", func(g *changeGraph, path string) {
		g.node(path).Most, g.node(path).Until = 4, 4
	}, ""},
	{"swap the body of a loop", "", "hold/spin", "", func(g *changeGraph, path string) {
		g.node(path).Body = &changeGraph{Name: "other", Nodes: []*changeNode{
			{Name: "sketch", Kind: "step"}, {Name: "paint", Kind: "step", After: []string{"sketch"}},
		}}
	}, ""},
	{"swap the end of a body", "", "hold/spin/mend", "shelves/read", func(g *changeGraph, path string) {
		in, i := g.find(path)
		in.Nodes[i].Name = "other"
	}, ""},
	{"rename the graph of a body", "", "hold/spin", "shelves", func(g *changeGraph, path string) {
		g.node(path).Body.Name = "renamed"
	}, ""},
	{"change what functions do", "start", "begin", "plan", changeNone, ""},
	{"make a step a route", "left2", "hold/lid", "scout1", func(g *changeGraph, path string) {
		n := g.node(path)
		n.Kind, n.Outcomes, n.Takes = "route", []string{"yes", "no"}, "yes"
		in, _ := g.find(path)
		in.Ends = append(in.Ends, n.Name+":yes", n.Name+":no")
	}, ""},
	{"make a route a step", "way", "hold/spin/check", "pick", func(g *changeGraph, path string) {
		in, i := g.find(path)
		n := in.Nodes[i]
		n.Kind = "step"
		for _, o := range n.Outcomes {
			changeSwap(in, n.Name+":"+o, n.Name)
		}
		n.Outcomes = nil
		in.Nodes = slices.DeleteFunc(in.Nodes, func(m *changeNode) bool { return m.Kind == "fail" })
		for _, m := range in.Nodes {
			if m.Join == "" && len(m.After) > 1 {
				m.Join = "any"
			}
		}
	}, ""},
	{"wait for any instead of all", "", "end", "rank", func(g *changeGraph, path string) {
		g.node(path).Join = "any"
		if path == "rank" { // it does not depend on the route any more
			g.node("tell").Join = "any"
		}
	}, ""},
	{"follow a failure", "left1", "hold", "shelves", func(g *changeGraph, path string) {
		changeAppend(g, path, &changeNode{Name: "retreat", Kind: "step", After: []string{g.node(path).Name + "!"}})
	}, ""},
	{"no longer follow a failure", "risky rescue last", "", "", func(g *changeGraph, path string) {
		g.node("risky").Broken = false
		g.node("last").After = []string{"risky"}
		in, i := g.find("rescue")
		in.Nodes = slices.Delete(in.Nodes, i, i+1)
	}, ""},
	{"let a failure end the graph", "rescue", "", "", func(g *changeGraph, path string) {
		in, i := g.find(path)
		in.Nodes = slices.Delete(in.Nodes, i, i+1)
		g.node("last").After = []string{"risky"}
		g.Ends = append(g.Ends, "risky!")
	}, ""},
	{"follow another outcome", "right1", "hold/spin/praise", "tell", func(g *changeGraph, path string) {
		n := g.node(path)
		switch n.Name {
		case "right1":
			n.After = []string{"way:off", "way:right"}
		case "praise":
			n.After = []string{"check"}
		case "tell":
			n.After, n.Join = []string{"rank", "pick"}, "all"
			g.Ends = append(g.Ends, "pick:many")
		}
	}, ""},
	{"fail at an outcome", "right1", "hold/spin/praise", "", func(g *changeGraph, path string) {
		n := g.node(path)
		changeAppend(g, path, &changeNode{Name: "broken", Kind: "fail", After: n.After})
	}, ""},
	{"rename the graph", "start", "begin", "plan", func(g *changeGraph, _ string) { g.Name = "renamed" }, ""},
	{"wrap a node in an embedded graph", "left2", "hold/lid", "scout2", func(g *changeGraph, path string) {
		n := g.node(path)
		inner := *n
		inner.After, inner.Name = nil, "inner"
		n.Kind, n.Body = "embed", &changeGraph{Name: "wrap", Nodes: []*changeNode{&inner}}
	}, ""},
	{"unwrap an embedded graph", "", "hold", "", func(g *changeGraph, path string) {
		in, i := g.find(path)
		n := in.Nodes[i]
		inner := n.Body.Nodes
		inner[0].After = n.After
		in.Nodes = slices.Replace(in.Nodes, i, i+1, inner...)
		changeSwap(in, "hold", "shut")
	}, ""},
	{"split a node in two", "left2", "hold/shut", "rank", func(g *changeGraph, path string) {
		in, i := g.find(path)
		n := in.Nodes[i]
		second := &changeNode{Name: n.Name + "2", Kind: "step", After: []string{n.Name + "1"}}
		changeSwap(in, n.Name, second.Name)
		n.Name += "1"
		in.Nodes = slices.Insert(in.Nodes, i+1, second)
	}, ""},
	{"merge two nodes", "left1 left2", "aside ask", "shelves/fetch shelves/read", func(g *changeGraph, path string) {
		a, b, _ := strings.Cut(path, " ")
		in, i := g.find(b)
		first, second := g.node(a), in.Nodes[i]
		changeSwap(in, second.Name, first.Name)
		in.Nodes = slices.Delete(in.Nodes, i, i+1)
		first.Name += "-and-" + second.Name
		changeSwap(in, strings.TrimSuffix(first.Name, "-and-"+second.Name), first.Name)
	}, ""},
	{"swap two nodes of a chain", "left1 left2", "aside ask", "shelves/fetch shelves/read", func(g *changeGraph, path string) {
		a, b, _ := strings.Cut(path, " ")
		first, second := g.node(a), g.node(b)
		first.Name, second.Name = second.Name, first.Name
		first.Asks, second.Asks = second.Asks, first.Asks
		second.After = []string{first.Name}
		in, _ := g.find(a)
		for _, n := range in.Nodes {
			if k := slices.Index(n.After, first.Name); k >= 0 && n != second {
				n.After[k] = second.Name
			}
		}
	}, ""},
	{"visit items by a graph", "", "", "items", func(g *changeGraph, path string) {
		g.node(path).Kind = "eachgraph"
		g.node(path).Body = &changeGraph{Name: "item", Nodes: []*changeNode{{Name: "one", Kind: "step"}}}
	}, ""},
	{"visit items by a function", "", "", "shelves", func(g *changeGraph, path string) {
		g.node(path).Kind, g.node(path).Body = "each", nil
	}, ""},
	{"have more items", "", "", "items", func(g *changeGraph, path string) { g.node(path).Items = 4 }, ""},
}
