package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// An effect is in doubt from its begin to its end, unless it may be done again. What ends the
// doubt is one entry, EffectEnded with Resolved: it is about the effect, whoever waits for it.

// inDoubt reports whether nobody knows what came of an effect of the visit, which may be nil,
// and it is not done again. Of one that was begun as replayable this may still be so, if its
// node has said otherwise since: then the visit waits.
func (e *effect) inDoubt(t *task, key string) bool {
	return e.state == effectBegun && (!e.Replayable || t != nil && t.doubt(key) != nil)
}

// doubted reports whether p is a wait to be told what came of an effect that has begun. A live
// machine may hear of the effect after the interrupt, which stands behind it in the log.
func (m *machine) doubted(x *fact, p *pending) bool {
	e := m.effects[x.Path][p.key]
	return p.kind == kindDoubt && (x.live || e != nil && e.state == effectBegun)
}

// resolvable says why it can't be said what came of an effect, "" if it can. It can of one that
// is replayable as well: then it is not done again, or anew.
func (m *machine) resolvable(path, key string) string {
	e, t := m.effects[path][key], m.find(path)
	switch {
	case e == nil && t == nil:
		return "no such visit is open"
	case e == nil && t.phase == skipped:
		return "its visit was skipped"
	case e == nil && (t.phase == finished || t.phase == lapsed || t.phase.settled()):
		return "its visit has ended, and what that did about the effect is what counts"
	case e == nil:
		return "it has not begun"
	case e.state == effectEnded:
		return "it has happened, and the log knows"
	case e.state == effectLost:
		return "it has happened, and what it returned could not be kept, nor be said now: handle dag.ErrOutputLost in its node, or go back before it with Rewind or Fork"
	case e.state == effectNotDone:
		return "it did not happen, and the log knows"
	}
	if t == nil && !m.meets(path) {
		return "the frame around its visit has ended"
	}
	return ""
}

// acceptsResolution says why a resolution can't be that of an effect whose output is of the
// type want.
func acceptsResolution(want json.RawMessage, s checkpoint.Resolution) error {
	return checkResolution(want, s, state.Type.Accepts)
}

// decodesResolution looks more closely at what is said now.
func decodesResolution(want json.RawMessage, s checkpoint.Resolution) error {
	return checkResolution(want, s, state.Type.Decodes)
}

func checkResolution(want json.RawMessage, s checkpoint.Resolution, look func(state.Type, []byte) error) error {
	switch {
	case len(s.Happened) == 0 && s.NotHappened == "":
		return fmt.Errorf("it says neither that the effect happened nor why it did not")
	case len(s.Happened) > 0 && s.NotHappened != "":
		return fmt.Errorf("it says both, that the effect happened and that it did not")
	case s.NotHappened != "":
		return nil
	}
	var is state.Type
	if err := json.Unmarshal(want, &is); err != nil {
		return err
	}
	return look(is, s.Happened)
}

// resolution is the entry that ends the doubt. post is the id of the one that it drains.
func (m *machine) resolution(path, key, by, post string, s checkpoint.Resolution) checkpoint.Entry {
	end := checkpoint.EndedEffect{Output: s.Happened, NotDone: s.NotHappened, Resolved: true, By: by}
	e := checkpoint.Entry{Kind: checkpoint.EffectEnded, Path: path, ID: key, Post: post}
	t := m.find(path)
	if t != nil { // else a frame around it was voided, and begins anew
		e.Step = t.frame.step
	}
	if p := t.doubt(key); p != nil {
		end.Interrupt = p.id
	}
	e.Data = encodeEnded(&end)
	return e
}

// A visit may have failed in which an effect is in doubt that lets nobody but a person go on
// (dag.DoubtFails). Then its failure edge is not taken, and neither is that of a frame around it:
// whatever followed would have to guess whether the effect happened. They fail as if nobody
// followed, the run rests Failed, and once somebody has said what happened, a resume runs the
// visit again. The entry says so, since what the effect declares is known to the program alone.

// caught reports whether a failure of the frame that the visit holds is somebody's to follow.
func (t *task) caught() bool {
	return t.node.FailureFollowed && (t.odd == nil || !t.odd.unfollowed) && (t.inner == nil || !t.inner.doubtful())
}

// doubtful reports whether a visit in f, at any depth, has failed whose failure edge is not taken.
func (f *frame) doubtful() bool {
	for _, i := range f.open {
		t := &f.tasks[i]
		if t.phase == failing && t.odd.unfollowed || t.phase == inside && t.inner.doubtful() {
			return true
		}
	}
	return false
}

// doubt is the interrupt in which the visit, which may be nil, waits to be told what came of an
// effect.
func (t *task) doubt(key string) *pending {
	if t == nil || t.odd == nil {
		return nil
	}
	for _, p := range t.odd.asks {
		if p.kind == kindDoubt && p.key == key {
			return p
		}
	}
	return nil
}

// resolved ends the interrupt in which the visit waits for an effect that was in doubt. With
// the last one it may run again.
func (m *machine) resolved(t *task, key string) {
	p := t.doubt(key)
	if p == nil {
		return
	}
	delete(m.waits, p.id)
	o := t.odd
	o.entered = true
	o.asks = slices.DeleteFunc(o.asks, func(q *pending) bool { return q == p })
	if len(o.asks) == 0 {
		t.phase = ready
		m.offer(t)
	}
}

// meets reports whether the visit of a path may still run, now or once more, and meet an effect
// that it has left in doubt. If it may not, what it did about the doubt is what counts. A visit
// that is not there may run if what holds it begins anew, or another iteration may come to it.
func (m *machine) meets(path string) bool { return m.reaches(path, (*task).caught) }

// reaches is meets, if failures of frames are somebody's to follow as catches says.
func (m *machine) reaches(path string, catches func(*task) bool) bool {
	caught := false
	for f := m.root; f != nil; {
		name, rest, inside := strings.Cut(path, "/")
		t := m.task(f, name)
		switch {
		case t == nil || !t.unsettled(caught):
			return false
		case !inside || t.inner == nil:
			return true
		}
		caught, path, f = caught || catches(t), rest, t.inner
		if t.node.Kind != dag.KindLoop {
			continue
		}
		number, rest, _ := strings.Cut(path, "/")
		if n, err := strconv.Atoi(number); err != nil || n != f.iteration {
			return err == nil && n > f.iteration && (!caught || f.failing == 0)
		}
		path = rest
	}
	return false
}

// unsettled reports whether the visit may still run, or is at work on a frame. One that has
// failed runs again when the run is resumed, unless a frame around it is to fail because of it,
// and somebody follows that: caught.
func (t *task) unsettled(caught bool) bool {
	switch t.phase {
	case idle:
		return !caught || t.frame.failing == 0
	case ready, delayed, held, asking, inside:
		return !caught || !t.frame.stopped() || !t.unbegun()
	case failing:
		return !caught
	}
	return false
}

// unfollowed reports whether an answer fails a visit whose failure edge is not taken.
func (m *machine) unfollowed(p *pending, answer json.RawMessage) bool {
	if p.kind != kindBefore || !m.leavesInDoubt(p.t) {
		return false
	}
	var v Verdict
	return json.Unmarshal(answer, &v) == nil && v == Reject
}

// leftInDoubt reports whether an effect of a visit was begun by an earlier attempt, is in doubt,
// and is not for the node to decide: as long as nobody has said what came of it, a failure of the
// visit is not followed, however it comes about.
func (m *machine) leftInDoubt(path string) bool {
	for _, e := range m.effects[path] {
		if e.state == effectBegun && !e.Replayable && e.Doubt != "" {
			return true
		}
	}
	return false
}

// leavesInDoubt reports the same of a visit, or of one inside it that begins anew, since a frame
// around it was voided, and may yet meet the effect.
func (m *machine) leavesInDoubt(t *task) bool {
	path := t.path()
	if m.leftInDoubt(path) {
		return true
	}
	if !holds(t.node) || len(m.voids) == 0 {
		return false
	}
	for other := range m.effects {
		if strings.HasPrefix(other, path+"/") && m.leftInDoubt(other) && m.reaches(other, func(*task) bool { return false }) {
			return true
		}
	}
	return false
}
