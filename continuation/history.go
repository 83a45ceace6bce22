package continuation

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A history is what the log of one run says of its waits. Nothing else is kept of them anywhere.
//
//	Interrupted    the wait is pending
//	Answered       it has its trigger, or has expired
//	Resumed        somebody goes on with its visit
//	AttemptFailed  that failed; if it is asked again it is pending again
//	Done           it is resolved
//	Waiting        a failure of its visit was followed, or is to be
//	Migrated       its node is called something else, or is no more
//	Cancelled, TimedOut, Failed  the run's end is that of what still waited
//	Noted          how the follow-up was delivered
type history struct {
	run   string
	info  checkpoint.Info
	waits []*wait // in the order in which they were first asked
	open  []*wait // of them: those of this turn, and of this side of the last rewind
	end   *end    // how the run rests, if that is an end; nil if it goes on
	over  bool    // that is an end from which no wait brings it back; told when all is read
	// this turn, or this side of the last rewind, began before the log does: it may have waited for
	// anything
	lost bool
	vain int // how often somebody has gone on with the run since a visit or a superstep of it ended
	// notes are those about the delivery of the last end.
	notes []deliveryNote
	asked map[string]string // by interrupt: the visit that has asked it by other means, and has no answer yet
	// by interrupt: what a visit does behind its waits, and waits for somebody to approve of, or to
	// say what came of it
	gated  map[string]gate
	given  map[string]uint64 // by visit: the entry of the answer that it was given last
	inputs []string          // that were sent: the ids of their posts
	took   []string          // of one that was trimmed: the messages under which it has ever taken triggers
}

// A gate is an effect of a visit that waits for somebody.
type gate struct{ path, key string }

// read takes one entry.
func (h *history) read(e *checkpoint.Entry) error {
	switch e.Kind {
	case checkpoint.Done, checkpoint.Superstep:
		h.vain = 0
	case checkpoint.Resumed:
		h.vain++
	}
	switch e.Kind {
	case checkpoint.Interrupted:
		return h.interrupted(e)
	case checkpoint.Answered:
		return h.answered(e)
	case checkpoint.EffectEnded: // somebody has said what came of it, or it was done
		maps.DeleteFunc(h.gated, func(_ string, g gate) bool { return g == gate{e.Path, e.ID} })
	case checkpoint.Resumed:
		h.resumed()
	case checkpoint.AttemptFailed:
		return h.failed(e)
	case checkpoint.Done:
		h.done(e.Path)
	case checkpoint.Superstep:
		h.settle(e.Path)
	case checkpoint.Waiting: // a run that rests so has no failure that nobody follows
		h.settle("")
	case checkpoint.Voided:
		var paths []string
		if err := json.Unmarshal(e.Data, &paths); err != nil {
			return err
		}
		h.voided(paths)
	case checkpoint.Edited:
		var edit checkpoint.Edit
		if err := json.Unmarshal(e.Data, &edit); err != nil {
			return err
		}
		h.voided(edit.Voids)
	case checkpoint.TurnBegun, checkpoint.Rewound:
		if e.Post != "" {
			h.inputs = append(h.inputs, strings.Clone(e.Post))
		}
		h.leave(e)
	case checkpoint.Migrated:
		var m checkpoint.Migration
		if err := json.Unmarshal(e.Data, &m); err != nil {
			return err
		}
		h.migrated(e, &m)
	case checkpoint.Cancelled, checkpoint.TimedOut, checkpoint.Failed, checkpoint.Completed:
		return h.rested(e)
	case checkpoint.Noted:
		return h.noted(e)
	}
	return nil
}

func (h *history) interrupted(e *checkpoint.Entry) error {
	var i checkpoint.Interrupt
	if err := json.Unmarshal(e.Data, &i); err != nil {
		return err
	}
	q, ok, err := parseQuestion(i.Question)
	if err != nil {
		return err
	}
	for _, w := range h.open {
		if w.path != e.Path {
			continue
		}
		w.tried = false
		switch {
		case !w.taken() || ok && w.name == q.Name:
		case ok || i.Kind == string(dispatcher.KindAsked): // what the visit asked before it has gone on behind
			w.close(Completed, "", "")
		default: // somebody is to approve of what the visit does behind it
			w.working = false
		}
	}
	if !ok {
		h.waitsElse(e.ID, e.Path, dispatcher.InterruptKind(i.Kind), i.Key)
		return nil
	}
	a := &ask{id: strings.Clone(e.ID), q: q, at: e.At, until: i.Until, begun: begun(i.Asked, i.Until, i.Wait)}
	if i.Wait > 0 && !a.begun.IsZero() { // the clock of the entry is the store's
		a.at = a.begun
	}
	k := slices.IndexFunc(h.open, func(w *wait) bool { return w.path == e.Path && w.name == q.Name })
	failures := 0
	if k >= 0 && !h.open[k].last().same(a) {
		failures = h.replace(k, e)
		k = -1
	}
	if k < 0 {
		w := &wait{h: h, id: a.id, path: strings.Clone(e.Path), name: q.Name, asks: []*ask{a}, course: course{failures: failures}}
		h.waits, h.open = append(h.waits, w), append(h.open, w)
		return nil
	}
	h.open[k].asked(a)
	return nil
}

func (h *history) answered(e *checkpoint.Entry) error {
	var answer checkpoint.Answer
	if err := json.Unmarshal(e.Data, &answer); err != nil {
		return err
	}
	delete(h.gated, e.ID)
	path, other := h.asked[e.ID]
	if delete(h.asked, e.ID); other {
		h.gave(path, e, &answer)
		return nil
	}
	k := slices.IndexFunc(h.open, func(w *wait) bool { return w.last().id == e.ID })
	if k < 0 && h.info.First <= 1 {
		return nil // of something else
	}
	var l letter
	if err := json.Unmarshal(answer.Value, &l); err != nil && k >= 0 && len(answer.Value) > 0 {
		return err
	}
	if k < 0 {
		if l.Trigger.Of.Path == "" {
			return nil // of something else, or nothing is known of it any more
		}
		k = len(h.open)
		h.remember(strings.Clone(e.ID), &l.Trigger)
	}
	w := h.open[k]
	if was := l.Trigger.Of.Wait; was != "" && h.info.First > 1 && (histories{h}).byID(was) == nil { // a trim may have dropped the ask that it is called by
		w.id = was
	}
	a := w.last()
	a.answer, a.letter, a.ended, a.seq = answer, l, true, e.Seq
	a.bare = answer.How == checkpoint.AnswerGiven && !a.lost && l.Trigger.Of.Wait == "" && l.Trigger.strange(a.q.Of) != ""
	h.gave(w.path, e, &answer)
	w.answered()
	return nil
}

// waitsElse notes that a visit waits for something that no wait asks.
func (h *history) waitsElse(id, path string, kind dispatcher.InterruptKind, key string) {
	switch kind {
	case dispatcher.KindAsked:
		keep(&h.asked, strings.Clone(id), strings.Clone(path))
	case dispatcher.KindEffect, dispatcher.KindDoubt:
		keep(&h.gated, strings.Clone(id), gate{strings.Clone(path), strings.Clone(key)})
	}
}

// gave notes that a visit was given an answer.
func (h *history) gave(path string, e *checkpoint.Entry, a *checkpoint.Answer) {
	if a.How == checkpoint.AnswerGiven {
		keep(&h.given, path, e.Seq)
	}
}

// keep sets what a map, which may be nil, has under a key.
func keep[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

// remember adds a wait whose ask the log has lost, as its trigger tells it.
func (h *history) remember(id string, t *taken) {
	q := &question{
		Version: version, Name: t.Of.Name, Level: 1, Levels: 1, MaxFailures: t.Of.MaxFailures,
		Of: []alternative{{Kind: t.Kind, Key: t.Key, Authority: t.Actor.Authority}},
	}
	w := &wait{h: h, id: t.Of.Wait, path: t.Of.Path, name: t.Of.Name, asks: []*ask{{id: id, q: q, lost: true}}}
	h.waits, h.open = append(h.waits, w), append(h.open, w)
}

// resumed counts who goes on behind a trigger, and forgets how the run rested.
func (h *history) resumed() {
	h.end, h.notes = nil, nil
	for _, w := range h.open {
		w.resumed()
	}
}

// asksElse reports whether a visit waits for the answer to a question that is no wait's, or for
// somebody to say what is to come of an effect.
func (h *history) asksElse(path string) bool {
	for _, asks := range h.asked {
		if asks == path {
			return true
		}
	}
	for _, g := range h.gated {
		if g.path == path {
			return true
		}
	}
	return false
}

// forget has visits wait for nothing that no wait asks: those of a path, and inside it.
func (h *history) forget(path string) {
	maps.DeleteFunc(h.asked, func(_, asks string) bool { return asks == path || inside(asks, path) })
	maps.DeleteFunc(h.gated, func(_ string, g gate) bool { return g.path == path || inside(g.path, path) })
}

func inside(path, frame string) bool { return strings.HasPrefix(path, frame+"/") }

func (h *history) done(path string) {
	h.forget(path)
	for _, w := range h.open {
		if w.path == path || inside(w.path, path) {
			w.done()
		}
	}
}

// key is what correlates a trigger with an alternative.
func (w *wait) key(of alternative) string {
	return cmp.Or(of.Key, w.id)
}

func (w *wait) receipt(a *ask) Receipt {
	t := &a.letter.Trigger
	r := Receipt{
		Wait: w.id, Run: w.h.run, Trigger: t.ID, Kind: t.Kind, Key: t.Key, Actor: t.Actor,
		Decision: t.Decision, Reason: t.Reason, At: a.answer.At.UTC(), Seq: a.seq,
	}
	switch {
	case r.Kind == "": // nothing came in time
		r.Kind, r.Key = a.q.Of[0].Kind, w.key(a.q.Of[0])
	case r.Key == "":
		r.Key = w.id
	}
	return r
}

// pulled is the receipt of a trigger, if it was accepted for the wait.
func (w *wait) pulled(trigger string) (*ask, bool) {
	for _, a := range w.asks {
		if trigger != "" && a.letter.Trigger.ID == trigger {
			return a, true
		}
	}
	return nil, false
}
