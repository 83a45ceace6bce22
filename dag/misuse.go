package dag

import (
	"context"
	"fmt"
	"unicode/utf8"
)

// named refuses the name by which a call of a node is known later: nobody finds a nameless
// question, value or effect again.
func named(what, of, name string) error {
	if name == "" || !utf8.ValidString(name) {
		return fmt.Errorf("dag: the %s %q of %s is empty or not UTF-8: give it one", what, name, of)
	}
	return nil
}

// within returns the visit that ctx belongs to, nil outside a run. A nil context is an error
// and not outside a run: an effect would be done without a word in the log.
func within(ctx context.Context, call string) (Visit, error) {
	if ctx == nil {
		return nil, fmt.Errorf("%w: %s: the context is nil: pass on the one that the node was given", ErrNoVisit, call)
	}
	return visitOf(ctx), nil
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

// needBuilder is need, for the functions that add nodes.
func needBuilder(there bool, kind Kind) {
	need(there, adds[kind], "Builder", "make one with New")
}
