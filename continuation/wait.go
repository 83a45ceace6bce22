package continuation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A Kind says what ends a wait.
type Kind string

// The kinds of waits, and of the triggers that end them.
const (
	KindReply    Kind = "user_reply"          // somebody says something
	KindApproval Kind = "approval_resolution" // somebody approves or denies
	KindExternal Kind = "external_result"     // a process outside has come to its end
	KindTimer    Kind = "scheduled_wake"      // an instant has come
)

// Anybody, as the authority of a wait, lets whoever it is end it.
const Anybody dag.Authority = "any"

// Defaults of a [Wait].
const (
	DefaultWithin         = time.Hour      // for replies, results, and behind the wake of a timer
	DefaultApprovalWithin = 24 * time.Hour // for approvals
	DefaultFailures       = 3
)

// A Wait says what a visit waits for. The zero Wait waits an hour for a reply of anybody.
type Wait struct {
	// Kind is what ends the wait. Zero means KindReply.
	Kind Kind
	// Key correlates a trigger with the wait: the id of the approval, the operation or the
	// conversation, of at most 256 bytes. Zero means the id of the wait, which stays the same when
	// the same is asked again.
	Key string
	// Question is what is asked, for whoever is to answer: anything that JSON can say. A trigger is
	// for that, and for the kinds and keys of the wait: see [Await].
	Question any
	// Within is how long a trigger may take, from the moment in which the visit begins to wait; of
	// a timer, how far behind its wake it may fire before it is missed. Until says it as an
	// instant. Zero of both means DefaultWithin, and DefaultApprovalWithin for an approval. An
	// Until that has passed when the visit first asks is an [*ArgumentError]: a visit that may
	// begin late, as behind a stop of the process, says Within.
	Within time.Duration
	Until  time.Time
	// After and At say when a timer wakes: so long after the visit has begun to wait, or at this
	// instant. A timer has one of them, and nothing else has.
	After time.Duration
	At    time.Time
	// Authority is who may end the wait. Zero means dag.Human for an approval, dag.System for a
	// timer, Anybody for the others.
	Authority dag.Authority
	// SafeToAutoExecute, of an approval: a Sweep may approve in nobody's name, as dag.System. It
	// never overrides an authority that is required, so it has an effect only if Authority is
	// Anybody or dag.System, not with the zero Authority.
	SafeToAutoExecute bool
	// OnDeny says what a denial comes to. Zero means Cancel.
	OnDeny OnDeny
	// OnExpire says what comes of a wait that nobody ended in time. Zero means Expire; of a timer,
	// that it fires, marked as missed.
	OnExpire OnExpire
	// MaxFailures is how many attempts of the visit may fail behind a trigger of this wait before
	// it fails for good: after each of the others it waits again. Zero means DefaultFailures.
	//
	//   - An attempt that fails before it comes to ask again does not count.
	//   - A process that dies or drains behind the trigger counts as much, until the wait is asked
	//     again: a Runtime goes on with the run no more often than that.
	//   - If an attempt asks something else under the same name, by another Question, Kind or Key,
	//     that is another wait, and the failures behind what the name asked before still count. So
	//     an attempt may say in its Question what has failed.
	//
	// All that holds whatever dag.Policy the node has, unless a failure of the visit is followed.
	// Then give it as many Attempts: when it has failed as often as Attempts says, its failure is
	// followed and it waits no more. A run that has failed with the reason MaxAttempts fails again
	// when it is resumed: Rewind it to before the visit.
	MaxFailures int
	// MaxHops bounds a dialogue: it is how many waits the visit may have, this one included. If as
	// many have ended before it, it ends with the reason MaxHops. A wait that has expired counts,
	// and so does a question that the visit asked by dag.Ask, once that has ended. What one name
	// has asked in turn, as behind an edit, counts once. Zero means no bound.
	MaxHops int

	parts []Wait // of Any and All
	all   bool
}

// An OnDeny says what the denial of an approval comes to.
type OnDeny uint8

const (
	// Cancel: the run is cancelled with the reason ApprovalDenied, and Await does not return well.
	Cancel OnDeny = iota
	// Feed: Await returns a Reply that says Denied, and why.
	Feed
)

// An OnExpire says what comes of a wait that nobody ended in time.
type OnExpire struct {
	how     expiring
	answer  any
	to      dag.Authority
	within  time.Duration
	further int // how often it is asked again
}

type expiring uint8

const (
	unsaid expiring = iota
	expires
	defaults
	escalates
	repeats
)

// Expire has Await return an [*Ended] of reason Expired, which can be followed as a failure.
func Expire() OnExpire { return OnExpire{how: expires} }

// Default has Await return this payload, in a Reply that is marked as Default: the wait has ended
// well, and reads as resolved.
func Default(payload any) OnExpire { return OnExpire{how: defaults, answer: payload} }

// Escalate asks somebody else, once, who has so long. Zero is as long as the wait says, or its
// default. If the visit waits for something else as well it asks when that has ended: see [All].
func Escalate(to dag.Authority, within time.Duration) OnExpire {
	return OnExpire{how: escalates, to: to, within: within, further: 1}
}

// Again asks n times more, with the same bounds, each time as Escalate does. It is for waits that
// say Within.
func Again(n int) OnExpire { return OnExpire{how: repeats, further: n} }

// Any is a wait that the first trigger for one of the waits ends. It is one interrupt, so that
// exactly one of them counts.
//
//   - It asks the first Question that a part says.
//   - The wake of a timer among the parts ends it, unless something else does before. Without a
//     timer it expires when the last part does. A part that says neither Within nor Until can be
//     ended as long as the wait goes on.
//   - OnDeny is that of each part; OnExpire, failures and hops are those of the first. If that says
//     Expire a timer that is missed expires, wherever it stands; else it fires, marked as missed.
func Any(waits ...Wait) Wait { return joined(waits, false) }

// All is a wait for triggers of every one of the waits, in any order. Each part has a reply of its
// own. The visit runs again when no part is open any more. Only then is a part that expired
// escalated, asked [Again], or returned as an [*Ended]; until it is asked again a trigger for it is
// refused with a [*MismatchError].
func All(waits ...Wait) Wait { return joined(waits, true) }

func joined(waits []Wait, all bool) Wait {
	var w Wait
	if len(waits) > 0 {
		w = waits[0]
	}
	for i := range waits {
		if w.Question == nil {
			w.Question = waits[i].Question
		}
	}
	w.parts, w.all = slices.Clone(waits), all
	if w.parts == nil {
		w.parts = []Wait{}
	}
	return w
}

// check refuses what can't be waited for.
func (w *Wait) check(name string) error {
	bad := func(what, reason string) error { return &ArgumentError{What: what, Reason: reason} }
	is := text{"one", name, 128}
	switch {
	case name == "":
		return bad("the name of a wait", "is empty: give each wait of a visit a name")
	case strings.ContainsAny(name, "~/"):
		return bad(fmt.Sprintf("the name %.40q", name), "holds ~ or /: give it another")
	case is.problem() != "":
		return bad(fmt.Sprintf("the name %.40q", name), "is "+is.problem())
	case w.parts == nil:
		return w.checkOne(name)
	case len(w.parts) == 0:
		return bad("wait "+name, "has no parts: give Any and All one wait at least")
	}
	timers := 0
	for i := range w.parts {
		part := &w.parts[i]
		if part.parts != nil {
			return bad("wait "+name, "nests Any and All: write them as several waits")
		}
		if err := part.checkOne(fmt.Sprintf("%s, part %d", name, i+1)); err != nil {
			return err
		}
		if part.kind() == KindTimer {
			timers++
		}
		if !w.all && i > 0 && part.OnExpire.how != unsaid {
			return bad(fmt.Sprintf("%s, part %d", name, i+1), "has OnExpire: the first part of Any says it for all")
		}
	}
	if !w.all && timers > 1 {
		return bad("wait "+name, "has two timers: the first of them to wake is enough")
	}
	return nil
}

// checkOne is check of a wait that is neither Any nor All.
func (w *Wait) checkOne(name string) error {
	bad := func(reason string) error { return &ArgumentError{What: "wait " + name, Reason: reason} }
	kind, timer, key := w.kind(), w.kind() == KindTimer, text{"a key", w.Key, maxID}
	switch {
	case !slices.Contains([]Kind{KindReply, KindApproval, KindExternal, KindTimer}, kind):
		return bad(fmt.Sprintf("is of the kind %q, which there is not", kind))
	case key.problem() != "":
		return bad("has " + key.problem())
	case w.SafeToAutoExecute && kind != KindApproval:
		return bad("is no approval and says SafeToAutoExecute, which is for approvals")
	case !slices.Contains([]dag.Authority{dag.Human, dag.Agent, dag.System, Anybody}, w.authority()):
		return bad(fmt.Sprintf("needs the authority %q, which there is not", w.Authority))
	case w.Within < 0 || w.After < 0:
		return bad("expires or wakes before it begins: give it a time to come")
	case !state.Sayable(w.Until) || !state.Sayable(w.At) || timer && !state.Sayable(w.At.Add(w.within())):
		return bad("has an instant in a year that JSON can't say")
	case w.Within > 0 && !w.Until.IsZero():
		return bad("has Within and Until: give one of them")
	case timer && !w.Until.IsZero():
		return bad("is a timer with Until: Within says how late it may fire")
	case timer && (w.After > 0) == !w.At.IsZero():
		return bad("is a timer: give it one of After and At")
	case !timer && (w.After > 0 || !w.At.IsZero()):
		return bad("has After or At, which are for timers")
	case w.MaxFailures < 0 || w.MaxHops < 0:
		return bad("has a negative bound: zero means the default")
	case w.OnDeny > Feed:
		return bad("says OnDeny what there is not")
	}
	return w.checkExpiry(bad, timer)
}

func (w *Wait) checkExpiry(bad func(string) error, timer bool) error {
	o := w.OnExpire
	switch {
	case timer && o.how > expires:
		return bad("is a timer, which fires or expires")
	case o.how == repeats && o.further < 1:
		return bad("is asked Again less than once")
	case o.how == repeats && !w.Until.IsZero():
		return bad("is asked Again and has Until: give it Within")
	case o.how == escalates && (o.within < 0 || !slices.Contains([]dag.Authority{dag.Human, dag.Agent, dag.System, Anybody}, o.to)):
		return bad("escalates to nobody, or for less than no time")
	case o.how == defaults:
		if _, err := json.Marshal(o.answer); err != nil {
			return bad("has a default that JSON can't say: " + err.Error())
		}
	}
	return nil
}

func (w *Wait) kind() Kind {
	return cmp.Or(w.Kind, KindReply)
}

func (w *Wait) authority() dag.Authority {
	switch {
	case w.Authority != "":
		return w.Authority
	case w.kind() == KindApproval:
		return dag.Human
	case w.kind() == KindTimer:
		return dag.System
	}
	return Anybody
}

// within is how long a trigger may take, if Until does not say it.
func (w *Wait) within() time.Duration {
	switch {
	case w.Within > 0:
		return w.Within
	case w.kind() == KindApproval:
		return DefaultApprovalWithin
	}
	return DefaultWithin
}

func (w *Wait) failures() int {
	return cmp.Or(w.MaxFailures, DefaultFailures)
}

// members are the parts of an Any, or the wait itself.
func (w *Wait) members() []Wait {
	if w.parts == nil {
		return []Wait{*w}
	}
	return w.parts
}

// timer is the one that wakes the wait, nil if none does.
func (w *Wait) timer() *Wait {
	all := w.members()
	for i := range all {
		if all[i].kind() == KindTimer {
			return &all[i]
		}
	}
	return nil
}

// at is the wait as it is asked for the n-th time, counted from 1, because it expired before.
func (w *Wait) at(level int) Wait {
	x := *w
	if level == 1 || w.OnExpire.how != escalates {
		return x
	}
	raise := func(x *Wait) {
		x.Authority, x.Until = w.OnExpire.to, time.Time{}
		if w.OnExpire.within > 0 {
			x.Within = w.OnExpire.within
		}
	}
	raise(&x)
	x.parts = slices.Clone(w.parts)
	for i := range x.parts {
		raise(&x.parts[i])
	}
	return x
}

// levels is how often the wait is asked at most, if nobody answers.
func (w *Wait) levels() int { return 1 + min(w.OnExpire.further, math.MaxInt-1) }
