package dag

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/pawlgo/pawl/state"
)

// An ArgumentError says which argument a call of a node lacks or can't take, or that Build has not
// made a Graph. Nothing has happened.
type ArgumentError struct {
	Call     string // Ask, Effect, Emit, Depends, Note, Decide, Learn, Block, Require or MarshalJSON
	Argument string // which one, with its name if it has one
	Reason   string // what is wrong with it, and what to give
}

func (e *ArgumentError) Error() string {
	return "dag: " + e.Call + ": the " + e.Argument + " " + e.Reason
}

// named refuses the name by which a call of a node is known later: nobody finds a nameless
// question, value or effect again.
func named(call, what, name string) error {
	reason := noText(name)
	if reason == "" {
		return nil
	}
	return &ArgumentError{call, fmt.Sprintf("%s %q", what, name), reason}
}

func noText(name string) string {
	switch {
	case name == "":
		return "is empty: give it one"
	case !utf8.ValidString(name):
		return "is not UTF-8: encode it, if it is no text"
	}
	return ""
}

// inJSON is what JSON says of a value that a run keeps or shows. Text that is not UTF-8 is
// [state.ErrUTF8], as it is in a cell.
func inJSON(value any) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err == nil {
		err = state.CheckText(value, raw)
	}
	return raw, err
}

// within returns the visit that ctx belongs to, nil outside a run. A nil context is an error
// and not outside a run: an effect would be done without a word in the log.
func within(ctx context.Context, call string) (Visit, error) {
	if ctx == nil {
		return nil, fmt.Errorf("%w: %s: the context is nil: pass on the one that the node was given", ErrNoVisit, call)
	}
	return visitOf(ctx, call), nil
}

// need panics if something is not there that call, which returns no error, can't do without.
func need(there bool, call, what, todo string) {
	if !there {
		panic("dag: " + call + ": the " + what + " is nil: " + todo)
	}
}

// adds are the functions that add nodes, by the kind of node.
var adds = map[Kind]string{
	KindStep: "Step", KindRoute: "Route", KindChoose: "Choose", KindLoop: "Loop",
	KindEmbed: "Embed", KindEach: "Each", KindFail: "Fail", kindEnd: "End",
}

// needHandle is need, for With: the zero value of a handle is of no node.
func needHandle(there bool) {
	if !there {
		panic("dag: With: the handle is the zero value: take the one that Step, or another, returned")
	}
}

// needBuilder is need, for the functions that add nodes.
func needBuilder(there bool, kind Kind) {
	need(there, adds[kind], "Builder", "make one with New")
}
