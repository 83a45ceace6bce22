package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/state"
)

// void takes back what visits of an open superstep did. They run again after a resume, unless a
// frame of items has stopped before them: also between the decision to void one and the entry.
func (m *machine) void(x *fact) error {
	var paths []string
	if err := json.Unmarshal(x.Data, &paths); err != nil {
		return err
	}
	for _, path := range paths {
		t := m.find(path)
		if t == nil || !t.ended() {
			return fmt.Errorf("visit %q has nothing that could be voided", path)
		}
		m.takeBack(t)
	}
	return nil
}

// A voided is a visit that was voided: checkpoints inside it, of that turn and told before, lead to
// nothing.
type voided struct {
	Path    string `json:"path"`
	Turn    int    `json:"turn"`
	Renames int    `json:"renames,omitempty"` // how many had led there: the path is by them
}

// takeBack takes back what one visit did. If it is at work on a frame that it holds, that is
// gone; if it has ended, its superstep waits for it again.
//
// What is voided begins anew, and so do its approvals: whoever has approved or rejected it, or
// an effect of it that has not begun since, has decided about what does not count any more, and
// is asked again. What stays is what it has learned from outside: its effects that have begun,
// the answers to its questions, and that an interrupt before it was taken.
func (m *machine) takeBack(t *task) {
	m.voids = append(slices.Clip(m.voids), voided{t.path(), m.turn, len(m.renames)}) // snapshots and hindsights hold the one before
	was := t.phase
	if was == failing {
		t.frame.failing--
	}
	if t.odd != nil {
		t.odd.failure, t.odd.budget, t.odd.collected = nil, t.odd.attempts, nil
		t.odd.unfollowed = false
		t.odd.approved = nil
		m.revoke(t.odd)
	}
	m.drop(t)
	m.independ(t.path())
	t.phase, t.outcome = ready, ""
	t.frame.put(t, state.Delta{})
	if was == inside {
		return
	}
	t.frame.left++
	m.revive(t.frame)
}

// revive lets the visit that holds f go on, if it had failed because f had: something in f
// runs again. It will fail again, and so on up.
func (m *machine) revive(f *frame) {
	for t := f.holder; t != nil && t.phase == failing && t.inner == f; t = f.holder {
		f = t.frame
		t.phase, t.odd.failure, t.odd.unfollowed = inside, nil, false
		f.failing--
		f.left++
		if t.isItem() {
			f.refind()
		}
	}
}
