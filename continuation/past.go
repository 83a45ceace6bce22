package continuation

import (
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// voided has visits begin anew. Answers to their questions stay; what waits inside them is gone.
func (h *history) voided(paths []string) {
	for _, path := range paths {
		h.forget(path)
		for _, w := range h.open {
			switch {
			case w.path == path:
				w.voided()
			case inside(w.path, path):
				w.voidedAround()
			}
		}
	}
}

// settle takes in that what a frame was at work on has ended: what failed inside was followed.
func (h *history) settle(frame string) {
	for _, w := range h.open {
		if frame == "" || inside(w.path, frame) {
			w.follow()
		}
	}
}

// leave ends what waited before a turn began, or before the run was rewound.
func (h *history) leave(e *checkpoint.Entry) {
	h.over = h.ended()
	for _, w := range h.open {
		w.leave(e)
	}
	h.over = false
	h.open, h.end, h.notes, h.lost = nil, nil, nil, false
	h.asked, h.gated, h.given = nil, nil, nil
}

// replace ends a wait whose visit asks something else under its name: what is said to the one is no
// answer to the other. It returns how often attempts have failed behind triggers of what that name
// has asked.
func (h *history) replace(k int, e *checkpoint.Entry) (failures int) {
	w := h.open[k]
	w.leave(e)
	h.open = slices.Delete(h.open, k, k+1)
	return w.failures
}

// migrated has waits go with their nodes: what comes behind the migration is told of them by other
// paths. What waited in a node that was forgotten waits no more.
func (h *history) migrated(e *checkpoint.Entry, m *checkpoint.Migration) {
	h.over = h.ended()
	defer func() { h.over = false }()
	h.open = slices.DeleteFunc(h.open, func(w *wait) bool {
		path, there := m.Renamed(w.path)
		if w.path = path; !there {
			w.leave(e)
		}
		return !there
	})
	given := h.given
	h.given = nil
	for path, seq := range given {
		if path, there := m.Renamed(path); there {
			keep(&h.given, path, seq)
		}
	}
	for id, path := range h.asked {
		h.asked[id], _ = m.Renamed(path)
	}
	for id, g := range h.gated {
		g.path, _ = m.Renamed(g.path)
		h.gated[id] = g
	}
}
