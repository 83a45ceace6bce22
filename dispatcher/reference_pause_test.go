package dispatcher_test

import "github.com/pawlgo/pawl/checkpoint"

// Pauses make a reference rest before and after visits, once at each.
type pauses struct {
	before, after map[string]bool // by path
	paused        []string        // where it did
}

// holds reports whether a visit is not to begin yet.
func (p *pauses) holds(t *refTask) bool {
	if !p.before[t.path] || t.passed {
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
		if r.after[t.path] && t.phase == "done" {
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
			t.inner.release(again)
		case t.waits:
			t.waits, t.passed = false, true
		case t.phase == "failed" && again && !t.caught:
			t.phase = ""
		}
	}
}
