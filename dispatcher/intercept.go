package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/pawlgo/pawl/dag"
)

// An Interceptor stands around visits: Before says whether and how a visit begins, After what
// becomes of its result. At least one of the two is set. Interceptors may be asked about several
// runs at once, and After about several visits of one run.
type Interceptor struct {
	// Name says in the log, in errors and to people whose ruling it was. Each interceptor has to
	// have a name of its own. Empty means # and its place in the list, counted from 1.
	Name string
	// Nodes are the node paths ("compose-loop/validate") and visit paths
	// ("compose-loop/2/validate") at which it stands. The path of an Each stands for its items as
	// well. New refuses a path that names nothing, or a dag.Fail, before which nobody is asked. Nil
	// means all.
	Nodes []string
	// Before is asked about a visit, of any kind of node but a dag.Fail, before the visit begins:
	// its attempts have not begun, nor their time limit, and its function has no place of
	// [Options].Parallel. All interceptors are asked in order, whatever the others say, and the
	// most restrictive ruling counts: Deny over Ask over Instead over Continue. A panic is no
	// ruling and fails the visit, unless another interceptor denies it. So does a runtime.Goexit;
	// behind that nobody else is asked. Nil means [Continue].
	//
	// Before is asked once about a visit in each call that begins the visit, not once for each
	// attempt. A Continue leaves no trace in the log, so the call that goes on with a visit that
	// was cut off, or failed, asks again. Before is asked once more when what it asked was
	// approved, or when a call that answers ([Answering]) begins again because somebody has posted
	// to the run meanwhile.
	Before func(context.Context, Call) Ruling
	// After is asked about a visit that runs a function, when the function has returned no error
	// and waits for no answer. It is a part of the attempt: it runs in the same goroutine and
	// within the time limit. Each interceptor sees what those before it have made of the result. A
	// panic fails the attempt, as a panic in a Substitute does, and the error names the
	// interceptor. Nil means [Keep].
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

	// State is a *S, where S is the state type of the graph in which the node stands. It is a copy,
	// and what is written to it is dropped: for Before of the state that the visit will see, for
	// After of the visit's draft. To write after a visit, return Replace.
	State any
	// Approved are the approved questions that this interceptor has asked before this visit.
	Approved []json.RawMessage
}

// A Ruling is what an interceptor says before a visit. The zero Ruling says nothing, and so denies.
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

// A Substitute does what the function of a node would have done. It writes to state, the *S of the
// visit, and returns the outcomes: none for a Step, one for a Route, any number for a Choose.
type Substitute func(ctx context.Context, state any) (outcomes []string, err error)

// Continue lets the visit begin.
func Continue() Ruling { return Ruling{kind: continues} }

// Deny fails the visit with the kind [dag.FailedDenied]. The visit is not tried again, unless the
// Failed run is resumed: then the interceptors are asked anew. People read the reason; "" is kept
// as "denied without a reason".
func Deny(reason string) Ruling {
	reason = cmp.Or(reason, "denied without a reason")
	return Ruling{kind: denies, reason: reason}
}

// Ask has a person decide first. The visit is interrupted before it begins, with question, which
// may be anything that JSON can say. [Approve] or [Reject] answers; a Resume alone does not.
//
// An approval is durable. It is for this question, by this interceptor, before this visit: when the
// interceptor asks the same again that counts as Continue, and another question is another
// interrupt. A visit that is voided loses its approvals. Without a store nobody can be asked, and
// Ask denies.
func Ask(question any) Ruling {
	raw, err := marshalled(question)
	if err != nil {
		return Deny(fmt.Sprintf("its question is not JSON: %v", err))
	}
	return Ruling{kind: asks, question: raw}
}

// Instead runs f in place of the node's function, under the node's Policy and with the node's
// context. Of several the first counts. Before a node that runs no function (a Loop, an Embed, an
// Each) it denies.
func Instead(f Substitute) Ruling {
	if f == nil {
		return Deny("its substitute is nil")
	}
	return Ruling{kind: instead, body: f}
}

// A Change is what an interceptor says after a visit. The zero Change says nothing, and so fails
// the attempt as a denial does.
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

// Replace has f write to the visit's draft and return other outcomes. What f does is a part of the
// visit and of its entry, which names the interceptor. An error of f fails the attempt as an error
// of the node's function would.
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
