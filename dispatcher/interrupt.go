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
	// KindBefore: the visit waits before it begins. If By is "" this is a pause of
	// Options.InterruptBefore or InterruptIf, and a Resume ends it, or [Approve] or [Reject].
	// Otherwise an [Interceptor] or [Gates] ask, and one of these two verdicts has to answer.
	//
	// A visit pauses once: if a Reject made the run fail, the next Run or Resume overrules it and
	// runs the visit. Interceptors and Gates ask again.
	KindBefore InterruptKind = kindBefore
	// KindAfter: a pause after the visit, of Options.InterruptAfter or InterruptIf. A Resume ends
	// it, or [Approve] or [Reject]. The next Run or Resume overrules a Reject.
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
	// Key, Question and Want depend on the kind:
	//
	//   - [KindAsked]: the key and the question that the node asked with, and the type of the
	//     answer;
	//   - [KindEffect]: the key of the effect, and an [Action];
	//   - [KindDoubt]: the key of the effect, a checkpoint.DoubtQuestion, and the type of the
	//     effect's output. A [Resolution] answers it.
	Key      string
	Question json.RawMessage
	Want     state.Type
	// By names the interceptor that asks Question before the visit; [Approve] or [Reject] answers
	// it. It is "gate" if [Gates] want an approval: then Question is an [Action], and Reason says
	// why.
	By     string
	Reason string
	// Until is the instant from which on an answer comes too late, Wait is how long that was when
	// the question was asked, and Default is the answer that it gets then. They are zero and nil if
	// the question waits for ever, or has no default. Asked is when the question was asked, if
	// Until and Wait don't tell because that is longer than a duration can say.
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
