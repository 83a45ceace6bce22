package dispatcher

import "github.com/pawlgo/pawl/checkpoint"

// A leftover is what a completed run leaves to the next one of its graph: its own frame, lists of
// its visits, and without a log its machine. It grows with the graph, and is read and written by
// the owner alone: of all this a node, and what it leaves behind, knows which node of the plan its
// task is, and that is the same in both runs. What a node can hold on to is never used again.
type leftover struct {
	run    *run      // without a log, if it had no goroutines but its caller's and its owner's
	own    *unlogged // nil with a log
	root   *frame
	ready  []*task
	taken  []*task
	flight []*visit
}

// An unlogged is memory of runs without a log: the machine of one with a log may come to wait, and
// is kept.
type unlogged struct {
	m   machine
	few [1]fact // where the facts begin
}

// leave leaves what r does not need any more, which is completed and has abandoned nothing.
func (c *core) leave(r *run) {
	m := r.m
	if m.status != checkpoint.StatusCompleted || m.root.plan != c.plan || len(r.audience) > 0 {
		return // somebody may read it still
	}
	l := r.legacy
	if l == nil { // the run was loaded
		l = new(leftover)
	}
	l.root, l.ready, l.taken, l.flight = m.root, forgotten(m.ready), forgotten(m.taken), forgotten(r.flight)
	if *m = (machine{}); l.own != nil {
		l.own.few = [1]fact{}
	}
	r.m, r.legacy, r.flight, r.facts = nil, nil, nil, nil // they may be those of another run from now on
	if l.root.letGo(); c.nests {
		l.root.renew()
	}
	if c.store == nil && r.results == nil {
		*r = run{done: r.done}
		l.run = r
	}
	c.leftovers.Put(l)
}

// forgotten is the memory of a list that ends nowhere.
func forgotten[T any](list []*T) []*T {
	clear(list[:cap(list)])
	return list[:0]
}

// letGo keeps of f what renew makes a frame of. What its visits have is left as it is: who goes on
// with a run near its end does not pay for all its nodes.
func (f *frame) letGo() {
	clear(f.deltas[:cap(f.deltas)])
	*f = frame{
		plan: f.plan, tasks: f.tasks, calls: f.calls,
		open: f.open[:0], next: f.next[:0], deltas: f.deltas[:0],
	}
}

// renew makes f, which has let go, what newFrame made it.
func (f *frame) renew() {
	for i := range f.tasks {
		t := &f.tasks[i] // its node is read by what earlier visits left behind, so it is not even written again
		t.phase, t.busy, t.cleared, t.waits, t.at = idle, false, false, t.follows, 0
		t.outcome, t.inner, t.odd = "", nil, nil
	}
}

// leftover is what an earlier run has left, or nothing yet.
func (c *core) leftover() *leftover {
	if l, ok := c.leftovers.Get().(*leftover); ok {
		return l
	}
	return new(leftover)
}

// heir is a frame that an earlier run has left, for a machine that is read from a log; nil if none
// has.
func (c *core) heir() *frame {
	l, ok := c.leftovers.Get().(*leftover)
	if !ok || l.root == nil {
		return nil
	}
	l.root.renew()
	return l.root
}

// inherit begins a run with what an earlier one has left, if one has.
func (r *run) inherit() {
	if r.legacy == nil {
		r.legacy = r.c.leftover()
	}
	l := r.legacy
	if l.root == nil {
		return
	}
	l.root.renew()
	r.m.heir, r.m.ready, r.m.taken = l.root, l.ready, l.taken
	r.flight = l.flight
	l.root, l.ready, l.taken, l.flight = nil, nil, nil, nil
}
