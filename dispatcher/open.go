package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// An Opened tells of a run that was looked at and not touched: where it stands, what it waits for,
// and how far the effects of its open superstep are. See Dispatcher.Open.
type Opened struct {
	Run    string
	Status checkpoint.Status
	// Owner is who is at work on the run. It is "" if nobody is: the run rests, or somebody took
	// the lease only to say something of it.
	Owner      string
	Turn       int // counted from 1
	Cursor     checkpoint.Cursor
	Interrupts []Interrupt
	// Messages are the ids under which answers were given (see [Message]), sorted as text.
	Messages []string
	// Effects are those of the visits of the open superstep of the run's own frame, and of all
	// frames inside it. They are in the order in which they began; those that have not begun come
	// last.
	Effects []OpenEffect
}

// InDoubt lists the effects of which nobody knows whether they happened.
func (o *Opened) InDoubt() []OpenEffect {
	if o == nil { // beside an error
		return nil
	}
	var doubts []OpenEffect
	for _, e := range o.Effects {
		if e.InDoubt {
			doubts = append(doubts, e)
		}
	}
	return doubts
}

// An EffectPhase says how far an effect is.
type EffectPhase string

// The phases of effects.
const (
	PhaseNotBegun EffectPhase = "not begun"           // a person has rejected it
	PhaseAwaiting EffectPhase = "awaiting approval"   // a person is asked whether it may begin
	PhaseApproved EffectPhase = "approved, not begun" // it may begin once
	PhaseBegun    EffectPhase = "begun"               // in doubt, or done again if it is replayable
	PhaseEnded    EffectPhase = "ended"               // its output is kept
	PhaseNotDone  EffectPhase = "not done"            // it did not happen
	PhaseLost     EffectPhase = "lost"                // it happened, and its output can't be kept
)

var effectPhases = [...]EffectPhase{
	effectBegun: PhaseBegun, effectEnded: PhaseEnded, effectNotDone: PhaseNotDone, effectLost: PhaseLost,
}

// An OpenEffect is what is known of an effect.
type OpenEffect struct {
	Path  string // of the visit
	Key   string // as given to dag.Effect
	ID    string // the idempotency key that the other side was given
	Phase EffectPhase
	// InDoubt says that nobody knows whether the effect happened. It is not done again by itself.
	InDoubt bool
	Advice  string // what to do about it
	// Declared is what the node says of it.
	Declared checkpoint.DeclaredEffect
	Attempt  int             // of the visit, in which it began the last time
	Digest   string          // of Input
	Input    json.RawMessage // nil if the log does not have it any more
	Want     state.Type      // of its output
	Output   json.RawMessage // of an effect that has ended
	Why      string          // it is not done, or lost; or was approved or rejected, if somebody said why
	Begun    time.Time       // the last time
	Took     time.Duration   // of an effect that has ended
	// Resolved says that the effect was in doubt and somebody has said what happened: By, if that
	// is known.
	Resolved bool
	By       string
	// Interrupt is the id of the interrupt in which the visit waits to be told what happened, or
	// for an approval; "" if it does not wait.
	Interrupt string
}

// String tells the effect on one line: pay#charge (stripe.charge) is begun.
func (e OpenEffect) String() string {
	name := e.Path + "#" + e.Key
	if e.Declared.Operation != "" {
		name += " (" + e.Declared.Operation + ")"
	}
	text := fmt.Sprintf("%s is %s", name, e.Phase)
	if e.Phase == PhaseEnded {
		text = name + " has ended"
	}
	if e.InDoubt {
		text += ", in doubt"
	}
	if e.By != "" {
		text += ", says " + e.By
	}
	if e.Why != "" && (e.Phase == PhaseApproved || e.Phase == PhaseNotBegun) {
		text += ": " + e.Why
	}
	return text
}

// open is Open.
func (c *core) open(ctx context.Context, id string) (o *Opened, err error) {
	if err := c.exists(ctx, id); err != nil {
		return nil, err
	}
	err = c.steadily(ctx, id, func(info *checkpoint.Info) error {
		if o, err = c.opened(ctx, info); err == nil {
			err = c.remains(ctx, info)
		}
		return err
	})
	if err != nil {
		return nil, c.refuse(id, err)
	}
	return o, nil
}

// opened is what Open tells of a run that is known.
func (c *core) opened(ctx context.Context, info *checkpoint.Info) (*Opened, error) {
	id := info.Run
	given := &inputs{run: id, by: map[string]json.RawMessage{}}
	m, from, err := c.loadFrom(ctx, info, 0, given.hear)
	if err != nil {
		return nil, err
	}
	o := &Opened{
		Run: id, Status: m.status, Owner: worker(info, m.status), Turn: m.turn, Effects: m.openEffects(id),
		Cursor:     checkpoint.Cursor{Run: id, Seq: info.Head.Seq, Visits: m.cursor()},
		Interrupts: interruptsOf(m.pendings()), Messages: m.given(),
	}
	if err := c.fillInputs(ctx, info, given, from, o.Effects); err != nil {
		return nil, err
	}
	for i := range o.Effects {
		o.Effects[i].Advice = o.Effects[i].advice(m, o.Owner != "")
	}
	return o, nil
}

// worker is who is at work on a run, "" if nobody is: who has come to rest with it, or only says
// something of it, has the lease for another moment.
func worker(info *checkpoint.Info, s checkpoint.Status) string {
	if s.Resting() || s == checkpoint.StatusCompleted || checkpoint.Amends(info.Owner) {
		return ""
	}
	return info.Owner
}

// given are the ids under which the run has taken answers.
func (m *machine) given() (all []string) {
	for id := range m.seen {
		if message, ok := strings.CutPrefix(id, givenPrefix); ok {
			all = append(all, message)
		}
	}
	slices.Sort(all)
	return all
}

// inputs are what effects of the open superstep were given, by its digest.
type inputs struct {
	run     string
	by      map[string]json.RawMessage
	cleared uint64 // the entry up to which they were forgotten: a rewind may go back before it
}

func (n *inputs) hear(e *checkpoint.Entry) error {
	if e.Kind == checkpoint.Superstep && e.Path == "" {
		clear(n.by) // its effects go
		n.cleared = e.Seq
	}
	if e.Kind != checkpoint.EffectBegun {
		return nil
	}
	var b checkpoint.BegunEffect
	if err := json.Unmarshal(e.Data, &b); err != nil {
		return &checkpoint.CorruptError{Run: n.run, Seq: e.Seq, Reason: err.Error()}
	}
	n.by[b.Digest] = slices.Clone(b.Input)
	return nil
}

// fillInputs adds what effects were given that have ended: the machine keeps that of those alone
// that have not. What the call has heard of is given; what is not there lies before the
// snapshot with which it began, at an entry, or before what was forgotten, and is looked for from
// there back. What was trimmed is gone.
func (c *core) fillInputs(ctx context.Context, info *checkpoint.Info, given *inputs, from uint64, all []OpenEffect) error {
	missing := func() bool {
		return slices.ContainsFunc(all, func(e OpenEffect) bool { return e.Input == nil && e.Digest != "" && given.by[e.Digest] == nil })
	}
	if missing() {
		err := c.backward(ctx, info, max(from, given.cleared), func(e *checkpoint.Entry) (bool, error) {
			if e.Kind != checkpoint.EffectBegun {
				return missing(), nil
			}
			err := given.hear(e)
			return missing(), err
		})
		if err != nil {
			return err
		}
	}
	for i := range all {
		if all[i].Input == nil {
			all[i].Input = slices.Clone(given.by[all[i].Digest])
		}
	}
	return nil
}
