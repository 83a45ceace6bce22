package dag

import "github.com/pawlgo/pawl/state"

// A Graph is a frozen, valid, acyclic set of nodes over a state type S. It is immutable
// and safe for concurrent use; any number of runs share one.
type Graph[S any] struct {
	plan *Plan
}

// Name returns the name that was given to [New].
func (g *Graph[S]) Name() string { return g.plan.Name }

// Digest identifies what the graph is: names, kinds, edges, nested graphs and the types
// of cells, as "sha256:" and 64 hexadecimal digits. Policies, limits and bounds are no
// part of it.
func (g *Graph[S]) Digest() string { return g.plan.Digest }

// Plan returns the graph without its type parameter, as dispatchers read it. It must
// not be changed.
func (g *Graph[S]) Plan() *Plan { return g.plan }

// schemaOf is here so that Build and Plan agree on where a schema comes from.
func schemaOf[S any]() (*state.Schema, error) { return state.Of[S]() }
