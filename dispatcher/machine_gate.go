package dispatcher

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A grant is what a person has decided about an effect that has not begun since. An approval
// is spent by the entry with which the effect begins; a rejection holds until the visit has
// failed and the run is resumed. Both end when the visit is voided.
type grant struct {
	ID       string          `json:"id"`       // of the interrupt
	Question json.RawMessage `json:"question"` // an Action: what was approved or rejected
	Rejected bool            `json:"rejected,omitempty"`
	By       string          `json:"by,omitempty"`     // who decided, if somebody has said so
	Reason   string          `json:"reason,omitempty"` // and why
}

// grant keeps what was decided about an effect. With the last answer that it waits for the
// visit may run again.
func (m *machine) grant(p *pending, v Verdict, a checkpoint.Answer) {
	delete(m.waits, p.id)
	t := p.t
	o := t.rare()
	o.entered = true
	if o.grants == nil {
		o.grants = map[string]grant{}
	}
	o.grants[p.key] = grant{ID: p.id, Question: p.ask.Question, Rejected: v == Reject, By: a.By, Reason: a.Reason}
	o.asks = slices.DeleteFunc(o.asks, func(q *pending) bool { return q == p })
	if len(o.asks) == 0 {
		t.phase = ready
		m.offer(t)
	}
}

// spend takes the approval under which an effect begins. One that was begun under it, and is
// not known to have ended, goes on under it.
func (t *task) spend(key, approval string, was *effect) error {
	if approval == "" || was != nil && was.state == effectBegun && was.approval == approval {
		return nil
	}
	if t.odd != nil && t.odd.revoked[key].ID == approval && !t.odd.revoked[key].Rejected {
		return nil
	}
	if t.odd == nil || t.odd.grants[key].ID != approval || t.odd.grants[key].Rejected {
		return fmt.Errorf("effect %q of visit %q begins under the approval %q, which it does not have", key, t.path(), approval)
	}
	delete(t.odd.grants, key)
	return nil
}

// lapse ends what was approved, by Gates, of a visit that was done or has failed for good: if
// it runs again it needs another approval.
func (o *odd) lapse() {
	if o == nil {
		return
	}
	o.approved = slices.DeleteFunc(slices.Clone(o.approved), func(a approval) bool { return a.By == byGate })
	if len(o.approved) == 0 {
		o.approved = nil
	}
}

// revoke ends what was decided about the effects of a visit that is voided. A live machine may
// hear of an effect that has spent an approval only behind that; in the log it stands before it.
func (m *machine) revoke(o *odd) {
	if !m.replaying {
		o.revoked = o.grants
	}
	o.grants = nil
}

// reconsider has a person asked again about the effects that were rejected.
func (o *odd) reconsider() {
	maps.DeleteFunc(o.grants, func(_ string, g grant) bool { return g.Rejected })
}

// freezeGrants returns what a snapshot holds of the grants.
func (o *odd) freezeGrants() map[string]grant {
	if len(o.grants) == 0 {
		return nil
	}
	return o.grants
}
