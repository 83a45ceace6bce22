package dispatcher_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// The features that random graphs must show: what is never drawn is never tested.
var features = []string{
	"step", "route", "choose", "loop", "embed", "each", "fail", "end", "grouped state", "three levels",
	"all", "any", "nested combination", "exclusive join", "common join", "failure edge",
	"failure of a loop followed", "failure of an embed followed", "outcome of a loop followed",
	"failure of a graph for each item followed", "graph for each item", "items one by one",
	"items stopped", "items collected", "no items", "no outcome chosen", "several outcomes chosen",
	"error", "panic", "goexit", "undeclared outcome", "retry that ends well",
	"skipped", "parallel visits", "frames side by side", "second iteration",
	"loop done", "loop exhausted", "failure handled", "failed loop keeps something",
	"failed each keeps something", "items that are timing", "denied", "instead", "replaced", "asked before", "rejected",
	"completed", "failed at a node", "failed at dag.Fail", "conflict", "conflict inside a frame",
}

func TestRandomGraphFeatures(t *testing.T) {
	cases, refused := randomCases()
	if len(cases) < 1000 { // some features are rare, and what is looked at runs nothing
		cases, refused = casesFrom(1, 1000)
	}
	count := map[string]int{}
	visits := 0
	for _, c := range cases {
		seen := map[string]bool{}
		drawn(c.spec, 1, seen)
		happened(c, seen)
		for f := range seen {
			count[f]++
		}
		visits += len(c.want.done)
	}
	t.Logf("%d graphs, %d visits; %d others were refused by Build", len(cases), visits, refused)
	if refused >= len(cases) {
		t.Errorf("Build refused %d graphs and accepted %d: the generator guesses too much", refused, len(cases))
	}
	for _, f := range features {
		t.Logf("%5d of %d: %s", count[f], len(cases), f)
		if count[f] == 0 {
			t.Errorf("no graph shows: %s", f)
		}
		delete(count, f)
	}
	if len(count) > 0 {
		t.Errorf("features that are not listed: %v", slices.Sorted(maps.Keys(count)))
	}
}

// drawn notes the features that a graph has on paper.
func drawn(g *graphSpec, depth int, seen map[string]bool) {
	seen["three levels"] = seen["three levels"] || depth == maxDepth
	seen["end"] = seen["end"] || len(g.Ends) > 0
	for i, n := range g.Nodes {
		seen[n.Kind.String()] = true
		drawnEdges(g, n.After, false, seen)
		switch {
		case len(n.After) > 1 && apart(g, n.After):
			seen["exclusive join"] = true
		case len(n.After) > 1:
			seen["common join"] = true
		}
		if n.Fails != 0 {
			seen[map[string]string{
				"error": "error", "panic": "panic", "goexit": "goexit", "outcome": "undeclared outcome",
			}[n.How]] = true
			seen["retry that ends well"] = seen["retry that ends well"] || n.Fails > 0
		}
		if n.Kind == dag.KindEach {
			seen["items one by one"] = seen["items one by one"] || n.Parallel == 1
			seen["graph for each item"] = seen["graph for each item"] || n.Body != nil
		}
		if n.Body == nil {
			continue
		}
		seen["grouped state"] = seen["grouped state"] || n.Body.Grouped
		if g.catches(i) {
			seen["failure of "+map[dag.Kind]string{dag.KindLoop: "a loop", dag.KindEmbed: "an embed", dag.KindEach: "a graph for each item"}[n.Kind]+" followed"] = true
		}
		drawn(n.Body, depth+1, seen)
	}
}

func drawnEdges(g *graphSpec, edges []edgeSpec, inside bool, seen map[string]bool) {
	for _, e := range edges {
		switch {
		case e.Op != "":
			seen[e.Op] = true
			seen["nested combination"] = seen["nested combination"] || inside
			drawnEdges(g, e.Of, true, seen)
		case e.Failed:
			seen["failure edge"] = true
		case len(e.On) > 0 && g.Nodes[e.Node].Kind == dag.KindLoop:
			seen["outcome of a loop followed"] = true
		}
	}
}

// apart reports whether a join is one of edges that exclude each other, as the generator
// draws them: directly, or by nodes that follow nothing else.
func apart(g *graphSpec, edges []edgeSpec) bool {
	var ends []edgeSpec
	for _, e := range edges {
		if len(e.On) == 0 && !e.Failed && len(g.Nodes[e.Node].After) == 1 {
			e = g.Nodes[e.Node].After[0]
		}
		ends = append(ends, e)
	}
	a, b := ends[0], ends[1]
	return a.Op == "" && b.Op == "" && a.Node == b.Node && (a.Failed != b.Failed || !slices.Equal(a.On, b.On))
}

// happened notes the features that the run of a graph shows.
func happened(c *randomCase, seen map[string]bool) {
	for i := range c.want.root.nodes {
		t := &c.want.root.nodes[i]
		switch {
		case t.phase == "skipped":
			seen["skipped"] = true
		case t.phase == "failed" && t.Kind == dag.KindLoop && len(t.delta) > 0:
			seen["failed loop keeps something"] = true
		case t.phase == "done" && t.Kind == dag.KindLoop:
			seen["loop "+t.outcome] = true
		case t.phase == "failed" && t.Kind == dag.KindEach:
			seen["items stopped"] = true
			seen["failed each keeps something"] = seen["failed each keeps something"] || len(t.delta) > 0
		case t.phase == "done" && t.Kind == dag.KindEach:
			seen["items collected"] = seen["items collected"] || t.collected != nil
			seen["no items"] = seen["no items"] || t.outcome == string(dag.Empty)
		case t.phase == "done" && t.Kind == dag.KindChoose:
			seen["no outcome chosen"] = seen["no outcome chosen"] || t.outcome == ""
			seen["several outcomes chosen"] = seen["several outcomes chosen"] || strings.Contains(t.outcome, " ")
		}
	}
	seen["items that are timing"] = len(c.want.timing) > 0
	seen["denied"] = strings.Contains(c.want.root.state.json(), "(denied)")
	side := map[string]int{} // of each superstep: its visits, and its frames
	for _, at := range c.want.done {
		path, step, _ := strings.Cut(at, "@")
		hooked(c, path, seen)
		frame := path[:max(strings.LastIndex(path, "/"), 0)] + "@" + step
		if side[frame]++; side[frame] == 2 {
			seen["parallel visits"] = true
		}
		if c.spec.at(path).Body == nil {
			continue
		}
		if side["frames of "+frame]++; side["frames of "+frame] == 2 {
			seen["frames side by side"] = true
		}
	}
	if strings.Contains(strings.Join(c.want.attempts, " "), "/2/") {
		seen["second iteration"] = true
	}
	if strings.Contains(c.want.root.state.json(), "failed after") {
		seen["failure handled"] = true
	}
	rests := c.want.rest()
	switch {
	case rests.status == checkpoint.StatusCompleted:
		seen["completed"] = true
	case c.want.fault:
		seen["conflict"] = true
		seen["conflict inside a frame"] = strings.Contains(rests.cursor, "/")
	default:
		for path := range strings.SplitSeq(rests.cursor, ",") {
			seen["failed at a node"] = seen["failed at a node"] || c.spec.at(path).Kind != dag.KindFail
			seen["failed at dag.Fail"] = seen["failed at dag.Fail"] || c.spec.at(path).Kind == dag.KindFail
		}
	}
	maps.DeleteFunc(seen, func(f string, is bool) bool { return !is })
}
