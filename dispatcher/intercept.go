package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/pawlgo/pawl/dag"
)

// An Interceptor stands round visits: Before says whether and how one begins, After what
// becomes of what its function returned. At least one of them is set. Interceptors may be
// asked about several runs, and After about several visits of one run, at once.
type Interceptor struct {
	// Name says in the log, in errors and to people whose ruling it was. It has to be
	// another one for each interceptor. Empty means # and its place in the list, from 1.
	Name string
	// Nodes are the node paths ("compose-loop/validate") and visit paths
	// ("compose-loop/2/validate") at which it stands; the path of an Each stands for its
	// items as well. New refuses a path that names nothing, or a dag.Fail, before which nobody is
	// asked. Nil means all.
	Nodes []string
	// Before is asked about a visit of any kind of node but a dag.Fail before it begins, and before
	// its function's slot, time limit and attempts. All interceptors are asked in order, whatever
	// the others say, and the most restrictive ruling counts: Deny over Ask over Instead over
	// Continue. A panic is no ruling and fails the visit, unless another interceptor denies it; so
	// does a runtime.Goexit, behind which nobody is asked any more. Nil means [Continue].
	//
	// Before is asked once about a visit in each call that begins it, not once for each attempt: a
	// Continue leaves no trace in the log, so the call that goes on with a visit that was cut off,
	// or failed, asks again. It is asked once more when what it asked was approved, or when a call
	// that answers ([Answering]) begins again, since somebody has posted to the run meanwhile.
	Before func(context.Context, Call) Ruling
	// After is asked about a visit that runs a function, when that has returned no error and waits
	// for no answer: in the same goroutine, within the time limit, as a part of the attempt. Each
	// interceptor sees what those before it have made of the result. A panic fails the attempt, as
	// one in a Substitute does, and its error names the interceptor. Nil means [Keep].
	After func(ctx context.Context, c Call, outcomes []string) Change
}

// A Call is a visit as interceptors see it.
type Call struct {
	Run     string
	Graph   string
	Turn    int
	Labels  map[string]string // of the run; must not be changed
	Path    string            // of the visit: compose-loop/2/validate
	Node    string            // its node path: compose-loop/validate
	Kind    dag.Kind          // of its node; that of an item is a Step or an Embed
	Attempt int               // the one that begins, or that has returned

	// State is a *S, S being the state type of the graph that the node stands in: a copy, what
	// is written to which is dropped. Before gets one of the state that the visit will see, After
	// one of the visit's draft. Who wants to write behind a visit returns Replace.
	State any
	// Approved are the questions that this interceptor asked before this visit, and that
	// were approved.
	Approved []json.RawMessage
}

// A Ruling is what an interceptor says before a visit. The zero Ruling says nothing, and
// nothing is no permission: it denies.
type Ruling struct {
	kind     rulingKind
	reason   string
	question json.RawMessage
	body     Substitute
}

type rulingKind uint8

const (
	unruled rulingKind = iota
	continues
	instead
	asks
	denies
)

// A Substitute does what the function of a node would have done: it writes to state, the
// *S of the visit, and returns the outcomes: none for a Step, one for a Route, any number
// for a Choose.
type Substitute func(ctx context.Context, state any) (outcomes []string, err error)

// Continue lets the visit begin.
func Continue() Ruling { return Ruling{kind: continues} }

// Deny fails the visit with the kind [dag.FailedDenied]. It is not tried again, unless a
// Failed run is resumed: then the interceptors are asked anew. The reason is what people read
// of it; "" is kept as "denied without a reason".
func Deny(reason string) Ruling {
	if reason == "" {
		reason = "denied without a reason"
	}
	return Ruling{kind: denies, reason: reason}
}

// Ask has a person decide first: the visit is interrupted before it begins, with question, which
// may be anything that JSON can say. [Approve] or [Reject] answers; a Resume alone does not. An
// approval is of this question, by this interceptor, before this visit, and is durable: when the
// interceptor asks the same again it counts as Continue, and another question is another interrupt.
// A visit that is voided has none any more. Without a store nobody can be asked, and Ask denies.
func Ask(question any) Ruling {
	raw, err := marshalled(question)
	if err != nil {
		return Deny(fmt.Sprintf("its question is not JSON: %v", err))
	}
	return Ruling{kind: asks, question: raw}
}

// Instead runs f in place of the node's function, under the node's Policy and with the
// node's context. The first one counts. Before a node that runs no function (a Loop, an
// Embed, an Each) it denies.
func Instead(f Substitute) Ruling {
	if f == nil {
		return Deny("its substitute is nil")
	}
	return Ruling{kind: instead, body: f}
}

// A Change is what an interceptor says after a visit. The zero Change says nothing, and
// fails the attempt as a denial does.
type Change struct {
	kind changeKind
	body Substitute
}

type changeKind uint8

const (
	unchanged changeKind = iota
	keeps
	replaces
)

// Keep leaves the result as it is.
func Keep() Change { return Change{kind: keeps} }

// Replace has f write to the visit's draft and return other outcomes. What it did is a part
// of the visit, and of its entry, which names the interceptor. An error of f fails the
// attempt as one of the node's function would.
func Replace(f Substitute) Change {
	if f == nil {
		return Change{}
	}
	return Change{kind: replaces, body: f}
}

// An interceptor is an Interceptor as New has checked it.
type interceptor struct {
	Interceptor
	nodes patterns
}

func (c *core) configureHooks() error {
	taken := map[string]bool{}
	for i, x := range c.opts.Hooks.Intercept {
		g := &interceptor{Interceptor: x}
		if g.Name == "" {
			g.Name = fmt.Sprintf("#%d", i+1)
		}
		switch {
		case taken[g.Name]:
			return &OptionError{"Hooks.Intercept", fmt.Sprintf("has two interceptors %q", g.Name)}
		case g.Before == nil && g.After == nil:
			return &OptionError{"Hooks.Intercept", fmt.Sprintf("has an interceptor %q without Before and After", g.Name)}
		case g.Nodes != nil && len(g.Nodes) == 0:
			return &OptionError{"Hooks.Intercept", fmt.Sprintf("has an interceptor %q that stands nowhere", g.Name)}
		case !utf8.ValidString(g.Name):
			return &OptionError{"Hooks.Intercept", fmt.Sprintf("has an interceptor %q whose name is not UTF-8", g.Name)}
		}
		taken[g.Name] = true
		for _, path := range g.Nodes {
			if err := g.nodes.add("Hooks.Intercept", c.plan, path); err != nil {
				return err
			}
		}
		c.interceptors = append(c.interceptors, g)
	}
	return nil
}

// stands reports whether g stands at a visit.
func (g *interceptor) stands(c *Call) bool {
	return g.nodes == nil || g.nodes[c.Path] || g.nodes[c.Node]
}
