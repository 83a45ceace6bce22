package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/storetest"
)

func TestStore(t *testing.T) {
	openSealed := func(t testing.TB, dir string) *badgerstore.Store {
		s, err := badgerstore.OpenUnsynced(t.Context(), dir, sealedBy(t, keyOf(t, "k1", 1)))
		return opened(t, s, err)
	}
	for name, open := range map[string]opener{
		"synced": open, "unsynced": openUnsynced, "sealed": openSealed, "lone": openUnsynced, "format 1": openFormat(1), "format 2": openFormat(2),
	} {
		t.Run(name, func(t *testing.T) {
			f := &factory{open: open, attended: name == "lone"}
			var limits storetest.Limits
			if name == "synced" { // the limit is that of what is to be packed, and 64 MiB take their time
				limits.Append = badgerstore.MaxAppend
			}
			storetest.Run(t, storetest.Factory{
				Open: func(t testing.TB, dir string) checkpoint.Store {
					if name != "synced" {
						dir = memoryDir(t) // what waits for no disk needs none
					}
					return f.opened(t, dir)
				},
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
					return f.damaged(t, f.placeOf(s), d)
				},
				Fill: func(_ testing.TB, _ string, s checkpoint.Store) (free func()) {
					return f.placeOf(s).fill()
				},
				Limits: limits,
			})
		})
	}
}

// openFormat opens the store in dir, and makes one of that format if dir is empty.
func openFormat(format int) opener {
	return func(t testing.TB, dir string) *badgerstore.Store {
		t.Helper()
		path := filepath.Join(dir, "pawl.json")
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			text := fmt.Sprintf(`{"format":%d,"store":%q}`, format, uuid.NewString())
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return openUnsynced(t, dir)
	}
}

// A factory knows where its stores are.
type factory struct {
	open     opener
	attended bool     // who appends alone commits
	places   sync.Map // of *place, by checkpoint.Store
}

// An attendedStore says of each append that its caller goes on without it.
type attendedStore struct{ *badgerstore.Store }

type attendedContext struct{ context.Context }

func (attendedContext) Attended() {}

func (s *attendedStore) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	return s.Store.Append(attendedContext{ctx}, l, after, entries)
}

// A place is a store and its directory, and what becomes of them.
type place struct {
	dir   string
	store *badgerstore.Store
	given checkpoint.Store // what the suite has of it
	room  atomic.Int64     // on the device

	mu   sync.Mutex // held while the store commits
	dead bool
}

var errDead = errors.New("the process has died")

func (f *factory) opened(t testing.TB, dir string) checkpoint.Store {
	t.Helper()
	p := &place{dir: dir, store: f.open(t, dir)}
	p.store.CommitAnywhereWith(func(next func() error) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.dead {
			return errDead
		}
		return next()
	})
	p.room.Store(1 << 40)
	p.store.FreeWith(func() (int64, error) { return p.room.Load(), nil })
	if p.given = p.store; f.attended {
		p.given = &attendedStore{p.store}
	}
	f.places.Store(p.given, p)
	return p.given
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

// fill takes the room away, and makes the store look how much there is.
func (p *place) fill() (free func()) {
	p.room.Store(0)
	p.store.FreeWith(func() (int64, error) { return p.room.Load(), nil })
	return func() { p.room.Store(1 << 40) }
}

// damaged does the damage to the values of the database, below all checks, and returns a store that
// has nothing of the run in memory.
func (f *factory) damaged(t testing.TB, p *place, d storetest.Damage) (checkpoint.Store, error) {
	t.Helper()
	key := p.key(t, d.At)
	var instead []byte
	switch d.Kind {
	case storetest.Flipped:
		instead = p.value(t, key)
		instead[len(instead)/2] ^= 1
	case storetest.Forged:
		instead = p.value(t, key)
		if _, err := checkpoint.Unseal(instead); err != nil {
			t.Skip("without the key nobody forges an append")
		}
		instead = storetest.Forge(instead)
	case storetest.Foreign, storetest.Older:
		from := p.key(t, d.From)
		if d.At.Part == checkpoint.PartInfo && d.Kind == storetest.Older {
			instead = p.rowAt(t, from, d.From.Seq)
		} else {
			instead = p.value(t, from)
		}
	}
	if err := p.store.Put(t.Context(), key, instead); err != nil {
		t.Fatal(err)
	}
	if d.At.Part != checkpoint.PartInfo {
		return p.given, nil // the rest is read whenever somebody asks
	}
	if err := p.store.Close(); err != nil {
		t.Fatal(err)
	}
	return f.opened(t, p.dir), nil
}

// key returns the key of a thing that the store keeps.
func (p *place) key(t testing.TB, at storetest.Place) []byte {
	t.Helper()
	if at.Part == checkpoint.PartBase {
		return badgerstore.BaseKey(p.store, at.ID)
	}
	num := badgerstore.NumberOf(t, p.store, at.Run)
	switch at.Part {
	case checkpoint.PartLog:
		return badgerstore.LogKey(num, at.Seq)
	case checkpoint.PartSnapshot:
		return badgerstore.SnapshotKey(num, at.Seq)
	case checkpoint.PartPosts:
		return badgerstore.PostKey(num, at.ID)
	case checkpoint.PartInfo:
		return badgerstore.RowKey(num)
	}
	t.Skipf("a store of Badger keeps no %s", at.Part)
	return nil
}

// rowAt returns the row that a run had when its head was at that entry.
func (p *place) rowAt(t testing.TB, key []byte, seq uint64) []byte {
	t.Helper()
	for _, row := range versions(t, p.store, key) {
		if badgerstore.RowSeq(t, key, row) == seq {
			return row
		}
	}
	t.Fatalf("the run had no row at entry %d", seq)
	return nil
}

func (p *place) value(t testing.TB, key []byte) []byte {
	t.Helper()
	txn := p.store.Badger().NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	return valueOf(t, txn, key)
}
