package badgerstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/storetest"
)

func TestStore(t *testing.T) {
	openSealed := func(t testing.TB, dir string) *badgerstore.Store {
		s, err := badgerstore.OpenUnsynced(t.Context(), dir, sealedBy(t, keyOf(t, "k1", 1)))
		return opened(t, s, err)
	}
	for name, open := range map[string]opener{"synced": open, "unsynced": openUnsynced, "sealed": openSealed} {
		t.Run(name, func(t *testing.T) {
			f := &factory{open: open}
			storetest.Run(t, storetest.Factory{
				Open: func(t testing.TB, dir string) checkpoint.Store { return f.opened(t, dir) },
				Reopen: func(t testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
					p := f.placeOf(s)
					if err := p.store.Close(); err != nil {
						t.Fatal(err)
					}
					return f.opened(t, p.dir)
				},
				Crash: func(t testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
					return f.opened(t, f.placeOf(s).die(t))
				},
				Corrupt: func(t testing.TB, _ string, s checkpoint.Store, d storetest.Damage) (checkpoint.Store, error) {
					f.placeOf(s).damage(t, d)
					return s, nil
				},
				Fill: func(t testing.TB, _ string, s checkpoint.Store) (free func()) {
					return f.placeOf(s).fill(t)
				},
				Limits: storetest.Limits{Append: badgerstore.MaxAppend},
			})
		})
	}
}

// A factory knows where its stores are.
type factory struct {
	open   opener
	places sync.Map // of *place, by checkpoint.Store
}

// A place is a store and its directory, and what becomes of them.
type place struct {
	dir   string
	store *badgerstore.Store
	room  atomic.Int64 // on the device

	mu   sync.Mutex // held while the store commits
	dead bool
}

var errDead = errors.New("the process has died")

func (f *factory) opened(t testing.TB, dir string) checkpoint.Store {
	t.Helper()
	p := &place{dir: dir, store: f.open(t, dir)}
	p.store.CommitWith(func(next func() error) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.dead {
			return errDead
		}
		return next()
	})
	p.room.Store(1 << 40)
	p.store.FreeWith(func() (int64, error) { return p.room.Load(), nil })
	f.places.Store(checkpoint.Store(p.store), p)
	return p.store
}

func (f *factory) placeOf(s checkpoint.Store) *place {
	p, _ := f.places.Load(s)
	return p.(*place)
}

// die returns a copy of the directory as it is between two commits, behind which none is made:
// what is left when the process is killed. (Others kill processes: see TestKilledAgainAndAgain.)
func (p *place) die(t testing.TB) (dir string) {
	t.Helper()
	p.mu.Lock()
	p.dead = true
	dir = copyDir(t, p.dir)
	for again := copyDir(t, p.dir); !sameFiles(t, dir, again); again = copyDir(t, p.dir) {
		dir = again // the database is writing what was committed to a table
	}
	p.mu.Unlock()
	if err := p.store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sameFiles reports whether two directories have the same files with the same bytes.
func sameFiles(t testing.TB, one, other string) bool {
	t.Helper()
	files := filesOf(t, one)
	if !slices.Equal(files, filesOf(t, other)) {
		return false
	}
	for _, file := range files {
		a, _, err := head(filepath.Join(one, file))
		b, _, otherErr := head(filepath.Join(other, file))
		if err = errors.Join(err, otherErr); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			return false
		}
	}
	return true
}

// fill takes the room away, and writes so much that the store looks how much there is.
func (p *place) fill(t testing.TB) (free func()) {
	t.Helper()
	p.room.Store(0)
	l, err := p.store.Acquire(t.Context(), "filler", "owner")
	if err != nil {
		t.Fatal(err)
	}
	big := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(12<<20))}}
	if _, err := p.store.Append(t.Context(), l, checkpoint.Head{}, big); !errors.Is(err, checkpoint.ErrFull) {
		t.Fatalf("Append of much = %v, want ErrFull", err)
	}
	return func() { p.room.Store(1 << 40) }
}

// damage does it to the values of the database, below all checks.
func (p *place) damage(t testing.TB, d storetest.Damage) {
	t.Helper()
	key := badgerstore.LogKey(badgerstore.NumberOf(t, p.store, d.Run), d.Seq)
	var instead []byte
	switch d.Kind {
	case storetest.Flipped:
		instead = p.value(t, key)
		instead[len(instead)/2] ^= 1
	case storetest.Foreign, storetest.Older:
		instead = p.value(t, badgerstore.LogKey(badgerstore.NumberOf(t, p.store, d.From), d.FromSeq))
	}
	if err := p.store.Put(t.Context(), key, instead); err != nil {
		t.Fatal(err)
	}
}

func (p *place) value(t testing.TB, key []byte) []byte {
	t.Helper()
	txn := p.store.Badger().NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	item, err := txn.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	value, err := item.ValueCopy(nil)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
