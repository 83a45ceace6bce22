package main

import (
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// mostThoughts is how often the model is asked for the next step, at most.
const mostThoughts = 8

// gates say who has to approve what the agent does. They are of the program and not of a prompt, so
// no text takes them away: a tool that is not declared to read waits for a person.
var gates = dispatcher.Gates{Preset: dispatcher.GateWrites}

// newGraph joins the nodes, which change nothing outside but by effects.
func newGraph(a *Agent) (*dag.Graph[Mind], error) {
	round, err := newBody(a)
	if err != nil {
		return nil, err
	}
	b := dag.New[Mind]("agent")
	begin := dag.Step(b, "begin", Begin).With(dag.Policy{Access: dag.Reads})
	work := dag.Loop(b, "work", round, concluded, mostThoughts, begin)
	dag.Step(b, "write", a.Write, work).With(patience())
	return b.Build()
}

// newBody is one round: a thought, and what it wants done, side by side.
func newBody(a *Agent) (*dag.Graph[Mind], error) {
	b := dag.New[Mind]("round")
	think := dag.Route(b, "think", a.Think, []Next{Act, Settle}).With(patience())
	form := dag.Each(b, "form", pending, a.Form, think.On(Act)).With(dag.Policy{Access: dag.Reads})
	dag.Each(b, "act", pending, a.Act, form).With(patience())
	dag.End(b, think.On(Settle))
	return b.Build()
}

func concluded(m *Mind) bool { return m.Conclusion.IsSet() }
