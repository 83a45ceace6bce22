package dag

import (
	"cmp"
	"fmt"
	"slices"
)

func (b *build) checkName(i int) {
	n := b.nodes[i]
	if err := CheckName(n.name); err != nil {
		b.report(n, "", "%s (it is node number %d)", bare(err), i+1)
	}
	b.names[n.name]++
	if b.names[n.name] == 2 {
		b.report(n, "", "the name is taken by an earlier node")
	}
}

// checkKind checks what nodes of one kind have and others have not.
func (b *build) checkKind(n *node) {
	switch n.kind {
	case KindStep, KindRoute:
		if n.run == nil {
			b.report(n, "", "its function is nil")
		}
	case KindChoose:
		if n.choose == nil {
			b.report(n, "", "its function is nil")
		}
	case KindLoop:
		if n.until == nil {
			b.report(n, "", "its function until is nil")
		}
		if n.most < 1 {
			b.report(n, "", "it may run %d times: most has to be at least 1", n.most)
		}
	case KindEmbed:
		if n.in == nil {
			b.report(n, "", "its function in is nil")
		}
		if n.out == nil {
			b.report(n, "", "its function out is nil")
		}
	case KindEach:
		b.checkItems(n)
	}
	if !n.nests() {
		return
	}
	if n.body == nil {
		b.report(n, "", "its graph is nil or has not been built: give the one that Build returned")
		return
	}
	if depth := 1 + n.body.Depth; depth > MaxDepth {
		b.limit(n, "depth", depth, MaxDepth, fmt.Sprintf("graphs are nested %d deep, the limit is %d", depth, MaxDepth))
	}
}

// nests reports whether n needs a graph.
func (n *node) nests() bool {
	return n.kind == KindLoop || n.kind == KindEmbed || n.kind == KindEach && n.item.Kind == KindEmbed
}

func (b *build) checkItems(n *node) {
	if n.items == nil {
		b.report(n, "", "its function items is nil")
	}
	if !n.nests() {
		if n.item.RunItem == nil {
			b.report(n, "", "its function is nil")
		}
		return
	}
	if n.item.InItem == nil {
		b.report(n, "", "its function in is nil")
	}
	if n.item.OutItem == nil {
		b.report(n, "", "its function out is nil")
	}
}

func (b *build) checkPolicy(n *node) {
	p := n.policy
	switch {
	case n.kind != KindEach && p.Parallel != 0:
		b.report(n, "", "Policy.Parallel belongs to an Each")
	case p.Parallel < 0:
		b.report(n, "", "Policy.Parallel is negative: %d", p.Parallel)
	}
	switch {
	case n.kind != KindEach && p.Errors != Stop:
		b.report(n, "", "Policy.Errors belongs to an Each")
	case p.Errors > Collect:
		b.report(n, "", "Policy.Errors is neither Stop nor Collect: %d", p.Errors)
	}
	if n.nests() {
		for _, field := range []struct {
			name string
			set  bool
		}{
			{"Attempts", p.Attempts != 0},
			{"Timeout", p.Timeout != 0},
			{"Backoff", p.Backoff != Backoff{}},
			{"Retry", p.Retry != nil},
			{"Access", p.Access != 0},
		} {
			if field.set {
				b.report(n, "", "Policy.%s belongs to the nodes of its graph, not to itself",
					field.name)
			}
		}
		return
	}
	if p.Access > Writes {
		b.report(n, "", "Policy.Access is neither Reads nor Writes: %d", p.Access)
	}
	if p.Attempts < 0 {
		b.report(n, "", "Policy.Attempts is negative: %d", p.Attempts)
	}
	if p.Timeout < 0 {
		b.report(n, "", "Policy.Timeout is negative: %v", p.Timeout)
	}
	for _, wrong := range p.Backoff.problems() {
		b.report(n, "", "Policy.Backoff %s", wrong)
	}
}

// checkOutcomes reports whether the outcomes that n declares can be told apart.
func (b *build) checkOutcomes(n *node) bool {
	if n.kind != KindRoute && n.kind != KindChoose {
		return true
	}
	if len(n.outcomes) == 0 {
		b.report(n, "", "a %s needs outcomes", n.kind)
		return false
	}
	sound := true
	seen := make(map[string]int)
	for _, o := range n.outcomes {
		if wrong := checkOutcome(o); wrong != "" {
			b.report(n, o, "outcome %q %s", o, wrong)
			sound = false
		}
		if seen[o]++; seen[o] == 2 {
			b.report(n, o, "outcome %q is declared twice", o)
			sound = false
		}
	}
	return sound
}

// checkEdges checks what n follows, edge by edge.
func (b *build) checkEdges(n *node) {
	for _, fault := range n.faults {
		b.report(n, "", "%s", fault)
	}
	for leaf := range leaves(n.after) {
		from := b.nodes[leaf.Node]
		seen := make(map[string]int, len(leaf.On))
		for _, o := range leaf.On {
			seen[o]++
			switch {
			case seen[o] == 2:
				b.report(n, o, "names outcome %q of node %q twice", o, from.name)
			case seen[o] == 1 && !slices.Contains(from.outcomes, o):
				b.report(n, o, "follows outcome %q of node %q, which declares %s",
					o, from.name, cmp.Or(quoted(from.outcomes, ", "), "none"))
			}
		}
	}
}

// checkFollowed reports the outcomes of node i that lead nowhere.
func (b *build) checkFollowed(i int) {
	n := b.nodes[i]
	if b.plain[i] || (n.kind == KindLoop || n.kind == KindEach) && b.followed[i] == nil {
		return
	}
	seen := make(map[string]bool)
	for _, o := range n.outcomes {
		if !seen[o] && !b.followed[i][o] {
			b.report(n, o, "outcome %q is followed by no node: follow it, or name it in End", o)
		}
		seen[o] = true
	}
}
