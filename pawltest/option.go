package pawltest

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A T is what a test is told with: a *testing.T, for example. If it has a method Context,
// as that has, runs end with that context.
type T interface {
	// Helper marks the caller as one whose line is not the one to show.
	Helper()
	// Errorf tells a finding; the test has failed and goes on.
	Errorf(format string, args ...any)
}

// An Option says more about how a graph is tried. The zero Option says nothing.
type Option struct {
	name string
	set  func(*aids)
	// empty: it was given nil where it needs a function.
	empty bool
}

// aids are what the options say together.
type aids struct {
	world   func() any
	reset   func()
	answers map[string]any
	rebuild any // func() *dag.Graph[S]
	gates   dispatcher.Gates
	decide  func(dispatcher.Action) dispatcher.Verdict
	settle  func(dispatcher.OpenEffect) dispatcher.Resolution
	run     []dispatcher.RunOption
	moves   []dispatcher.Migration
	recent  bool
	given   []string // names of the options
}

// take gathers what the options say.
func (a *aids) take(options []Option) error {
	for _, o := range options {
		if o.set == nil {
			continue
		}
		if o.empty {
			return fmt.Errorf("%s needs a function, and got nil: leave the option out", o.name)
		}
		a.given = append(a.given, o.name)
		o.set(a)
	}
	return nil
}

// World lets a test see what nodes do outside their state: see returns what they act on, a count of
// letters sent or a copy of a table, as anything that JSON can say. It is called between the steps
// of nodes, while none of them runs, often from the goroutine of the node itself, so it must not
// wait for what a node holds while it asks for an effect. A function that returns another type than
// any is wrapped: World(func() any { return bank.Charges() }).
//
// What a body does behind an effect whose function returned an error, other than a dag.NotDone,
// counts as done inside that effect: nothing in the log says that the function has returned.
func World(see func() any) Option {
	return Option{name: "World", set: func(a *aids) { a.world = see }, empty: see == nil}
}

// Reset is called before each run, of which there are many: it puts the world back to what
// it was, and with it whatever nodes may learn from the world.
func Reset(reset func()) Option {
	return Option{name: "Reset", set: func(a *aids) { a.reset = reset }, empty: reset == nil}
}

// Answers are what a person answers to dag.Ask, by the key of the question: anything that
// JSON can say. dag.ErrSkipped skips the question, and dag.ErrExpired lets the time pass in
// which it could be answered. A key that no visit asks for is told.
func Answers(answers map[string]any) Option {
	return Option{name: "Answers", set: func(a *aids) { a.answers = answers }}
}

// Approvals lets gates stand before visits and effects, and is the person who decides: decide is
// asked about each action that needs an approval, again when a process has died before the
// verdict was durable.
func Approvals(gates dispatcher.Gates, decide func(dispatcher.Action) dispatcher.Verdict) Option {
	return Option{name: "Approvals", set: func(a *aids) { a.gates, a.decide = gates, decide }}
}

// Doubts is the person who looks at the other side of effects in doubt: settle says what came
// of each, after a crash, and of one that its visit asks about. Then what comes of such runs is
// compared as that of all others. It is for [Crash].
func Doubts(settle func(dispatcher.OpenEffect) dispatcher.Resolution) Option {
	return Option{name: "Doubts", set: func(a *aids) { a.settle = settle }, empty: settle == nil}
}

// Rebuild makes the graph, and what its nodes depend on, anew for each process, as a program
// does when it is started again: what nodes keep in variables is lost in a crash. Without it
// variables survive.
func Rebuild[S any](build func() *dag.Graph[S]) Option {
	return Option{name: "Rebuild", set: func(a *aids) { a.rebuild = build }, empty: build == nil}
}

// Run gives options to the call that runs the graph, dispatcher.Settings for example. It is not for
// dispatcher.Answering, which is refused where nothing waits yet: see [Answers].
func Run(options ...dispatcher.RunOption) Option {
	return Option{name: "Run", set: func(a *aids) { a.run = append(a.run, options...) }}
}

// Migrations are those that the dispatcher of the program has, for [Replay] of a run that an
// earlier version of the graph has made.
func Migrations(all ...dispatcher.Migration) Option {
	return Option{name: "Migrations", set: func(a *aids) { a.moves = append(a.moves, all...) }}
}

// SinceChange lets [Replay] try only what a run has done since it last came to another graph:
// what was done before can't be tried where today's graph no longer has the nodes that did it.
// A T with a method Logf is told what is left out.
func SinceChange() Option {
	return Option{name: "SinceChange", set: func(a *aids) { a.recent = true }}
}

// need panics where nobody could be told otherwise.
func need(t T, call string) {
	if t == nil {
		panic("pawltest: " + call + ": the T is nil: give it the *testing.T of the test")
	}
}

func contextOf(t T) context.Context {
	if c, ok := t.(interface{ Context() context.Context }); ok {
		return c.Context()
	}
	return context.Background()
}
