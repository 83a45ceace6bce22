package continuation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// find is the wait that a trigger is meant for, be it the right one or not.
func (hs histories) find(t *Trigger) (*wait, error) {
	if t.Wait != "" {
		if w := hs.byID(t.Wait); w != nil { // of its Run, if it says one: no others were read then
			return w, nil
		}
		return nil, &NotFoundError{Address: "id " + t.Wait}
	}
	all := hs.waits(func(w *wait) bool { return t.Key == "" || w.expects("", t.Key) })
	if len(all) == 0 && t.Run != "" { // the run may come to ask it: what it waits for now says what it does not wait for
		all = hs.waits(func(w *wait) bool { status, _, _, _ := w.stands(); return !status.Terminal() })
	}
	if len(all) == 0 {
		address := fmt.Sprintf("key %q", t.Key)
		switch {
		case t.Key == "":
			address = fmt.Sprintf("run %q", t.Run)
		case t.Run != "":
			address = fmt.Sprintf("run %q and key %q", t.Run, t.Key)
		}
		return nil, &NotFoundError{Address: address}
	}
	var live, meant []*wait
	for _, w := range all {
		if status, _, _, _ := w.stands(); status.Terminal() {
			continue
		}
		live = append(live, w)
		if w.expects(t.Kind, t.Key) {
			meant = append(meant, w)
		}
	}
	switch meant = reached(free(meant)); {
	case len(meant) == 1:
		return meant[0], nil
	case len(meant) > 1:
		by := "Key"
		if slices.ContainsFunc(meant, func(w *wait) bool { return w.h != meant[0].h }) {
			by = "Run"
		}
		return nil, &MismatchError{meant[0].id, meant[0].h.run, fmt.Sprintf(
			"%d waits are for it: name one by %s or Wait: %s", len(meant), by, several(meant, t.Kind))}
	case len(live) > 0:
		return live[len(live)-1], nil
	}
	return slices.MaxFunc(all, func(a, b *wait) int { return a.last().at.Compare(b.last().at) }), nil
}

// meant is what find finds behind a try with another wait, or the first one. If that was superseded
// meanwhile, or has had another trigger, what has come instead is not what this one was pulled for.
func (hs histories) meant(t *Trigger, before *wait) (*wait, error) {
	w, err := hs.find(t)
	if err != nil || before == nil || before.id == w.id {
		return w, err
	}
	if was := hs.byID(before.id); was != nil && (was.closed == Superseded || was.closed == Completed || was.has()) {
		return was, nil
	}
	return w, nil
}

// reached leaves out the waits whose frame was voided, if something else of their run is meant:
// they are asked anew if the run comes there. Of those alone the first may be what it comes to.
func reached(meant []*wait) (all []*wait) {
	for i, w := range meant {
		beside := func(x *wait) bool { return x.h == w.h && !x.last().gone }
		before := func(x *wait) bool { return x.h == w.h }
		if !w.last().gone || !slices.ContainsFunc(meant, beside) && !slices.ContainsFunc(meant[:i], before) {
			all = append(all, w)
		}
	}
	return all
}

// free leaves out the waits that have their trigger, if others are left.
func free(meant []*wait) []*wait {
	if all := slices.DeleteFunc(slices.Clone(meant), (*wait).has); len(all) > 0 {
		return all
	}
	return meant
}

// several tells how waits for a kind are named, the first of them if there are many.
func several(all []*wait, kind Kind) string {
	const most = 5
	var b strings.Builder
	for i, w := range all {
		if i == most {
			fmt.Fprintf(&b, ", and %d more", len(all)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%q of run %q", w.id, w.name, w.h.run)
		for _, of := range w.last().q.Of {
			if of.Kind == kind && of.Key != "" {
				fmt.Fprintf(&b, ", key %.40q", of.Key)
			}
		}
		b.WriteString(")")
	}
	return b.String()
}

func (hs histories) waits(meant func(*wait) bool) (all []*wait) {
	for _, h := range hs {
		for _, w := range h.waits {
			if meant(w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// expects reports whether a trigger of this kind and key would end the wait; "" is any.
func (w *wait) expects(kind Kind, key string) bool {
	return slices.ContainsFunc(w.last().q.Of, func(of alternative) bool {
		return (kind == "" || of.Kind == kind) && (key == "" || w.key(of) == key)
	})
}

// admits says why a trigger can't end the wait, nil if it can.
func (r *Runtime) admits(w *wait, t *Trigger) (*alternative, error) {
	a := w.last()
	now := r.now(a)
	if status, reason, _, _ := w.stands(); status.Terminal() {
		return nil, &TerminalError{w.id, w.h.run, status, reason}
	}
	mismatch := func(reason string) error { return &MismatchError{w.id, w.h.run, reason} }
	if t.Wait == "" && t.Key != "" && !w.expects("", t.Key) { // it is for another wait, whose time need not be over
		return nil, mismatch(fmt.Sprintf("it does not wait for the key %q", t.Key))
	}
	if w.pends() && a.over(now) {
		return nil, &ExpiredError{Wait: w.id, Run: w.h.run, Until: a.until}
	}
	if !w.expects(t.Kind, "") {
		return nil, mismatch(fmt.Sprintf("it does not wait for %s", t.Kind))
	}
	if t.Key == "" && w.keys(t.Kind) > 1 { // it might be meant for another one
		return nil, mismatch("it waits for several of this kind: name one by Key: " + several([]*wait{w}, t.Kind))
	}
	err := mismatch(fmt.Sprintf("it does not wait for the key %q", t.Key))
	for i := range a.q.Of {
		of := &a.q.Of[i]
		if of.Kind != t.Kind || t.Key != "" && w.key(*of) != t.Key {
			continue
		}
		if err = w.permits(of, t, now); err == nil {
			return of, nil
		}
	}
	return nil, err
}

// keys is how many keys the wait takes for triggers of a kind.
func (w *wait) keys(kind Kind) int {
	keys := map[string]bool{}
	for _, of := range w.last().q.Of {
		if of.Kind == kind {
			keys[w.key(of)] = true
		}
	}
	return len(keys)
}

// permits says why a trigger of the kind and key of an alternative can't end the wait, nil if it
// can.
func (w *wait) permits(of *alternative, t *Trigger, now time.Time) error {
	a, until := w.last(), of.Until
	if of.Within > 0 {
		until = a.at.Add(of.Within)
	}
	switch {
	case w.pends() && !until.IsZero() && !now.Before(until):
		return &ExpiredError{w.id, w.h.run, until, of.Kind, w.key(*of)}
	case of.Kind == KindTimer && w.pends():
		return &MismatchError{w.id, w.h.run, "it wakes at " + a.until.UTC().Format(time.RFC3339Nano) + ", and not before"}
	case of.Authority != Anybody && of.Authority != t.Actor.Authority:
		return &AuthorityError{w.id, w.h.run, of.Authority, t.Actor}
	case w.used() >= a.q.MaxFailures:
		return &AttemptsError{w.id, w.h.run, a.q.MaxFailures}
	case w.has():
		return &TakenError{w.id, w.h.run, a.letter.Trigger.ID}
	}
	return nil
}

// over reports whether it is too late for a trigger.
func (a *ask) over(now time.Time) bool { return !a.until.IsZero() && !now.Before(a.until) }
