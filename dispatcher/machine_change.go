package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A change takes a machine from the graph of its log to another one. It works on the frozen
// machine, and only if the past is the same in both graphs:
//
//  1. Every visit that has settled or is open exists, with the same kind and the same edges
//     before it. So no new node stands before one of them.
//  2. The outcome that a visit took is still declared, and a failure whose edge was taken is
//     still followed.
//  3. No cell that holds something, in the state of an open frame or in a delta that is not
//     merged yet, has changed its kind or type, or is gone.
//
// Frames that are open are compared in the same way, frames that have ended are past: their
// graphs may be others. What has not begun takes its place anew: a node whose predecessors
// have all settled joins the next superstep, or is skipped.
//
// A migration that a program gives may say more: see [Migration]. Whatever it says, what
// comes out is a position that a run of the new graph can have.
type change struct {
	names map[string]string          // of a migration: node path → node path, "" for forgotten
	views map[string]json.RawMessage // of a migration: states of open frames, by path
	// byDigest: a migration names the very graph that it comes from, so that it may be of
	// another name.
	byDigest bool
	limit    int                                // of a migration: how large a state may be
	dropped  []string                           // paths, in the log, of forgotten visits of which nothing is merged
	effects  map[string]map[string]frozenEffect // of the machine, by the paths that the log has
	reasons  []string                           // what stands in the way
}

// against notes what stands in the way of the change.
func (c *change) against(format string, args ...any) {
	c.reasons = append(c.reasons, fmt.Sprintf(format, args...))
}

// onto returns the machine under another plan, encoded. If there are reasons it is nil.
func (c *change) onto(m *machine, is *dag.Plan) []byte {
	if m.plan.Name != is.Name && !c.byDigest {
		c.reasons = append(c.reasons, ofOtherName(m.plan.Name, is.Name))
	}
	z := m.frozen()
	c.effects = z.Effects
	z.Graph, z.Effects, z.Shelf = is.Digest, c.moveEffects(), z.Shelf.renamed(c, is.Digest)
	z.Vacated, z.Fresh = c.vacate(z.Vacated), c.rejected(z.Fresh)
	if len(c.names) > 0 {
		z.Renames = append(slices.Clip(z.Renames), c.names) // machines share it
	}
	if m.status == checkpoint.StatusCompleted {
		z.Root = c.bare(z.Root, m.plan, is)
	} else {
		z.Root = c.frame(z.Root, place{was: m.plan, is: is})
	}
	z.Depends = c.renamedDepends(z.Depends)
	if len(c.reasons) > 0 {
		return nil
	}
	next := newMachine(is)
	next.replaying = true
	if err := next.thawAll(z); err != nil {
		c.against("its state: %v", err)
		return nil
	}
	if m.status != checkpoint.StatusCompleted {
		next.root.catchUp()
		c.check(next.root)
	}
	if len(c.reasons) > 0 {
		return nil
	}
	return next.encode()
}

// bare is the frame of a completed run: its visits are past, its state is not.
func (c *change) bare(z *frozenFrame, was, is *dag.Plan) *frozenFrame {
	next := *z
	next.Open, next.Next, next.Done, next.Skipped, next.Tasks, next.After = nil, nil, nil, nil, nil, nil
	next.View = c.view(z, place{was: was, is: is})
	return &next
}

// A place is where two graphs are compared.
type place struct {
	was, is *dag.Plan
	node    string // node path of what holds the frame, in the old graph, with a slash behind
	log     string // path of the frame, in the log, with a slash behind
	path    string // the same in the new graph
}

// A passage is one node of the old graph on its way into the new one.
type passage struct {
	was, is *dag.PlanNode // is: nil if the node is gone
	at      int           // in the new graph
	forgot  bool
	task    frozenTask // Phase is idle if the visit has not begun
}

// frame takes one open frame, and those that its visits hold, to the new graph.
func (c *change) frame(z *frozenFrame, p place) *frozenFrame {
	ways := c.passages(z, p)
	next := *z
	next.Path = strings.TrimSuffix(p.path, "/")
	next.View = c.view(z, p)
	next.Outer = c.delta(z.Outer, "what iterations have written", z, p)
	next.Done, next.Skipped, next.Tasks, next.Next, next.Open = nil, nil, nil, nil, nil
	for i := range ways {
		w := &ways[i]
		if w.forgot && !w.task.Phase.settled() && !w.salvaged(z) {
			c.dropped = append(c.dropped, p.log+w.was.Name)
		}
		if w.task.Phase == idle || w.forgot || !c.fits(w, ways, z, p) {
			continue
		}
		c.repeats(w, ways, p)
		c.carry(w, z, p)
		next.put(w)
	}
	for _, i := range z.Open {
		if w := &ways[i]; !w.forgot {
			next.Open = append(next.Open, int32(w.at))
		}
	}
	slices.Sort(next.Open)
	next.order()
	next.After = renumber(z.After, ways)
	next.Refused = c.failure(z.Refused)
	return &next
}

// put adds a visit to a frame of the new graph.
func (z *frozenFrame) put(w *passage) {
	t := w.task
	t.Node = w.at
	z.Tasks = append(z.Tasks, t)
}

// order gives the visits of a frame the form in which an encoded machine has them.
func (z *frozenFrame) order() {
	slices.SortFunc(z.Tasks, func(a, b frozenTask) int { return a.Node - b.Node })
}

// passages finds for every node of the old graph the one that it is in the new graph, and
// where its visit stands.
func (c *change) passages(z *frozenFrame, p place) []passage {
	at := make(map[string]int, len(p.is.Nodes))
	for i := range p.is.Nodes {
		at[p.is.Nodes[i].Name] = i
	}
	ways := make([]passage, len(p.was.Nodes))
	taken := make(map[int]string, len(ways))
	for i := range ways {
		w := &ways[i]
		w.was, w.at = &p.was.Nodes[i], -1
		name := w.was.Name
		if to, ok := c.names[p.node+name]; ok {
			name, w.forgot = to[strings.LastIndexByte(to, '/')+1:], to == ""
		}
		if k, ok := at[name]; ok && !w.forgot {
			w.is, w.at = &p.is.Nodes[k], k
		}
	}
	ranges := func(list []int, ph phase) {
		for k := 0; k+1 < len(list); k += 2 {
			for i := list[k]; i <= list[k+1]; i++ {
				ways[i].task = frozenTask{Node: i, Phase: ph}
			}
		}
	}
	ranges(z.Done, done)
	ranges(z.Skipped, skipped)
	for _, t := range z.Tasks {
		ways[t.Node].task = t
	}
	for i := range ways {
		w := &ways[i]
		if w.is == nil || w.task.Phase == idle {
			continue
		}
		if other, ok := taken[w.at]; ok {
			c.against("%s, and is to be where another is: %s", w.name(p), other)
		}
		taken[w.at] = w.name(p)
	}
	return ways
}

// salvaged is [task.salvaged] of a visit of z.
func (w *passage) salvaged(z *frozenFrame) bool {
	ended := w.task.Phase == finished || w.task.Phase == lapsed
	return z.Salvaged && (records(w.was) || ended && string(w.task.Delta) == "{}")
}

// name is how a reason speaks of a visit: as the log knows it.
func (w *passage) name(p place) string {
	return "visit " + p.log + w.was.Name + " " + w.task.Phase.tells()
}

// tells is the phase in the words of a reason.
func (p phase) tells() string {
	switch p {
	case idle:
		return "has not begun"
	case finished, done:
		return "is done"
	case lapsed, failing, failed:
		return "has failed"
	case skipped:
		return "is skipped"
	}
	return "is open"
}

// chosen are the outcomes that the visit took.
func (w *passage) chosen() []string {
	switch o := w.task.Outcome; {
	case o == "":
		return nil
	case w.was.Kind == dag.KindChoose:
		all, _ := chosenIn(o) // checked when it was applied
		return all
	default:
		return []string{o}
	}
}

// fits reports whether a visit that has settled or is open is the same in the new graph.
func (c *change) fits(w *passage, ways []passage, z *frozenFrame, p place) bool {
	before := len(c.reasons)
	name := w.name(p)
	switch {
	case w.is == nil:
		c.against("%s, and its node is gone", name)
		return false
	case w.was.Kind != w.is.Kind:
		c.against("%s, and its node was a %s and is a %s", name, w.was.Kind, w.is.Kind)
		return false
	}
	was, forgot := named(p.was, &w.was.Follows, ways)
	is, _ := named(p.is, &w.is.Follows, nil)
	if was != is && !forgot { // where it followed what is forgotten, check decides
		c.against("%s, and it followed %s and follows %s", name, orNothing(was), orNothing(is))
	}
	for _, o := range w.chosen() {
		if !slices.Contains(w.is.Outcomes, o) {
			c.against("%s with outcome %q, which is no longer declared", name, o)
		}
	}
	if ph := w.task.Phase; (ph == lapsed || ph == failed) && !w.is.FailureFollowed {
		c.against("%s, and nobody follows its failure any more", name)
	}
	return len(c.reasons) == before
}
