package state

import (
	"cmp"
	"hash/maphash"
)

// A node is a persistent sorted map, as a treap: sorted by key, a heap by priority. The
// priority is a hash of the key, so the shape follows from the keys alone. Nodes never
// change; a write copies the path to its place. The nil node is the empty map.
type node[K cmp.Ordered] struct {
	key         K
	val         *box // nil where a draft deleted the key
	prio        uint32
	n           int32
	left, right *node[K]
}

var seed = maphash.MakeSeed()

func leaf[K cmp.Ordered](k K, v *box) *node[K] {
	return &node[K]{key: k, val: v, prio: uint32(maphash.Comparable(seed, k)), n: 1}
}

func (t *node[K]) len() int {
	if t == nil {
		return 0
	}
	return int(t.n)
}

// find returns the node of k, or nil.
func (t *node[K]) find(k K) *node[K] {
	for t != nil && t.key != k {
		if k < t.key {
			t = t.left
		} else {
			t = t.right
		}
	}
	return t
}

// above orders nodes in the heap; keys settle equal priorities.
func (t *node[K]) above(u *node[K]) bool {
	return t.prio > u.prio || t.prio == u.prio && t.key < u.key
}

func (t *node[K]) with(left, right *node[K]) *node[K] {
	return &node[K]{t.key, t.val, t.prio, int32(left.len() + right.len() + 1), left, right}
}

// put returns t with v at k.
func (t *node[K]) put(k K, v *box) *node[K] {
	if found := t.find(k); found != nil {
		return t.replace(k, v)
	}
	return t.insert(leaf(k, v))
}

// replace returns t, which has k, with v at k.
func (t *node[K]) replace(k K, v *box) *node[K] {
	u := *t
	switch {
	case k < t.key:
		u.left = t.left.replace(k, v)
	case k > t.key:
		u.right = t.right.replace(k, v)
	default:
		u.val = v
	}
	return &u
}

// insert returns t with x, whose key t has not.
func (t *node[K]) insert(x *node[K]) *node[K] {
	if t == nil || x.above(t) {
		left, right := t.split(x.key)
		return x.with(left, right)
	}
	if x.key < t.key {
		return t.with(t.left.insert(x), t.right)
	}
	return t.with(t.left, t.right.insert(x))
}

// split returns what is below k, and what is not.
func (t *node[K]) split(k K) (below, rest *node[K]) {
	if t == nil {
		return nil, nil
	}
	if t.key < k {
		below, rest = t.right.split(k)
		return t.with(t.left, below), rest
	}
	below, rest = t.left.split(k)
	return below, t.with(rest, t.right)
}

// del returns t without k.
func (t *node[K]) del(k K) *node[K] {
	if t.find(k) == nil {
		return t
	}
	return t.remove(k)
}

func (t *node[K]) remove(k K) *node[K] {
	switch {
	case k < t.key:
		return t.with(t.left.remove(k), t.right)
	case k > t.key:
		return t.with(t.left, t.right.remove(k))
	}
	return join(t.left, t.right)
}

// join returns left and right as one; all keys of left are below those of right.
func join[K cmp.Ordered](left, right *node[K]) *node[K] {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.above(right):
		return left.with(left.left, join(left.right, right))
	}
	return right.with(join(left, right.left), right.right)
}

// each yields keys in order; it returns false if yield did.
func (t *node[K]) each(yield func(K, *box) bool) bool {
	return t == nil || t.left.each(yield) && yield(t.key, t.val) && t.right.each(yield)
}

// grow builds a tree of n nodes that next returns sorted, in O(n). The nodes must be
// leaves that nobody else has.
func grow[K cmp.Ordered](sorted []*node[K]) *node[K] {
	var spine []*node[K] // the path from the root to the last node
	for _, x := range sorted {
		var under *node[K]
		for len(spine) > 0 && x.above(spine[len(spine)-1]) {
			under = spine[len(spine)-1]
			spine = spine[:len(spine)-1]
			under.n = int32(under.left.len() + under.right.len() + 1)
		}
		x.left = under
		if len(spine) > 0 {
			spine[len(spine)-1].right = x
		}
		spine = append(spine, x)
	}
	for i := len(spine) - 1; i >= 0; i-- {
		spine[i].n = int32(spine[i].left.len() + spine[i].right.len() + 1)
	}
	if len(spine) == 0 {
		return nil
	}
	return spine[0]
}

// overlay yields in order what base shows under over, whose nil values hide keys.
func overlay[K cmp.Ordered](base, over *node[K], yield func(K, *box) bool) bool {
	if over == nil {
		return base.each(yield)
	}
	if base == nil {
		return over.each(func(k K, v *box) bool { return v == nil || yield(k, v) })
	}
	// Split base at the root of over: what is left of it is merged with over's left.
	below, rest := base.split(over.key)
	if !overlay(below, over.left, yield) {
		return false
	}
	if over.val != nil && !yield(over.key, over.val) {
		return false
	}
	if rest.find(over.key) != nil {
		rest = rest.remove(over.key)
	}
	return overlay(rest, over.right, yield)
}
