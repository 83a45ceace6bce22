package continuation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Trigger is what somebody says to end a wait. It names the wait by its id; or by its key, of
// whatever run; or by its run alone, if exactly one wait of that takes its kind. One that has its
// trigger takes no other one.
type Trigger struct {
	// ID tells triggers apart: one that is repeated, however late, has the outcome of the first.
	// With the id of a trigger of another wait it is refused with a [*MismatchError]. A trigger
	// that says Run is compared with the triggers of that run alone. A run that is deleted takes
	// with it what it knew of triggers. Of a trigger that lies before a trim a run tells only that
	// it took it and that its wait has ended: the Receipt is then what the repeated one says,
	// without Wait, At and Seq.
	ID   string `json:"id"`
	Wait string `json:"wait,omitempty"` // id of the wait, or of one of its interrupts
	Run  string `json:"run,omitempty"`  // id
	Kind Kind   `json:"kind"`
	Key  string `json:"key,omitempty"`
	// Actor is who pulls it. An authority is dag.Human, dag.Agent or dag.System.
	Actor Actor `json:"actor"`
	// At is when it was pulled, as its sender says. It is kept, and decides nothing.
	At time.Time `json:"at,omitzero"`
	// Decision is that of an approval, and of nothing else. Reason is why.
	Decision Decision `json:"decision,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	// Payload is what the node gets: JSON that fits what it wants. None is its zero value.
	Payload json.RawMessage `json:"payload,omitempty"`
	// LeaveIt: Trigger does not go on with the run; [Runtime.Recover] does, or whoever runs it.
	// There is one exception: if the wait has come to its instant before, or is to be asked once
	// more, Trigger goes on with the run for that all the same, or waits until whoever is at work
	// on it has.
	LeaveIt bool `json:"-"`
}

// An Outcome is what came of a trigger that was accepted. The [Receipt] is the same whenever the
// trigger is repeated. If the log was trimmed of the wait by then, as by
// dispatcher.Options.Retention, the status is derived from the run: how it has ended, or that it
// has gone on.
type Outcome struct {
	Receipt
	Status    Status `json:"status"` // of the wait when Trigger returned
	EndReason Reason `json:"endReason,omitempty"`
}

// Trigger ends a wait and goes on with its run. The trigger is accepted when the answer of the
// interrupt is durable: of several exactly one. Trigger returns when the run rests again, whoever
// goes on with it: so a node can't wait for a trigger at its own run, but with LeaveIt. A trigger
// that is repeated returns as soon as its wait has ended. If ctx ends before, a run that Trigger
// goes on with is left as by dispatcher.ErrDrain, for Recover; what came of the trigger is read
// behind that, for ten seconds at most if the store does not answer.
//
// These are checked, in this order, and a refusal changes nothing:
//
//   - that the wait exists ([*NotFoundError]), has not ended ([*TerminalError]) and not expired
//     ([*ExpiredError]: if nobody has yet, Trigger has it expire);
//   - that it is for this kind and key ([*MismatchError]), and for the actor's authority
//     ([*AuthorityError]);
//   - that it may be resumed once more ([*AttemptsError]);
//   - that no other trigger was faster ([*TakenError]);
//   - that the payload is what the node wants ([*PayloadError]).
//
// An error beside an Outcome is of going on: the trigger was accepted. After an error of the store
// the same trigger can be repeated.
//
// Some triggers do something else:
//
//   - A denial that its wait does not feed to the node cancels the run.
//   - A trigger for a timer whose instant has come has it wake, once, however often and to how many
//     Runtimes it was sent. That is the instant's doing, and the Receipt has no trigger.
//   - A trigger that comes while whoever has the run writes its end can't be taken back: it is
//     accepted, of a wait that has ended so, and counts if the run is brought back.
//   - If the frame of the wait was voided, or the wait has expired and is to be asked once more,
//     Trigger has the run ask again, or waits for that until ctx ends if somebody else is at work
//     on the run: so not from a node of it. What is asked then takes the trigger if it is the same.
//     If it is something else the wait is superseded, and the trigger refused with a
//     [*TerminalError], also one that names the run alone.
//
// It costs what [Runtime.List] does, of one run if Run is given. A trigger by Key alone is refused
// while a run can't be read, for which it may be meant.
func (r *Runtime) Trigger(ctx context.Context, t Trigger) (Outcome, error) {
	if err := t.check(); err != nil {
		return Outcome{}, err
	}
	var w *wait                               // that it is for
	var give func() (settled bool, err error) // has it end that; not nil once it was posted, which nobody takes back
	for tries := 0; ; tries++ {
		all, err := r.scan(ctx, Filter{Run: t.Run})
		if err != nil && (t.Wait == "" || all.byID(t.Wait) == nil) { // it may be for a run that can't be read
			return Outcome{}, err
		}
		if w, a := all.pulled(t.ID); w != nil {
			return r.accepted(ctx, w, a, &t, give != nil)
		}
		if h := all.took(t.ID); h != nil {
			return h.past(&t), nil
		}
		if give == nil {
			if w, err = all.meant(&t, w); err != nil {
				return Outcome{}, err
			}
			if out, fired, err := r.fire(ctx, w, &t); fired || err != nil {
				return out, err
			}
			if give, err = r.pull(ctx, w, &t); err != nil {
				return Outcome{}, err
			}
		} else if now := all.byID(w.id); now != nil {
			w = now
		}
		settled := false
		if give != nil {
			if settled, err = give(); err != nil {
				return Outcome{}, err
			}
		}
		if settled { // and in the log, or whoever has the run is to write it: if that comes to its end without, give does
			err = r.await(ctx, w.h.info, time.Duration(tries)*5*time.Millisecond)
		} else {
			give, err = nil, r.stuck(ctx, w, tries)
		}
		if err != nil {
			return Outcome{}, err
		}
	}
}

// check refuses what can't be a trigger.
func (t *Trigger) check() error {
	bad := func(reason string) error { return &ArgumentError{"the trigger", reason} }
	for _, x := range []text{
		{"an id", t.ID, maxID}, {"a key", t.Key, maxID}, {"an actor with an id", t.Actor.ID, maxActor},
	} {
		if problem := x.problem(); problem != "" {
			return bad("has " + problem)
		}
	}
	reason := text{"a reason", t.Reason, maxReason}
	switch {
	case t.ID == "":
		return bad("has no id: give it one, the same when it is repeated")
	case reason.unsound() != "":
		return bad("has " + reason.unsound())
	case !state.Sayable(t.At):
		return bad("was pulled in a year that JSON can't say")
	case t.Wait == "" && t.Run == "" && t.Key == "":
		return bad("is for nothing: give it Wait, Key or Run")
	case !slices.Contains([]Kind{KindReply, KindApproval, KindExternal, KindTimer}, t.Kind):
		return bad(fmt.Sprintf("is of the kind %q, which there is not", t.Kind))
	case !slices.Contains([]dag.Authority{dag.Human, dag.Agent, dag.System}, t.Actor.Authority):
		return bad(fmt.Sprintf("has an actor with the authority %q, which there is not", t.Actor.Authority))
	case (t.Kind == KindApproval) != (t.Decision == Approved || t.Decision == Denied):
		return bad(fmt.Sprintf("has the decision %q: an approval has %q or %q, and nothing else has one", t.Decision, Approved, Denied))
	case len(t.Payload) > 0 && !json.Valid(t.Payload):
		return bad("has a payload that is no JSON")
	}
	return nil
}

// pulled finds the wait that a trigger was accepted for.
func (hs histories) pulled(trigger string) (*wait, *ask) {
	for _, h := range hs {
		for _, w := range h.waits {
			if a, ok := w.pulled(trigger); ok {
				return w, a
			}
		}
	}
	return nil, nil
}

// message is the id under which a run takes a trigger: it is kept when what the log says of the
// trigger is trimmed.
func message(trigger string) string {
	sum := sha256.Sum256([]byte(trigger))
	return "trigger:" + hex.EncodeToString(sum[:16])
}

// took finds the run that has taken a trigger of which its log does not tell any more.
func (hs histories) took(trigger string) *history {
	id := message(trigger)
	for _, h := range hs {
		if _, ok := slices.BinarySearch(h.took, id); ok {
			return h
		}
	}
	return nil
}

// past is what is known of a trigger that a run took before its log was trimmed: its wait has
// ended.
func (h *history) past(t *Trigger) Outcome {
	out := Outcome{
		Receipt{Run: h.run, Trigger: t.ID, Kind: t.Kind, Key: t.Key, Actor: t.Actor, Decision: t.Decision, Reason: t.Reason},
		StatusResolved, Completed,
	}
	if t.Decision == Denied && h.over && h.end.kind == checkpoint.Cancelled {
		out.Status, out.EndReason = StatusCancelled, ApprovalDenied
	}
	return out
}

// accepted goes on with the run of a trigger that was accepted, by this call or by another one, and
// tells what came of it.
func (r *Runtime) accepted(ctx context.Context, w *wait, a *ask, t *Trigger, mine bool) (Outcome, error) {
	was := &a.letter
	same := was.Trigger.Kind == t.Kind && was.Trigger.Actor == t.Actor && was.Trigger.Decision == t.Decision &&
		(t.Key == "" || t.Key == was.Trigger.Key) && bytes.Equal(value(was.Payload), value(t.Payload))
	if !same || t.Wait != "" && (histories{w.h}).byID(t.Wait) != w { // else it would seem to have ended a wait that goes on
		return Outcome{}, &MismatchError{w.id, w.h.run, fmt.Sprintf("the id %q is that of another trigger: give each its own", t.ID)}
	}
	defer r.stir() // now the run is at work, and what it waits for next is in no log
	how := ifWanted
	if t.LeaveIt {
		how = onlyDenial
	}
	went := r.resume(ctx, w.h.run, how)
	if status, _, _, _ := w.stands(); went == nil && !t.LeaveIt && (mine || !status.Terminal()) {
		went = r.rests(ctx, w.h.run)
	}
	told, stop := outliving(ctx, noting) // it was accepted, whoever has ended ctx since
	defer stop()
	h, err := r.history(told, w.h.run)
	if err != nil {
		return Outcome{}, errors.Join(err, went)
	}
	receipt := w.receipt(a)
	if now, _ := w.since(h); now != nil {
		w = now
	}
	status, reason, _, _ := w.stands()
	return Outcome{receipt, status, reason}, went
}

// rests returns when nobody is at work on a run, be it this Runtime or somebody else. If whoever
// was has died it goes on with the run.
func (r *Runtime) rests(ctx context.Context, run string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		info, err := r.store.Stat(ctx, run)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("continuation: run %q is at work elsewhere: %w", run, context.Cause(ctx))
		case err != nil:
			return fmt.Errorf("continuation: %w", err)
		case info.Status != checkpoint.StatusRunning:
			return nil
		case info.Owner == "":
			return r.goOn(ctx, run)
		}
		if err := r.await(ctx, info, pause); err != nil {
			return fmt.Errorf("continuation: run %q is at work elsewhere: %w", run, err)
		}
	}
}

// value is a payload in a form that is the same, however it is written: members sorted, and no
// escapes that JSON does not need. None is null.
func value(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if len(raw) > 0 && d.Decode(&v) != nil {
		return raw
	}
	same, _ := json.Marshal(v) // of what was decoded
	return same
}

// pull returns what has the trigger end the wait, nil if the log has to be read again.
func (r *Runtime) pull(ctx context.Context, w *wait, t *Trigger) (give func() (settled bool, err error), err error) {
	of, err := r.admits(w, t)
	a := w.last()
	var expired *ExpiredError
	if errors.As(err, &expired) && r.overdue(a) {
		return nil, r.expired(ctx, w, expired)
	}
	if err != nil {
		return nil, err
	}
	if a.ended || a.gone || w.h.end != nil { // it is to be asked once more before, or another one that brings the run back
		how := ifWanted
		if a.gone {
			how = ifPosted
		}
		if err := r.resume(ctx, w.h.run, how); err != nil {
			return nil, err
		}
		return nil, r.early(ctx, w)
	}
	l := letter{taken{ID: t.ID, Kind: t.Kind, Key: w.key(*of), Actor: t.Actor, Decision: t.Decision, Reason: t.Reason, Feeds: of.Feeds}, t.Payload}
	l.Trigger.Of = whose{w.id, w.path, w.name, a.q.MaxFailures, a.about(), a.q.Attempt}
	if !t.At.IsZero() {
		l.Trigger.At = t.At.UTC().Round(0)
	}
	return func() (bool, error) { return r.give(ctx, w, &l) }, nil
}

// give gives the trigger to the wait, once, however often it is called. It reports false if
// something else was faster.
func (r *Runtime) give(ctx context.Context, w *wait, l *letter) (settled bool, err error) {
	t, a := &l.Trigger, w.last()
	options := []dispatcher.RunOption{dispatcher.Message(message(t.ID))}
	if t.Actor.ID != "" {
		options = append(options, dispatcher.Author(t.Actor.ID))
	}
	err = r.d.Answer(ctx, w.h.run, a.id, l, options...)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, dag.ErrExpired):
		return false, r.expired(ctx, w, &ExpiredError{Wait: w.id, Run: w.h.run, Until: a.until})
	case errors.Is(err, dispatcher.ErrAnswerType), tooLarge(err):
		return false, r.misfit(ctx, w, l.Payload, err)
	case errors.Is(err, dispatcher.ErrNotAwaited):
		return false, nil
	case errors.Is(err, dispatcher.ErrNotFound): // it was there a moment before
		return false, &NotFoundError{Run: w.h.run}
	}
	return false, err
}

// misfit is the refusal of a payload in its own terms: what the node gets it in is not the
// caller's.
func (r *Runtime) misfit(ctx context.Context, w *wait, payload json.RawMessage, err error) error {
	refused := &PayloadError{w.id, w.h.run, err}
	var limit *dispatcher.LimitError
	if errors.As(err, &limit) {
		refused.Err = limit
		return refused
	}
	o, oerr := r.d.Open(ctx, w.h.run)
	if oerr != nil {
		return refused
	}
	for _, i := range o.Interrupts {
		k := slices.IndexFunc(i.Want.Fields, func(f state.Field) bool { return f.Name == "payload" })
		if i.ID != w.last().id || k < 0 {
			continue
		}
		if err := i.Want.Fields[k].Type.Accepts(payload); err != nil {
			refused.Err = err
		}
	}
	return refused
}

// expired has a wait expire of which the instant has come, if nobody has yet.
func (r *Runtime) expired(ctx context.Context, w *wait, late *ExpiredError) error {
	if err := r.goOn(ctx, w.h.run); err != nil {
		return err
	}
	h, err := r.history(ctx, w.h.run)
	if err != nil {
		return err
	}
	if now := (histories{h}).byID(w.id); now != nil && now.last().id != w.last().id && !now.last().ended {
		return nil // it was asked again: of somebody else, or once more
	}
	now, dropped := w.since(h)
	if now != nil && now.closed != Expired && (dropped || now.last().letter.Trigger.Kind == KindTimer) { // it was not missed, or fires then
		for _, of := range w.last().q.Of {
			if of.Kind == KindTimer {
				late.Kind, late.Key = KindTimer, w.key(of)
			}
		}
	}
	return late
}

// early waits until a wait is asked again that somebody else's work on the run is to come to, and
// refuses a trigger for one that is not asked, though its run was gone on with: one that has
// expired, or was answered for nothing, whose visit runs again when all has ended that it waits for
// beside it; or one whose frame was voided, and the run is not there yet.
func (r *Runtime) early(ctx context.Context, w *wait) error {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := r.history(ctx, w.h.run)
		if err != nil {
			return err
		}
		let := !owned(h.info) || time.Since(began) >= noting // whoever has come to rest lets go of the run, unless something keeps it
		now, rests := (histories{h}).byID(w.id), let && h.info.Status == checkpoint.StatusInterrupted
		switch {
		case now == nil || now.last().id != w.last().id || now.closed != "":
			return nil
		case now.last().gone && rests:
			return &MismatchError{w.id, w.h.run, "what it was asked in has begun anew, and it is asked again if the run comes there"}
		case now.again() && (rests || h.held(now)):
			was := "it has expired"
			if now.last().bare {
				was = "it was answered with what is no trigger of it"
			}
			return &MismatchError{w.id, w.h.run, was + ", and it is asked again when all that its visit waits for beside it has ended"}
		case !now.last().gone && !now.again() || !owned(h.info):
			return nil
		}
		select { // not as the log grows: a run at work may write a thousand times before it comes there, and each time all is read
		case <-ctx.Done():
			return fmt.Errorf("continuation: run %q is at work elsewhere, and wait %s is not asked again yet: %w", w.h.run, w.id, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// fire has a timer wake whose instant has come, if that is what a trigger asks for.
func (r *Runtime) fire(ctx context.Context, w *wait, t *Trigger) (out Outcome, fired bool, err error) {
	if a := w.last(); t.Kind != KindTimer || !w.expects(KindTimer, t.Key) || !w.pends() || !r.overdue(a) {
		return Outcome{}, false, nil
	}
	if err := r.goOn(ctx, w.h.run); err != nil {
		return Outcome{}, false, err
	}
	h, err := r.history(ctx, w.h.run)
	if err != nil {
		return Outcome{}, false, err
	}
	now, dropped := w.since(h)
	if dropped { // nothing asks for it any more
		now = now.woken()
	}
	if now == nil {
		return Outcome{}, false, nil
	}
	if !now.last().ended {
		if owned(h.info) && h.info.Status == checkpoint.StatusRunning { // by another clock, perhaps, it has not come
			err = &MismatchError{w.id, w.h.run, "it is a timer of a run that is at work, and whoever is has it wake"}
		}
		return Outcome{}, false, err
	}
	status, reason, _, _ := now.stands()
	return Outcome{now.receipt(now.last()), status, reason}, true, nil
}

// stuck waits until a log says what a wait was answered with, which somebody else has done: whoever
// works on the run is to write it.
func (r *Runtime) stuck(ctx context.Context, w *wait, tries int) error {
	if tries > 20 {
		return &TakenError{w.id, w.h.run, ""}
	}
	h, err := r.history(ctx, w.h.run)
	if err != nil || h.info.Head != w.h.info.Head {
		return err
	}
	if err := r.resume(ctx, w.h.run, ifPosted); err != nil {
		return err
	}
	return r.await(ctx, h.info, time.Duration(tries)*5*time.Millisecond)
}

// await returns when the log of a run has grown behind a head, or after so long.
func (r *Runtime) await(ctx context.Context, info checkpoint.Info, atMost time.Duration) error {
	var grown <-chan struct{}
	if f, ok := r.store.(checkpoint.Follower); ok {
		var stop func()
		grown, stop = f.Follow(info.Run)
		defer stop()
	}
	if now, err := r.store.Stat(ctx, info.Run); err != nil || now.Head != info.Head || now.Owner != info.Owner {
		return nil // whoever reads the log next finds out
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-grown:
	case <-timer.C:
	}
	return nil
}
