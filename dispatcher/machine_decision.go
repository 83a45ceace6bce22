package dispatcher

// A decision is something that must be settled by a fact before the run can go on.
type decision struct {
	kind decisionKind
	f    *frame
	t    *task
}

type decisionKind uint8

const (
	vet       decisionKind = iota + 1 // may t begin, or is it interrupted before?
	enter                             // t's frame has to be entered
	merge                             // f's superstep has nothing left to wait for: close it
	end                               // f has nothing left to run: what comes of it?
	bury                              // f has failed and the failure of what holds it is followed
	takeInput                         // never asked for by the machine: a turn is to begin
)

// offer puts a ready visit where it is found: in the hands of whoever vets it, or among
// those that may run.
func (m *machine) offer(t *task) {
	switch {
	case m.replaying:
	case !t.placed():
		m.enqueue(t)
	case m.vets && !t.begun(), m.gates && !t.cleared:
		m.push(decision{kind: vet, t: t})
	default:
		m.pass(t)
	}
}

// pass lets a visit that was vetted go on.
func (m *machine) pass(t *task) {
	if holds(t.node) {
		m.push(decision{kind: enter, t: t})
		return
	}
	m.ready = append(m.ready, t)
}

func (m *machine) push(d decision) {
	if !m.replaying {
		if m.queue == nil {
			m.queue = m.few[:0]
		}
		m.queue = append(m.queue, d)
	}
}

// next returns the oldest decision that still has to be made.
func (m *machine) next() (decision, bool) {
	if int(m.asked) == len(m.queue) {
		m.queue, m.asked = m.queue[:0], 0
		return decision{}, false
	}
	m.asked++
	return m.queue[m.asked-1], true
}

// undecided reports whether a decision still has to be made.
func (m *machine) undecided() bool { return int(m.asked) < len(m.queue) }
