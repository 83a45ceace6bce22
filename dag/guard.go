package dag

import (
	"iter"
	"slices"
)

// How Build decides whether edges exclude each other, or are always taken together.
//
//  1. A variable is a node that can go more than one way: a Route, a Loop or an Each, whose
//     domain are its outcomes, and any other node whose failure is followed, whose domain
//     is to finish well. Where the failure is followed the domain has "failed" in it too.
//     Each outcome of a Choose is a variable more, chosen or not: they don't exclude each
//     other. The variables of a node are numbered behind those of the nodes before it.
//  2. A guard says under which values of the variables a node may run, as one set of
//     values for each variable: all of them at once have to hold. A variable whose set is
//     its whole domain is left out, so the guard without variables means always.
//  3. The guard of an edge is the guard of the node that it leaves, and of that node the
//     outcomes named, those that are not "failed", or "failed". An outcome of a Choose that
//     is named is chosen and the node not "failed"; of several the guard is the union.
//  4. The guard of All is the intersection: per variable. If a set becomes empty, it can
//     never be taken.
//  5. The guard of Any is the union. Guards that differ in one variable only, or in none,
//     are united first, until no pair does: that union is exact. Any other union is the
//     hull, per variable the union of the sets: it may promise too much, and is inexact.
//     What is made from an inexact guard is inexact.
//  6. Two guards exclude each other if their sets of some variable are disjoint. An
//     inexact guard is too wide, never too narrow, so this holds for it too.
//  7. Two guards are the same if both are exact and their sets are equal. Nothing inexact
//     is the same as anything.
type guard struct {
	terms *term
	exact bool
}

// A term restricts one variable. Terms are lists, which guards share: a node adds at most
// one term to what holds for the node that it follows, so a long graph has short guards
// in memory. Invariants: variables descend along next; in is neither empty nor the whole
// domain; terms don't change.
type term struct {
	variable int
	in       set
	next     *term
}

// always is the guard of a node that follows nothing.
var always = guard{exact: true}

// meet returns the intersection of g and h. If that is empty, it returns false and the
// variable whose sets are disjoint.
func meet(g, h guard) (both guard, empty int, ok bool) {
	var own []term
	var shared *term
	for a, b := range pairs(g.terms, h.terms) {
		if a == b {
			shared = a
			break
		}
		switch {
		case a == nil:
			own = append(own, *b)
		case b == nil:
			own = append(own, *a)
		case !a.in.meets(b.in):
			return guard{}, a.variable, false
		default:
			own = append(own, term{variable: a.variable, in: a.in.and(b.in)})
		}
	}
	return guard{link(own, shared), g.exact && h.exact}, 0, true
}

// excludes reports whether g and h can't both hold.
func excludes(g, h guard) bool {
	for a, b := range pairs(g.terms, h.terms) {
		if a == b {
			return false
		}
		if a != nil && b != nil && !a.in.meets(b.in) {
			return true
		}
	}
	return false
}

// same reports whether g and h are known to hold together or not at all.
func same(g, h guard) bool {
	return g.exact && h.exact && differences(g, h, 1) == 0
}

// differences counts the variables about which g and h don't say the same, up to most.
func differences(g, h guard, most int) int {
	n := 0
	for a, b := range pairs(g.terms, h.terms) {
		if a == b || n == most {
			break
		}
		if a == nil || b == nil || !slices.Equal(a.in, b.in) {
			n++
		}
	}
	return n
}

// union returns the union of guards, of which there is at least one. domains gives for
// each variable the number of its values.
func union(guards []guard, domains []int) guard {
	var apart []guard // every two of them differ in more than one variable
	for _, g := range guards {
		for i := 0; i < len(apart); i++ {
			if differences(apart[i], g, 2) < 2 {
				exact := apart[i].exact && g.exact
				g = hull(apart[i], g, domains)
				g.exact = exact
				apart = slices.Delete(apart, i, i+1)
				i = -1 // what became wider may be united with more
			}
		}
		apart = append(apart, g)
	}
	all := apart[0]
	for _, g := range apart[1:] {
		all = hull(all, g, domains)
	}
	return all
}

// hull returns the narrowest guard that holds where g or h does, and calls it inexact.
func hull(g, h guard, domains []int) guard {
	var own []term
	for a, b := range pairs(g.terms, h.terms) {
		if a == b {
			return guard{terms: link(own, a)}
		}
		if a == nil || b == nil {
			continue // unconstrained in one of them
		}
		if in := a.in.or(b.in); in.count() < domains[a.variable] {
			own = append(own, term{variable: a.variable, in: in})
		}
	}
	return guard{terms: link(own, nil)}
}

// link returns the list of terms, followed by tail.
func link(terms []term, tail *term) *term {
	for _, t := range slices.Backward(terms) {
		t.next = tail
		tail = &t
	}
	return tail
}

// pairs yields what two lists say about each variable that one of them mentions: nil
// where it says nothing. Where it yields the same term twice the lists are one from there.
func pairs(a, b *term) iter.Seq2[*term, *term] {
	return func(yield func(a, b *term) bool) {
		for a != nil || b != nil {
			var x, y *term
			if b == nil || a != nil && a.variable >= b.variable {
				x = a
			}
			if a == nil || b != nil && b.variable >= a.variable {
				y = b
			}
			if !yield(x, y) {
				return
			}
			if x != nil {
				a = x.next
			}
			if y != nil {
				b = y.next
			}
		}
	}
}
