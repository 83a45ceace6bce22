package dispatcher

import "slices"

// fill gives the places that are free to the first items that could use them.
func (m *machine) fill(f *frame) {
	if m.replaying {
		return
	}
	if e := f.items; !m.vets && !m.gates {
		m.ready = slices.Grow(m.ready, max(0, min(e.places-e.busy, len(f.tasks)-e.low)))
	}
	for e := f.items; e.busy < e.places && e.low < len(f.tasks); e.low++ {
		t := &f.tasks[e.low]
		if t.busy || !t.willing() || f.stopped() && t.spared() {
			continue
		}
		t.busy = true
		e.busy++
		m.employ(t)
	}
}

// willing reports whether an item could use a place.
func (t *task) willing() bool {
	switch t.phase {
	case ready, delayed:
		return true
	case inside:
		return !t.inner.waiting()
	}
	return false
}

// waiting reports whether all that is left to do in a frame waits for a person.
func (f *frame) waiting() bool {
	if len(f.open) == 0 {
		return len(f.after) > 0
	}
	if f.items != nil && f.items.busy > 0 { // an item has its place no longer than it could use it
		return false
	}
	waits := false
	for _, i := range f.open {
		t := &f.tasks[i]
		if f.stopped() && t.spared() {
			continue
		}
		switch t.phase {
		case held, asking:
			waits = true
		case ready, delayed:
			return false
		case inside:
			if !t.inner.waiting() {
				return false
			}
			waits = true
		}
	}
	return waits
}

// employ offers what may run of an item, or of what is inside it.
func (m *machine) employ(t *task) {
	switch {
	case t.phase == ready:
		m.offer(t)
	case t.phase == inside:
		for _, i := range t.inner.open {
			m.employ(&t.inner.tasks[i])
		}
	}
}

// placed reports whether the visit may run: it is in no item that has no place.
func (t *task) placed() bool {
	for ; t != nil; t = t.frame.holder {
		if t.isItem() && !t.busy {
			return false
		}
	}
	return true
}

// enqueue lets the items that the visit is in wait for a place, if they have none.
func (m *machine) enqueue(t *task) {
	for ; t != nil; t = t.frame.holder {
		if t.isItem() && !t.busy {
			t.frame.items.low = min(t.frame.items.low, int(t.at))
			m.fill(t.frame)
		}
	}
}

// leave takes the place of an item back.
func (m *machine) leave(t *task) {
	if t.busy {
		t.busy = false
		t.frame.items.busy--
	}
}

// yield takes back the places of items, around a visit or frame that has changed, of which
// nothing is left but what waits for a person.
func (m *machine) yield(t *task) {
	if m.replaying || len(m.waits) == 0 {
		return
	}
	for ; t != nil; t = t.frame.holder {
		if t.busy && !t.willing() {
			m.leave(t)
			m.fill(t.frame)
		}
	}
}

// spare takes back what was offered of items that do not run any more, and has not begun.
func (m *machine) spare(f *frame) {
	gone := func(t *task) bool {
		if t.frame != f || !t.busy || !t.unbegun() {
			return false
		}
		m.leave(t)
		return true
	}
	m.ready = slices.DeleteFunc(m.ready, gone)
	tail := slices.DeleteFunc(m.queue[m.asked:], func(d decision) bool { return d.t != nil && gone(d.t) })
	m.queue = m.queue[:int(m.asked)+len(tail)]
}
