package dispatcher_test

import (
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// Pauses make a reference rest before and after visits, once at each.
type pauses struct {
	before, after []string // paths of visits, or of nodes
	paused        []string // where it did
}

// names reports whether one of names is the path of the visit, or that of its node: the
// same without iterations.
func names(names []string, visit string) bool {
	parts := strings.Split(visit, "/")
	item := isNumber(parts[len(parts)-1]) // which the name of its node does not mean
	node := strings.Join(slices.DeleteFunc(parts, isNumber), "/")
	return slices.Contains(names, visit) || !item && slices.Contains(names, node)
}

// holds reports whether a visit is not to begin yet.
func (p *pauses) holds(t *refTask) bool {
	if t.passed || !names(p.before, t.path) {
		return false
	}
	if !t.waits {
		p.paused = append(p.paused, "before "+t.path)
	}
	t.waits = true
	return true
}

// hold keeps a frame whose superstep has ended from going on, if it pauses after one of
// the visits. What it would go on with is known, and has not begun.
func (r *reference) hold(f *refFrame, settled []*refTask) {
	for _, t := range settled {
		if t.phase == "done" && names(r.after, t.path) {
			f.held = append(f.held, t.path)
			r.paused = append(r.paused, "after "+t.path)
		}
	}
	if f.held != nil {
		r.begin(f)
	}
}

// resume ends the pauses, gives new attempts to what made the run fail, and runs.
func (r *reference) resume() *reference {
	r.root.release(r.status == checkpoint.StatusFailed)
	return r.run()
}

func (f *refFrame) release(again bool) {
	f.held = nil
	for _, t := range f.open {
		switch {
		case t.inner != nil:
			t.inner.release(again && !t.caught)
		case t.waits:
			t.waits, t.passed = false, true
		case t.phase == "failed" && again && !t.caught:
			t.phase = ""
		}
	}
}
