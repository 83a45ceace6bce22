package pawltest

import (
	"context"

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
	set func(*aids)
}

// aids are what the options say together.
type aids struct {
	world   func() any
	reset   func()
	answers map[string]any
	rebuild any // func() *dag.Graph[S]
	run     []dispatcher.RunOption
}

// World lets a test see what nodes do outside their state: see returns what they act on, a
// count of letters sent or a copy of a table, as anything that JSON can say. It is called
// between the steps of nodes, while none of them runs, often from the goroutine of the node
// itself, so it must not wait for what a node holds while it asks for an effect.
func World(see func() any) Option { return Option{func(a *aids) { a.world = see }} }

// Reset is called before each run, of which there are many: it puts the world back to what
// it was, and with it whatever nodes may learn from the world.
func Reset(reset func()) Option { return Option{func(a *aids) { a.reset = reset }} }

// Answers are what a person answers to dag.Ask, by the key of the question: anything that
// JSON can say.
func Answers(answers map[string]any) Option { return Option{func(a *aids) { a.answers = answers }} }

// Rebuild makes the graph, and what its nodes depend on, anew for each process, as a program
// does when it is started again: what nodes keep in variables is lost in a crash. Without it
// variables survive.
func Rebuild[S any](build func() *dag.Graph[S]) Option {
	return Option{func(a *aids) { a.rebuild = build }}
}

// Run gives options to the call that runs the graph, dispatcher.Settings for example.
func Run(options ...dispatcher.RunOption) Option {
	return Option{func(a *aids) { a.run = append(a.run, options...) }}
}

func contextOf(t T) context.Context {
	if c, ok := t.(interface{ Context() context.Context }); ok {
		return c.Context()
	}
	return context.Background()
}
