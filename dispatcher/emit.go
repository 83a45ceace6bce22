package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/pawlgo/pawl/dag"
)

// notice is a live notice of the visit. It reads nothing that the owner of the run writes.
func (v *visit) notice(kind EventKind) Event {
	e := v.host.about.Load().event(kind, v.host.last())
	e.Live, e.At = true, time.Now()
	e.Path, e.Node, e.Step, e.Attempt = v.path(), nodePath(v.path()), int(v.step), v.Attempt()
	return e
}

// Emit implements [dag.Visit].
func (v *visit) Emit(name string, value json.RawMessage) error {
	switch {
	case v.over():
		return fmt.Errorf("dispatcher: Emit(%q): %w", name, dag.ErrVisitOver)
	case !utf8.ValidString(name):
		return fmt.Errorf("dispatcher: Emit: the name %q is not UTF-8", name)
	}
	if err := v.host.c.opts.Limits.allow(value, "emitted ", name); err != nil {
		return err
	}
	readers, observed := v.host.listeners(), v.host.c.opts.Observe != nil
	if observed || len(readers) > 0 {
		e := v.notice(Emitted)
		e.Name, e.Value = name, value
		offer(readers, &e)
		if observed {
			v.keep(&e)
		}
	}
	return nil
}

// What is kept for an observer of the values that one attempt emits.
const (
	emittedMost  = 1024
	emittedBytes = 4 << 20
)

// An emission is a value that waits until the visit lands: the observer is told by the
// owner of the run alone, which may be running the body itself.
type emission struct {
	event  Event // a Lagged one if values were dropped
	before *emission
	count  int
	bytes  int
}

func (v *visit) keep(e *Event) {
	did := v.does()
	for {
		last := did.emits.Load()
		next := &emission{event: *e, before: last, count: 1, bytes: len(e.Value)}
		if last != nil {
			next.count, next.bytes = next.count+last.count, next.bytes+last.bytes
			if next.count > emittedMost || next.bytes > emittedBytes {
				next = last.dropping(v)
			}
		}
		if did.emits.CompareAndSwap(last, next) {
			return
		}
	}
}

// dropping counts one more value that was not kept behind those that were.
func (m *emission) dropping(v *visit) *emission {
	if m.event.Kind == Lagged {
		more := *m
		more.event.Dropped++
		return &more
	}
	e := v.notice(Lagged)
	e.Dropped = 1
	return &emission{event: e, before: m, count: m.count, bytes: m.bytes}
}

// emitted appends what the visit has emitted, in order.
func (v *visit) emitted(to []Event) []Event {
	did := v.did.Load()
	if did == nil {
		return to
	}
	from := len(to)
	for m := did.emits.Swap(nil); m != nil; m = m.before {
		to = append(to, m.event)
	}
	slices.Reverse(to[from:])
	return to
}

// tellEmitted tells the observer what visits have emitted that have landed.
func (r *run) tellEmitted() {
	for _, e := range r.emitted {
		r.c.observe(e)
	}
	clear(r.emitted)
	r.emitted = r.emitted[:0]
}
