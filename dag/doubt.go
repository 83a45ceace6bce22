package dag

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Doubt says what becomes of a visit in which an effect is in doubt. An effect is in doubt when the
// process died in it, or when its function panicked, called runtime.Goexit, was abandoned, or
// returned an error that does not wrap [NotDone], including one that only says that Policy.Timeout
// has passed. Whatever its Doubt, such an effect is not done again until somebody knows what
// happened: the node, or a person who looks at the other side and tells the dispatcher. See
// [InDoubt].
//
// A node that follows the failure of such a visit must not assume that the effect did not happen: a
// refund behind a transfer that was made pays twice.
//
//   - With [DoubtAsks] the visit waits, and with [DoubtFails] it fails and the run with it, until
//     somebody has said what happened. Nothing follows before that. If the visit fails for another
//     reason before it comes to the effect again, neither its failure edge nor that of a node
//     around it is taken.
//   - With [DoubtTells] the failure edge is taken: by returning the error the node decides that the
//     visit fails. The follower finds [FailedInDoubt] among its [Failures], also if the last
//     attempt ended because the function panicked or called runtime.Goexit and no node was told.
type Doubt uint8

const (
	// DoubtTells: Effect returns an [*InDoubtError], and the node decides. If it returns the error
	// the visit fails for good, however many of Policy.Attempts are left, and its failure edge, if
	// there is one, is taken. If it handles the error, it has said what happened. If the function
	// panics or calls runtime.Goexit, which ends the attempt, the next attempt is told; if there is
	// none, the visit fails as if it had returned the error.
	DoubtTells Doubt = iota
	// DoubtAsks: the visit waits for a person, and what it wrote is dropped, as with [Ask],
	// whatever the node returns and even if it panics. Once somebody has said what happened it runs
	// again from its first line: Effect returns the output if it happened, and does it if it did
	// not.
	DoubtAsks
	// DoubtFails: the visit fails for good, whatever the node returns and even if it panics.
	// Nothing follows its failure, so the run fails. A resume meets the doubt again, unless
	// somebody has said what happened.
	DoubtFails
)

var doubtNames = [...]string{DoubtTells: "tells", DoubtAsks: "asks", DoubtFails: "fails"}

// String returns tells, asks, fails, or doubt(n) for one that is not known.
func (d Doubt) String() string {
	if int(d) < len(doubtNames) {
		return doubtNames[d]
	}
	return fmt.Sprintf("doubt(%d)", uint8(d))
}

// MarshalText returns what String does; a Doubt that is not known is an error.
func (d Doubt) MarshalText() ([]byte, error) {
	if int(d) >= len(doubtNames) {
		return nil, fmt.Errorf("dag: unknown %s: it is DoubtTells, DoubtAsks or DoubtFails", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what MarshalText writes; any other text is an error.
func (d *Doubt) UnmarshalText(text []byte) error {
	i := slices.Index(doubtNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("dag: unknown doubt %.40q: it is tells, asks or fails", text)
	}
	*d = Doubt(i)
	return nil
}

// InDoubt says what becomes of the visit if the effect is in doubt. Without it that is
// [DoubtTells]. It means nothing for an effect that is [Replayable], which is done again instead.
func InDoubt(d Doubt) EffectOption { return inDoubt(d) }

type inDoubt Doubt

func (d inDoubt) declare(call *EffectCall) error {
	if int(d) >= len(doubtNames) {
		return call.refused(fmt.Sprintf("is given %s: it is DoubtTells, DoubtAsks or DoubtFails", Doubt(d)))
	}
	if call.inDoubt && call.Doubt != Doubt(d) {
		return call.refused("is given several of DoubtTells, DoubtAsks and DoubtFails: give it one")
	}
	call.Doubt, call.inDoubt = Doubt(d), true
	return nil
}

// Operation names what the effect does on the other side, for people and policies: "stripe.charge".
// It is kept with the effect and has no other meaning. It has 1 to 1024 bytes of UTF-8 without
// control characters; any other name refuses the effect.
func Operation(name string) EffectOption { return operation(name) }

type operation string

func (o operation) declare(call *EffectCall) error {
	if err := plainName(string(o)); err != nil {
		return call.refused(fmt.Sprintf("has an operation that %v", err))
	}
	if call.Operation != "" && call.Operation != string(o) {
		return call.refused(fmt.Sprintf("has several operations, %q and %q: give it one", call.Operation, string(o)))
	}
	call.Operation = string(o)
	return nil
}

// Touches names what the effect changes outside, for people and policies: "account 7", "mailbox".
// It may be given more than once. It is kept with the effect and has no other meaning. Each name
// has 1 to 1024 bytes of UTF-8 without control characters; any other refuses the effect.
func Touches(names ...string) EffectOption { return touches(names) }

type touches []string

func (t touches) declare(call *EffectCall) error {
	for _, name := range t {
		if err := plainName(name); err != nil {
			return call.refused(fmt.Sprintf("touches something whose name %v", err))
		}
	}
	call.Touches = append(call.Touches, t...)
	return nil
}

// Reversible says that what the effect does can be undone on the other side. Nothing undoes
// it by itself: whoever has to decide is told.
var Reversible EffectOption = reversible{}

type reversible struct{}

func (reversible) declare(call *EffectCall) error {
	call.Reversible = true
	return nil
}

// plainName says what is wrong with a name that people and tools are to read.
func plainName(name string) error {
	const most = 1024
	switch {
	case name == "":
		return fmt.Errorf("is empty: give it a name")
	case len(name) > most:
		return fmt.Errorf("has %d bytes, and may have %d", len(name), most)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("is not UTF-8 or holds a control character")
	}
	return nil
}
