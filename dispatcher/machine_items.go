package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// An Each holds a frame of items, as a Loop holds one of its body: of one superstep, in
// which each visit is an item. Its path is the Each's own, and those of its visits end in
// the number of the item.
//
// Three words are used of items:
//
//  1. An item is busy while it has one of the Each's places, of which there are
//     Policy.Parallel. Who has a place follows from no entry: it is found anew by each
//     process, and is not part of what a snapshot holds. Only what is inside busy items is
//     offered.
//  2. A place is given, by fill, to the first item that could use it, and given back when
//     the item settles, or when all that is left of it waits for a person.
//  3. A frame is stopped when an item of it has failed and failures are not collected. Then
//     only those get a place that have begun, as entries of them or of their effects tell, or
//     that stand before the first one that failed: those begin in order, so they had begun too.
//     The others are spared, and the Each fails when nothing but spared items is left.
type items struct {
	list    any // what Items returned; nil in a machine that was read and not run
	digest  string
	collect bool // failures are collected: as the Each's policy said when it began
	places  int
	busy    int // of places: taken
	low     int // no item before it could use a place
	first   int // of those that failed; good while the frame is stopped
}

// enterItems begins the frame of an Each. Without items nothing is left to do in it.
func (m *machine) enterItems(x *fact) error {
	var e checkpoint.Items
	if err := json.Unmarshal(x.Data, &e); err != nil {
		return err
	}
	if e.Count < 0 || e.Count > mostItems {
		return fmt.Errorf("visit %q has %d items", x.t.path(), e.Count)
	}
	t := x.t
	f := newItems(t, e)
	f.items.list = x.items
	f.view, f.outer = t.frame.view.Draft(), t.frame.view.Draft()
	f.step = 1
	t.inner, t.phase = f, inside
	if e.Count == 0 {
		m.proceed(f)
		return nil
	}
	f.openItems()
	if len(m.voids) > 0 { // else nothing has begun in it
		m.reenter(f)
	}
	m.fill(f)
	return nil
}

// reenter marks the items of a frame, if it has any, in which an effect has begun before they begin
// anew: with them there is something to find out, so a failure does not spare them.
func (m *machine) reenter(f *frame) {
	if f.items == nil {
		return
	}
	frame := f.path + "/"
	for path := range m.effects {
		rest, inside := strings.CutPrefix(path, frame)
		number, _, _ := strings.Cut(rest, "/")
		if t := f.item(number); inside && t != nil {
			t.rare().entered = true
		}
	}
}

// newItems makes the frame of an Each, without its state.
func newItems(t *task, e checkpoint.Items) *frame {
	f := &frame{plan: t.frame.plan, path: t.path(), holder: t, tasks: make([]task, e.Count)}
	f.calls = f.plan.Schema.CallsUser()
	f.items = &items{digest: e.Digest, collect: e.Collect, places: t.node.Policy.Parallel}
	if f.items.places == 0 {
		f.items.places = e.Count
	}
	item := t.node.Item
	if item.FailureFollowed != e.Collect { // the policy has changed meanwhile
		was := *item
		was.FailureFollowed = e.Collect
		item = &was
	}
	for i := range f.tasks {
		f.tasks[i] = task{frame: f, node: item, at: int32(i)}
	}
	return f
}

// openItems makes all items the open superstep.
func (f *frame) openItems() {
	f.open = make([]int32, len(f.tasks))
	for i := range f.open {
		f.open[i] = int32(i)
		f.tasks[i].phase = ready
	}
	f.left = len(f.open)
}

// item returns the visit of a number in a path, nil if it names no item.
func (f *frame) item(number string) *task {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(f.tasks) || strconv.Itoa(n) != number {
		return nil
	}
	return &f.tasks[n-1]
}

// isItem reports whether the visit is one of an item, and not of a node of a graph.
func (t *task) isItem() bool { return t.frame.items != nil }

// stopped reports whether no further item may begin. Where failures are collected one that is
// not to be followed has the Each fail, but not before the others have settled.
func (f *frame) stopped() bool { return f.items != nil && f.failing > 0 && !f.items.collect }

// spared reports whether an item of a stopped frame does not run any more.
func (t *task) spared() bool { return !t.busy && t.unbegun() }

// unbegun reports whether an item stands behind the first one that failed, and no entry
// tells that it has begun.
func (t *task) unbegun() bool {
	if int(t.at) < t.frame.items.first {
		return false
	}
	switch t.phase {
	case delayed, inside, asking:
		return false
	case ready:
		return t.odd == nil || t.odd.attempts == 0 && t.odd.answers == nil && !t.odd.entered
	}
	return t.phase == held
}

// over reports whether nothing is left of a stopped frame but spared items.
func (f *frame) over() bool {
	if f.items.busy > 0 {
		return false
	}
	for i := range f.tasks {
		switch t := &f.tasks[i]; t.phase {
		case ready, delayed, held, asking, inside:
			if !t.spared() {
				return false
			}
		}
	}
	return true
}

// itemSettled goes on behind an item that is done or has failed.
func (m *machine) itemSettled(t *task) {
	m.leave(t)
	f := t.frame
	if t.phase == failing {
		if f.failing == 1 || int(t.at) < f.items.first {
			f.items.first = int(t.at)
		}
		if f.stopped() {
			m.spare(f)
		}
	}
	m.fill(f)
}

// refind finds the first item that failed.
func (f *frame) refind() {
	f.items.first = slices.IndexFunc(f.tasks, func(t task) bool { return t.phase == failing })
}

// scanItems is scan for a frame of items that is open. Nobody gets a place before all of them
// are scanned: then the first do.
func (m *machine) scanItems(f *frame) {
	places := f.items.places
	f.items.places = 0
	for i := range f.tasks {
		if t := &f.tasks[i]; t.phase == inside {
			m.scan(t.inner)
		}
	}
	f.items.places = places
	m.fill(f)
	m.check(f)
}

// collect keeps the failures of items with the Each whose frame has ended.
func (t *task) collect() {
	var all []dag.Failure
	for i := range t.inner.tasks {
		if o := t.inner.tasks[i].odd; o != nil && o.failure != nil {
			all = append(all, *o.failure)
		}
	}
	if all != nil {
		t.rare().collected = all
	}
}

// holds reports whether a visit of the node holds a frame.
func holds(n *dag.PlanNode) bool { return n.Body != nil || n.Kind == dag.KindEach }

// records reports whether what is finished in the frame of a node counts although the node
// fails: of a Loop or an Each.
func records(n *dag.PlanNode) bool { return n.Kind == dag.KindLoop || n.Kind == dag.KindEach }
