package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// A Map is a cell that holds values by key. Parallel writes to different keys merge, two
// to one key conflict; Replace and Clear conflict with any other write. Keys are strings,
// integers or types that marshal themselves to text and back. The zero Map is empty.
type Map[K comparable, V any] struct {
	_ [0]*K
	_ [0]*V
	c keyedCell
}

// Len returns the number of keys.
func (m *Map[K, V]) Len() int { return m.c.len() }

// Get returns the value at k and whether there is one.
func (m *Map[K, V]) Get(k K) (V, bool) {
	s, err := encodeKey(k)
	if err != nil {
		return unpack[V](nil), false
	}
	b := m.c.get(s)
	return unpack[V](b), b != nil
}

// Has reports whether there is a value at k.
func (m *Map[K, V]) Has(k K) bool {
	s, err := encodeKey(k)
	return err == nil && m.c.get(s) != nil
}

// All yields keys and values as they stand when the loop begins, in the order of the
// encoded keys.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		c := m.c
		c.each(func(s string, b *box) bool { return yield(decodeKey[K](s), unpack[V](b)) })
	}
}

// Put writes v at k.
func (m *Map[K, V]) Put(k K, v V) {
	s, err := encodeKey(k)
	if err != nil {
		m.c.fail(err)
		return
	}
	b, err := pack(v)
	if err != nil {
		m.c.fail(err)
		return
	}
	m.c.put(s, b)
}

// Delete deletes k. It is a write also if there is no value at k.
func (m *Map[K, V]) Delete(k K) {
	s, err := encodeKey(k)
	if err != nil {
		m.c.fail(err)
		return
	}
	m.c.put(s, nil)
}

// Replace makes the keys and values of vs all that the map holds. Two keys of one text, as times of
// one instant may be, fail the visit.
func (m *Map[K, V]) Replace(vs map[K]V) {
	keys, err := packMap(vs)
	if err != nil {
		m.c.fail(err)
		return
	}
	m.c.replace(keys)
}

// Clear deletes everything.
func (m *Map[K, V]) Clear() { m.c.clear() }

// MarshalJSON returns an object.
func (m Map[K, V]) MarshalJSON() ([]byte, error) {
	return appendMembers(nil, false, m.c.each), nil
}

// UnmarshalJSON replaces the keys and values. Two texts of one key are an error.
func (m *Map[K, V]) UnmarshalJSON(b []byte) error {
	var raw map[string]V
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	vs := make(map[K]V, len(raw))
	for _, s := range slices.Sorted(maps.Keys(raw)) { // of several errors it is always the same one
		var k K
		if err := parseKey(s, &k); err != nil {
			return err
		}
		if _, ok := vs[k]; ok { // as "01" and "1" are one number
			return fmt.Errorf("key %q: %w", s, errTwice)
		}
		vs[k] = raw[s]
	}
	m.Replace(vs)
	return nil
}

// packMap encodes vs, in the order of the encoded keys: of several errors it is always the same
// one.
func packMap[K comparable, V any](vs map[K]V) (*node[string], error) {
	type entry struct {
		key string
		v   V
	}
	entries := make([]entry, 0, len(vs))
	var failed error // of several the one whose text is the first
	for k, v := range vs {
		s, err := encodeKey(k)
		if err != nil && (failed == nil || err.Error() < failed.Error()) {
			failed = err
		}
		entries = append(entries, entry{s, v})
	}
	if failed != nil {
		return nil, failed
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	leaves := make([]*node[string], len(entries))
	for i, e := range entries {
		if i+1 < len(entries) && e.key == entries[i+1].key {
			return nil, fmt.Errorf("two of the keys are %q", e.key)
		}
		b, err := pack(e.v)
		if err != nil {
			return nil, err
		}
		leaves[i] = leaf(e.key, b)
	}
	return grow(leaves), nil
}
