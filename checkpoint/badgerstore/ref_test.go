package badgerstore

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// What the requests of a group have changed of a base is undone if the group is not made durable,
// whatever they were and in which order: the base is what the disk says.
func TestShelfIsThatOfTheDisk(t *testing.T) {
	t.Parallel()
	s, err := OpenUnsynced(t.Context(), t.TempDir(), Options{MemTableSize: leastMemTable})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	damaged := checkpoint.Damage("a test")
	leaves, joins := ref{by: -1}, ref{by: 1}
	heals := ref{by: 1, heals: true, large: true, pieces: attempt{number: 2}}
	makes := ref{by: 1, makes: true, large: true, pieces: attempt{number: 3}}
	whole := shelf{count: 2, large: true, pieces: attempt{number: 1}}
	for name, c := range map[string]struct {
		is      shelf
		changes []ref
		want    shelf // while it is written
		undone  int
	}{
		"two deletions":               {whole, []ref{leaves, leaves}, shelf{}, 0},
		"more than there are":         {whole, []ref{leaves, leaves, leaves}, shelf{}, 0},
		"a deletion and a fork":       {whole, []ref{leaves, joins}, whole, 0},
		"the last and who makes it":   {whole, []ref{leaves, leaves, makes}, shelf{count: 1, large: true, pieces: makes.pieces}, 1},
		"who heals it and a deletion": {shelf{count: 2, damage: damaged}, []ref{heals, leaves}, shelf{count: 2, large: true, pieces: heals.pieces}, 1},
		"who makes it and a deletion": {shelf{}, []ref{makes, leaves}, shelf{}, 1},
	} {
		b, h, g := &base{digest: name, shelf: c.is, users: 1}, &hold{s: s}, new(group)
		for _, r := range c.changes {
			q := newRequest()
			r.base, r.hold = b, h
			q.refs = append(q.refs, r)
			q.state.Store(taken)
			g.add(q)
		}
		s.committing.Lock()
		s.admit(g)
		if len(g.refused) > 0 || b.shelf != c.want || b.inFlight != len(c.changes) {
			t.Errorf("%s: while it is written the base is %+v, want %+v: %v", name, b.shelf, c.want, g.refused)
		}
		s.settle(g, false)
		s.committing.Unlock()
		if b.shelf != c.is || b.inFlight != 0 || b.writing != 0 || b.undone != c.undone {
			t.Errorf("%s: when it is undone the base is %+v, want %+v", name, b, c.is)
		}
	}
	b := &base{digest: "damaged", shelf: shelf{count: 2, damage: damaged}}
	q := newRequest()
	q.refs = []ref{{by: -1, base: b, hold: &hold{s: s}}}
	if err := q.counts(); !errors.Is(err, checkpoint.ErrCorrupt) || b.count != 2 {
		t.Errorf("a deletion from a base that is kept nobody knows how = %v, and there are %d runs, want ErrCorrupt and 2", err, b.count)
	}
}
