package dispatcher

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// carry takes what a visit holds to the new graph.
func (c *change) carry(w *passage, z *frozenFrame, p place) {
	t := &w.task
	t.Delta = c.delta(t.Delta, "what visit "+p.log+w.was.Name+" has written", z, p)
	t.Failure = c.failure(t.Failure)
	t.Collected = slices.Clone(t.Collected)
	for k := range t.Collected {
		t.Collected[k].Path = c.renamed(t.Collected[k].Path)
	}
	t.Asks = slices.Clone(t.Asks)
	for k := range t.Asks {
		t.Asks[k].Node = w.at
	}
	if t.Inner != nil {
		was := t.Inner
		t.Inner = c.inner(was, w, p)
		t.revive(was)
	}
	if t.Phase == failing && w.is.FailureFollowed && !t.Unfollowed {
		t.follow(w.is)
	}
}

// inner takes the frame that a visit holds to the new graph.
func (c *change) inner(z *frozenFrame, w *passage, p place) *frozenFrame {
	body := place{
		was: w.was.Body, is: w.is.Body, node: p.node + w.was.Name + "/",
		log: z.Path + "/", path: c.renamed(z.Path) + "/",
	}
	if z.Items == nil {
		return c.frame(z, body)
	}
	if (w.was.Body == nil) != (w.is.Body == nil) {
		c.against("%s, and its items were visited by a %s and are by a %s", w.name(p), w.was.Item.Kind, w.is.Item.Kind)
		return z
	}
	next := *z
	body.was, body.is = p.was, p.is // the state of items is that of the graph they are in
	if z.View != nil {
		next.View = c.view(z, body)
		next.Outer = c.delta(z.Outer, "what items have written", z, body)
	}
	next.Refused = c.failure(z.Refused)
	next.Tasks = slices.Clone(z.Tasks)
	for i := range next.Tasks {
		t := &next.Tasks[i]
		t.Delta = c.delta(t.Delta, fmt.Sprintf("what visit %s%d has written", body.log, t.Node+1), z, body)
		t.Failure = c.failure(t.Failure)
		if was := t.Inner; was != nil {
			t.Inner = c.frame(was, place{
				was: w.was.Body, is: w.is.Body, node: body.node,
				log: was.Path + "/", path: c.renamed(was.Path) + "/",
			})
			t.revive(was)
		}
	}
	return &next
}

// revive lets a visit go on that has failed because the frame that it holds had, which was was:
// what failed in it is followed now, or forgotten. One with nothing left to run has failed since
// its end could not be decided.
func (t *frozenTask) revive(was *frozenFrame) {
	if t.Phase == failing && !t.Inner.fails() && (was.Items != nil || len(was.Open) > 0) {
		t.Phase, t.Failure, t.Unfollowed = inside, nil, false
	}
}

// follow lets the failure edge be taken of a visit whose failure was nobody's, and now is
// somebody's.
func (t *frozenTask) follow(n *dag.PlanNode) {
	switch {
	case t.Inner == nil:
		t.Phase = lapsed
	case t.Inner.fails():
		t.Phase = inside // what it has finished is kept when it is buried
	default: // its end could not be decided
		t.Phase = lapsed
		if records(n) {
			t.Delta = t.Inner.Outer
		}
		t.Inner = nil
	}
}

// fails reports whether a frame has failed.
func (z *frozenFrame) fails() bool {
	return z.Refused != nil || slices.ContainsFunc(z.Tasks, func(t frozenTask) bool { return t.Phase == failing })
}

// renumber finds the nodes of interrupts behind visits. Those of forgotten visits are gone.
func renumber(all []frozenPending, ways []passage) []frozenPending {
	var next []frozenPending
	for _, q := range all {
		if w := &ways[q.Node]; !w.forgot {
			q.Node = w.at
			next = append(next, q)
		}
	}
	return next
}

// moveEffects are the effects of visits under the paths of the new graph. One that is in doubt
// can't be moved: the other side knows it by a key that its path is part of. Nor can it be
// forgotten, as long as nobody has said what came of it.
func (c *change) moveEffects() map[string]map[string]frozenEffect {
	z := c.effects
	if len(c.names) == 0 {
		return z
	}
	next := make(map[string]map[string]frozenEffect, len(z))
	for _, path := range slices.Sorted(maps.Keys(z)) {
		to, there := c.moved(path)
		for _, key := range slices.Sorted(maps.Keys(z[path])) {
			switch {
			case z[path][key].State != effectBegun:
			case !there:
				c.against("effect %q of visit %s was begun and has not ended, and its node is forgotten", key, path)
			case to != path:
				c.against("effect %q of visit %s was begun and has not ended, and its node is renamed", key, path)
			}
		}
		switch {
		case there && to == path:
			next[to] = z[path]
		case there:
			next[to] = begunAt(path, z[path])
		}
	}
	return next
}

// repeats is against a visit going to another name if a new node has the name that it had, and
// would do again what it has done: an effect that has happened, since the node does not find the
// result, or all of it, if the visit is at its end and is to stand before that node.
func (c *change) repeats(w *passage, ways []passage, p place) {
	name := w.was.Name
	again, there := p.is.Find(name)
	old := func(i int) bool {
		return slices.ContainsFunc(ways, func(other passage) bool { return other.is != nil && other.at == i })
	}
	if name == w.is.Name || !there || w.task.Phase == skipped || old(again) {
		return
	}
	if w.task.Phase >= finished && behind(p.is, w.at, old)[again] {
		c.against("%s, and a new node named %q behind %s would do it again", w.name(p), name, w.is.Name)
		return
	}
	if w.task.Phase.settled() {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(c.effects)) {
		if path != p.log+name && !strings.HasPrefix(path, p.log+name+"/") {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(c.effects[path])) {
			if s := c.effects[path][key].State; s == effectEnded || s == effectLost {
				c.against("effect %q of visit %s has happened, and a new node named %q would do it again", key, path, name)
			}
		}
	}
}

// behind are the nodes of a plan that follow one of it, at once or by way of nodes that are not
// old.
func behind(plan *dag.Plan, first int, old func(int) bool) map[int]bool {
	all := map[int]bool{first: true}
	var follows func(e *dag.Expr) bool
	follows = func(e *dag.Expr) bool {
		return e.Op == dag.OpNode && all[e.Node] || slices.ContainsFunc(e.Of, func(e dag.Expr) bool { return follows(&e) })
	}
	for i := range plan.Nodes { // in an order in which none comes before what it follows
		if !old(i) && follows(&plan.Nodes[i].Follows) {
			all[i] = true
		}
	}
	return all
}

// begunAt are the effects of a visit that had that path until now: the other side knows them by it.
func begunAt(path string, z map[string]frozenEffect) map[string]frozenEffect {
	next := make(map[string]frozenEffect, len(z))
	for key, e := range z {
		if e.At == "" {
			e.At = path
		}
		next[key] = e
	}
	return next
}

// failure is a failure told with the paths of the new graph.
func (c *change) failure(f *dag.Failure) *dag.Failure {
	if f == nil {
		return nil
	}
	next := *f
	next.Path = c.renamed(f.Path)
	return &next
}

// rejected are the visits that were rejected, under their paths in the new graph, if they are
// there.
func (c *change) rejected(paths []string) (next []string) {
	for _, path := range paths {
		if is, there := c.moved(path); there {
			next = append(next, is)
		}
	}
	return next
}

// renamed is the path in the new graph of a visit or frame of the old one, or would be if its node
// were there.
func (c *change) renamed(path string) string {
	is, _ := c.moved(path)
	return is
}

// moved is the same, and whether it is there.
func (c *change) moved(path string) (is string, there bool) {
	m := checkpoint.Migration{Nodes: c.names}
	return m.Renamed(path)
}
