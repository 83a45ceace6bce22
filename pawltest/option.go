package pawltest

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A T is what is told the findings of a test, such as a *testing.T. If it has a method Context, as
// *testing.T has, runs end with that context.
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

// World lets a test see what nodes do outside their state. The function see returns what they act
// on, such as a count of letters sent or a copy of a table, as anything that JSON can say. If yours
// returns another type than any, wrap it: World(func() any { return bank.Charges() }).
//
// see is called between the steps of nodes, while none of them runs, often from the goroutine of
// the node itself. So it must not wait for something that a node holds while it asks for an effect.
//
// If the function of an effect returned an error other than a dag.NotDone, what the body does
// behind that effect counts as done inside it: nothing in the log says that the function has
// returned.
func World(see func() any) Option {
	return Option{name: "World", set: func(a *aids) { a.world = see }, empty: see == nil}
}

// Reset has reset called before each run, of which there are many. It puts the world back to what
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

// Approvals puts gates before visits and effects and is the person who decides. The function decide
// is asked about each action that needs an approval, and asked again if a process has died before
// the verdict was durable.
func Approvals(gates dispatcher.Gates, decide func(dispatcher.Action) dispatcher.Verdict) Option {
	return Option{name: "Approvals", set: func(a *aids) { a.gates, a.decide = gates, decide }}
}

// Doubts is the person who looks at the other side of effects in doubt. After a crash settle says
// what came of each of them, and of one that its visit asks about. Runs with effects in doubt are
// then compared as all others are. It is for [Crash].
func Doubts(settle func(dispatcher.OpenEffect) dispatcher.Resolution) Option {
	return Option{name: "Doubts", set: func(a *aids) { a.settle = settle }, empty: settle == nil}
}

// Rebuild makes the graph, and what its nodes depend on, anew for each process, as a program does
// when it is started again. What nodes keep in variables is then lost in a crash. Without Rebuild
// variables survive.
func Rebuild[S any](build func() *dag.Graph[S]) Option {
	return Option{name: "Rebuild", set: func(a *aids) { a.rebuild = build }, empty: build == nil}
}

// Run gives options, such as dispatcher.Settings, to the call that runs the graph. It does not take
// dispatcher.Answering, which is refused where nothing waits yet: see [Answers].
func Run(options ...dispatcher.RunOption) Option {
	return Option{name: "Run", set: func(a *aids) { a.run = append(a.run, options...) }}
}

// Migrations are those of the program's dispatcher, for a [Replay] of a run that an earlier version
// of the graph has made.
func Migrations(all ...dispatcher.Migration) Option {
	return Option{name: "Migrations", set: func(a *aids) { a.moves = append(a.moves, all...) }}
}

// SinceChange lets [Replay] try only what a run has done since it last came to another graph. What
// it did before can't be tried if today's graph no longer has the nodes that did it. A T with a
// method Logf is told what is left out.
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
