package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
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
	e := m.effects[path][key]
	switch {
	case e == nil && m.find(path) == nil:
		return "there is no such visit"
	case e == nil:
		return "it has not begun"
	case e.state == effectEnded || e.state == effectLost:
		return "it has happened, and the log knows"
	case e.state == effectNotDone:
		return "it did not happen, and the log knows"
	}
	if m.find(path) == nil {
		return "the frame around its visit has ended"
	}
	return ""
}

// acceptsResolution says why a resolution can't be that of an effect whose output is of the
// type want.
func acceptsResolution(want json.RawMessage, s checkpoint.Resolution) error {
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
	return is.Accepts(s.Happened)
}

// resolution is the entry that ends the doubt. post is the id of the one that it drains.
func (m *machine) resolution(path, key, by, post string, s checkpoint.Resolution) checkpoint.Entry {
	end := checkpoint.EndedEffect{Output: s.Happened, NotDone: s.NotHappened, Resolved: true, By: by}
	t := m.find(path)
	if p := t.doubt(key); p != nil {
		end.Interrupt = p.id
	}
	return checkpoint.Entry{
		Kind: checkpoint.EffectEnded, Path: path, Step: t.frame.step, ID: key, Post: post, Data: encode(end),
	}
}

// doubt is the interrupt in which the visit waits to be told what came of an effect.
func (t *task) doubt(key string) *pending {
	if t.odd == nil {
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

// open reports whether the visit may still run. If it may not, what it did about a doubt is
// what counts.
func (t *task) open() bool {
	switch t.phase {
	case ready, delayed, held, asking, failing:
		return true
	}
	return false
}
