package dispatcher

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// take hands out the visits that may run now. Whoever takes one answers with a fact, or
// gives it back. The list is good until the next call.
func (m *machine) take() []*task {
	m.ready, m.taken = m.taken[:0], m.ready
	return m.taken
}

// wake offers a visit whose wait between attempts is over.
func (m *machine) wake(t *task) {
	t.phase, t.odd.woken = ready, true
	m.offer(t)
}

// rescan finds, in a machine that comes from the log, what a live one has been offered.
func (m *machine) rescan() {
	m.replaying, m.queue, m.asked, m.ready = false, nil, 0, nil
	if m.root != nil {
		m.scan(m.root)
	}
}

func (m *machine) scan(f *frame) {
	switch {
	case !f.begun():
		return // opened, and not begun
	case len(f.open) == 0:
		if f.refused != nil {
			m.check(f)
		} else if f.holder == nil || f.holder.phase == inside {
			if m.status != checkpoint.StatusCompleted {
				m.proceed(f)
			}
		}
		return
	}
	if f.items != nil {
		m.scanItems(f)
		return
	}
	for _, i := range f.open {
		switch t := &f.tasks[i]; t.phase {
		case ready:
			m.offer(t)
		case inside:
			m.scan(t.inner)
		}
	}
	if f.left == 0 && (f.failing == 0 || f.holder != nil && f.holder.caught()) {
		m.check(f)
	}
}

// waitsOnly reports whether a run that goes on has nothing to do but to wait for answers.
func (m *machine) waitsOnly() bool {
	return len(m.ready) == 0 && !m.undecided() && len(m.delays()) == 0 && len(m.failures()) == 0
}

// delays lists the visits that wait between attempts.
func (m *machine) delays() []*task {
	if m.root == nil {
		return nil
	}
	return m.root.delays(nil)
}

func (f *frame) delays(all []*task) []*task {
	for _, i := range f.open {
		switch t := &f.tasks[i]; t.phase {
		case delayed:
			all = append(all, t)
		case inside:
			all = t.inner.delays(all)
		}
	}
	return all
}

// cursor lists the visits that have still to run or wait, in declaration order.
func (m *machine) cursor() []string {
	if m.root == nil || m.status == checkpoint.StatusCompleted {
		return nil
	}
	if !m.root.begun() { // opened, and not begun
		m.root.start()
	}
	return m.root.cursor(nil)
}

func (f *frame) cursor(visits []string) []string {
	if len(f.open) == 0 {
		for _, i := range f.next {
			visits = append(visits, f.tasks[i].path())
		}
		if len(f.next) > 0 {
			return visits
		}
		for _, p := range f.after { // nothing is left but what waits here
			visits = append(visits, p.t.path())
		}
		if f.refused != nil {
			visits = append(visits, f.refused.Path)
		}
		return visits
	}
	for _, i := range f.open {
		t := &f.tasks[i]
		if f.stopped() && f.holder.caught() && t.unbegun() {
			continue // the Each is about to fail without it
		}
		switch t.phase {
		case finished, lapsed:
		case inside:
			visits = t.inner.cursor(visits)
		case failing:
			if t.inner != nil && t.inner.failing > 0 {
				visits = t.inner.cursor(visits)
				continue
			}
			visits = append(visits, t.path())
		default:
			visits = append(visits, t.path())
		}
	}
	return visits
}

// finishedSiblings lists the visits of open supersteps that are done.
func (f *frame) finishedSiblings(visits []string) []string {
	for _, i := range f.open {
		switch t := &f.tasks[i]; t.phase {
		case finished:
			visits = append(visits, t.path())
		case inside, failing:
			if t.inner != nil {
				visits = t.inner.finishedSiblings(visits)
			}
		}
	}
	return visits
}

// find returns the visit of a path, nil if no open frame has it.
func (m *machine) find(path string) *task {
	f := m.root
	for f != nil {
		name, rest, more := strings.Cut(path, "/")
		t := m.task(f, name)
		if t == nil || !more {
			return t
		}
		path = rest
		if f = t.inner; f != nil && t.node.Kind == dag.KindLoop {
			iteration, rest, more := strings.Cut(path, "/")
			if !more || iteration != strconv.Itoa(f.iteration) {
				return nil
			}
			path = rest
		}
	}
	return nil
}

// fewOpen is how many names are compared before the index of all names is asked.
const fewOpen = 4

// task returns the visit of a node in f.
func (m *machine) task(f *frame, name string) *task {
	if f.items != nil {
		return f.item(name)
	}
	for _, i := range f.open[:min(len(f.open), fewOpen)] { // most of what a log tells is of one of these
		if t := &f.tasks[i]; t.node.Name == name {
			return t
		}
	}
	if i, ok := f.plan.Find(name); ok {
		return &f.tasks[i]
	}
	return nil
}

// frameAt returns the open frame of a path.
func (m *machine) frameAt(path string) *frame {
	if path == "" {
		return m.root
	}
	t, err := m.holder(path)
	if err != nil || t == nil || t.inner == nil || t.inner.path != path {
		return nil
	}
	return t.inner
}

// holder returns the visit that holds, or will hold, the frame of a path; nil for "".
func (m *machine) holder(path string) (*task, error) {
	if path == "" {
		if m.root == nil {
			return nil, fmt.Errorf("the run was never opened")
		}
		return nil, nil
	}
	t := m.find(path)
	if i := strings.LastIndexByte(path, '/'); t == nil && i >= 0 && isIteration(path[i+1:]) {
		t = m.find(path[:i])
	}
	if t == nil || !holds(t.node) {
		return nil, fmt.Errorf("no visit is open that could hold the frame %q", path)
	}
	return t, nil
}

// isIteration reports whether a segment of a path is a number; no node has such a name.
func isIteration(segment string) bool {
	for _, c := range []byte(segment) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return segment != ""
}
