package badgerstore_test

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/storetest"
)

func TestStore(t *testing.T) {
	for name, open := range map[string]opener{"synced": open, "unsynced": openUnsynced} {
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
	p.mu.Unlock()
	if err := p.store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
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
