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
//  2. A term list says under which values of the variables a node may run, as one set of
//     values for each variable: all of them at once have to hold. A variable whose set is
//     its whole domain is left out, so the empty list means always. A guard is one such
//     list, or a few of them, of which one has to hold.
//  3. The guard of an edge is the guard of the node that it leaves, and of that node the
//     outcomes named, those that are not "failed", or "failed". An outcome of a Choose that
//     is named is chosen and the node not "failed"; of several the guard is the union.
//  4. The guard of All is the intersection: per variable, of every list with every other. A
//     list in which a set becomes empty is dropped; if none is left, it can never be taken.
//  5. The guard of Any is the union. Lists that differ in one variable only, or in none,
//     are united first, until no pair does: that union is exact. What is left apart then
//     stays apart, up to a few lists; more become their hull, per variable the union of the
//     sets, which may promise too much. A guard of several lists, a hull, and what is made
//     from them are inexact.
//  6. Two guards exclude each other if every list of one has, with every list of the
//     other, a variable whose sets are disjoint. An inexact guard is too wide or as wide
//     as it should be, never too narrow, so this holds for it too.
//  7. Two guards are the same if both are exact and their sets are equal. Nothing inexact
//     is the same as anything.
type guard struct {
	terms *term
	more  []*term // the other lists, in place of any of which terms may hold
	exact bool
}

// mostLists bounds the lists of a guard, and so what Build costs.
const mostLists = 8

// lists yields all lists of g.
func (g guard) lists(yield func(*term) bool) {
	if !yield(g.terms) {
		return
	}
	for _, t := range g.more {
		if !yield(t) {
			return
		}
	}
}

// narrowed returns g with one more restriction of a variable behind all of g's.
func (g guard) narrowed(variable int, in set) guard {
	narrow := guard{terms: &term{variable, in, g.terms}, exact: g.exact}
	for _, t := range g.more {
		narrow.more = append(narrow.more, &term{variable, in, t})
	}
	return narrow
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

// meet returns the intersection of g and h. If that is empty, it returns false and a
// variable whose sets are disjoint.
func meet(g, h guard, domains []int) (both guard, empty int, ok bool) {
	if g.more == nil && h.more == nil {
		both.exact = g.exact && h.exact
		both.terms, empty, ok = meetLists(g.terms, h.terms)
		return both, empty, ok
	}
	var all []guard // inexact, as one of several lists is
	for a := range g.lists {
		for b := range h.lists {
			terms, variable, some := meetLists(a, b)
			if !some {
				empty = variable
				continue
			}
			all = append(all, guard{terms: terms})
		}
	}
	if all == nil {
		return guard{}, empty, false
	}
	return union(all, domains), 0, true
}

// meetLists is meet of two lists.
func meetLists(g, h *term) (both *term, empty int, ok bool) {
	var own []term
	var shared *term
	for a, b := range pairs(g, h) {
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
			return nil, a.variable, false
		default:
			own = append(own, term{variable: a.variable, in: a.in.and(b.in)})
		}
	}
	return link(own, shared), 0, true
}

// excludes reports whether g and h can't both hold.
func excludes(g, h guard) bool {
	for a := range g.lists {
		for b := range h.lists {
			if !disjoint(a, b) {
				return false
			}
		}
	}
	return true
}

// disjoint reports whether two lists can't both hold.
func disjoint(g, h *term) bool {
	for a, b := range pairs(g, h) {
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
	return g.exact && h.exact && differences(g.terms, h.terms, 1) == 0
}

// differences counts the variables about which g and h don't say the same, up to most.
func differences(g, h *term, most int) int {
	n := 0
	for a, b := range pairs(g, h) {
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
	var apart []guard // of one list each; every two of them differ in more than one variable
	for _, g := range guards {
		for terms := range g.lists {
			apart = unite(apart, guard{terms: terms, exact: g.exact}, domains)
		}
	}
	if len(apart) == 1 {
		return apart[0]
	}
	all := apart[0]
	for _, g := range apart[1:] {
		if len(apart) > mostLists {
			all = hull(all.terms, g.terms, domains)
			continue
		}
		all.more, all.exact = append(all.more, g.terms), false
	}
	return all
}

// unite adds g, of one list, to guards that stand apart, united with those that differ from
// it in one variable at most.
func unite(apart []guard, g guard, domains []int) []guard {
	for i := 0; i < len(apart); i++ {
		if differences(apart[i].terms, g.terms, 2) < 2 {
			exact := apart[i].exact && g.exact
			g = hull(apart[i].terms, g.terms, domains)
			g.exact = exact
			apart = slices.Delete(apart, i, i+1)
			i = -1 // what became wider may be united with more
		}
	}
	return append(apart, g)
}

// hull returns the narrowest guard of one list that holds where g or h does, and calls it
// inexact.
func hull(g, h *term, domains []int) guard {
	var own []term
	for a, b := range pairs(g, h) {
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
