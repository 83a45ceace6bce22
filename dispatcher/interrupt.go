package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/state"
)

// An InterruptKind says why a visit waits, and so what ends that.
type InterruptKind string

// The kinds of interrupts. The log and events ([Event].Outcome) tell them by the same names.
const (
	// KindBefore: before the visit has begun. If By is "" it is a pause of Options.InterruptBefore
	// or InterruptIf, which a Resume ends, or [Approve] or [Reject]; else an [Interceptor] or
	// [Gates] ask, and one of these two has to answer. A visit pauses once: the next Run or Resume
	// of a run that has failed by a Reject overrules it, and runs the visit. Interceptors and Gates
	// ask again.
	KindBefore InterruptKind = kindBefore
	// KindAfter: after the visit, a pause of Options.InterruptAfter or InterruptIf. A Resume
	// ends it, or [Approve] or [Reject], which the next Run or Resume overrules.
	KindAfter InterruptKind = kindAfter
	// KindAsked: the node has called dag.Ask. A value of the type Want answers it.
	KindAsked InterruptKind = kindAsked
	// KindEffect: [Gates] want an approval of the effect Key. [Approve] or [Reject] answers it.
	KindEffect InterruptKind = kindEffect
	// KindDoubt: nobody knows what came of the effect Key (dag.DoubtAsks). A [Resolution]
	// answers it.
	KindDoubt InterruptKind = kindDoubt
)

// way is how a run that waits so stands to the visit.
func (k InterruptKind) way() string {
	if k == KindBefore || k == KindAfter {
		return string(k)
	}
	return "at"
}

// An Interrupt is a durable pause of one visit.
type Interrupt struct {
	ID   string
	Path string // of the visit
	Kind InterruptKind
	// Key and Question are what an asked one was asked with, Want the type of its answer. Of
	// kind effect Key is that of the effect. Of doubt too: then Question is a
	// checkpoint.DoubtQuestion, and Want the type of its output: a [Resolution] answers it.
	Key      string
	Question json.RawMessage
	Want     state.Type
	// By names the interceptor that asks, before the visit, Question; [Approve] or [Reject]
	// answers it. It is "gate" if [Gates] want an approval: then Question is an [Action], and
	// Reason says why.
	By     string
	Reason string
	// Until is the instant from which on an answer comes too late, Wait how long that was when the
	// question was asked, Default the answer then; zero and nil if it waits for ever, or has none.
	// Asked is when that was if Until and Wait don't tell: if it is longer than a duration can say.
	Until   time.Time
	Wait    time.Duration
	Asked   time.Time
	Default json.RawMessage
}

// String tells the interrupt on one line: decide asks: "How much?", or: before respond.
func (i Interrupt) String() string {
	switch {
	case i.Kind == KindEffect:
		return fmt.Sprintf("%s asks before %s#%s: %s", i.By, i.Path, i.Key, i.Question)
	case i.By != "":
		return fmt.Sprintf("%s asks before %s: %s", i.By, i.Path, i.Question)
	case i.Kind == KindDoubt:
		return fmt.Sprintf("%s waits to be told what came of effect %q: %s", i.Path, i.Key, i.Question)
	case i.Kind == KindAsked:
		return fmt.Sprintf("%s asks: %s", i.Path, i.Question)
	}
	return string(i.Kind) + " " + i.Path
}

// pauses reports whether nobody asks anything, as [pending.pauses] does.
func (i Interrupt) pauses() bool {
	return (i.Kind == KindBefore || i.Kind == KindAfter) && i.By == ""
}

// interruptsOf tells pendings to a caller, who may keep and change what he gets.
func interruptsOf(pendings []*pending) []Interrupt {
	var all []Interrupt
	for _, p := range pendings {
		i := Interrupt{
			ID: p.id, Path: p.t.path(), Kind: InterruptKind(p.kind), Key: p.key, Question: slices.Clone(p.ask.Question),
			By: p.ask.By, Reason: p.ask.Reason, Until: p.ask.Until, Wait: p.ask.Wait, Asked: p.ask.Asked,
			Default: slices.Clone(p.ask.Default),
		}
		if len(p.ask.Want) > 0 {
			i.Want = p.tells() // checked when it was applied
		}
		all = append(all, i)
	}
	return all
}
