package dag

import "github.com/pawlgo/pawl/state"

// A Graph is a frozen, valid, acyclic set of nodes over a state type S. It is immutable and safe
// for concurrent use; any number of runs share one. If Build has not made it, because it is nil or
// the zero Graph, Plan returns nil, MarshalJSON an [*ArgumentError], and its other methods panic.
type Graph[S any] struct {
	plan *Plan
}

// Name returns the name that was given to [New].
func (g *Graph[S]) Name() string { return g.built("Name").Name }

// Digest identifies what the graph is, as "sha256:" and 64 hexadecimal digits. It is of names,
// kinds, edges, nested graphs and the types of cells, in the order in which they were given, except
// the order of the outcomes of an On. Policies, limits and bounds are no part of it.
func (g *Graph[S]) Digest() string { return g.built("Digest").Digest }

// Plan returns the graph without its type parameter, as dispatchers read it. It must
// not be changed. It is nil if g is nil or the zero Graph.
func (g *Graph[S]) Plan() *Plan {
	if g == nil {
		return nil
	}
	return g.plan
}

// built is the plan of a graph that Build made.
func (g *Graph[S]) built(call string) *Plan {
	p := g.Plan()
	need(p != nil, "Graph."+call, "Graph", "make one with Build")
	return p
}

// schemaOf is here so that Build and Plan agree on where a schema comes from.
func schemaOf[S any]() (*state.Schema, error) { return state.Of[S]() }
