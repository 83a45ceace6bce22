package badgerstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// verified is what a Verify of the whole store finds.
func verified(t *testing.T, s *badgerstore.Store) (all []string) {
	t.Helper()
	for f, err := range s.Verify(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f.String())
	}
	return all
}

// shelvedLibrary is a store with runs, forks of one of them, posts and large values, of which some
// were deleted again.
func shelvedLibrary(t *testing.T) *badgerstore.Store {
	s := openUnsynced(t, t.TempDir())
	stock(t, s, 1<<20)
	if err := s.Fork(t.Context(), forkstoreFork(forkstoreBase(1), 1, "fork 0", "fork 1", "fork 2")); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"run 0", "fork 1"} {
		if err := s.Delete(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A store that is whole has no findings, and progress is told of every run.
func TestVerifyOfAWholeStore(t *testing.T) {
	t.Parallel()
	s := shelvedLibrary(t)
	var told []string
	for f, err := range s.Verify(t.Context(), func(p badgerstore.Progress) {
		told = append(told, p.Run)
		if p.Done != len(told) {
			t.Errorf("progress %+v after %d runs", p, len(told))
		}
	}) {
		t.Errorf("found %v, %v", f, err)
	}
	page, err := s.List(t.Context(), checkpoint.Filter{Limit: 1000})
	if err != nil || len(told) != len(page) || !slices.IsSorted(told) {
		t.Errorf("progress of %q, the store has %d runs, %v", told, len(page), err)
	}
}

// Whatever does not belong together is found, and the rest of the store is verified all the same.
func TestVerifyFindsWhatDoesNotBelong(t *testing.T) {
	t.Parallel()
	put := func(key, value []byte) func(*testing.T, *badgerstore.Store) {
		return func(t *testing.T, s *badgerstore.Store) {
			if err := s.Put(t.Context(), key, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	nobody := uint64(1 << 40)
	for want, plant := range map[string]func(*testing.T, *badgerstore.Store){
		"store: an append of run number 1099511627776":        put(badgerstore.LogKey(nobody, 1), []byte("x")),
		"store: an append of run number 18446744073709551615": put(badgerstore.LogKey(^uint64(0), 1), []byte("x")),
		`store: the key "l12" is of no run`:                   put([]byte("l12"), []byte("x")),
		`run "run 1": info: it has no row`: func(t *testing.T, s *badgerstore.Store) {
			put(badgerstore.RowKey(badgerstore.NumberOf(t, s, "run 1")), nil)(t, s)
		},
		`run "run 1": info: the index does not lead`:               func(t *testing.T, s *badgerstore.Store) { put(badgerstore.IDKey("run 1"), nil)(t, s) },
		`run "run 1": info: another run has its number, `:          func(t *testing.T, s *badgerstore.Store) { ghost(t, s, "run 1") },
		"store: a post of run number 1099511627776":                put(of("p", nobody, "post"), []byte("x")),
		"store: a snapshot of run number 1099511627776":            put(of("s", nobody, "12345678"), []byte("x")),
		"store: a piece of a post of run number 1099511627776":     put(of("cp", nobody, "piece"), []byte("x")),
		"store: a piece of a snapshot of run number 1099511627776": put(of("cs", nobody, "piece"), []byte("x")),
		"store: the mark of a trim of run number 1099511627776":    put(of("t", nobody, ""), []byte("x")),
		`store: the key "cp12" is of no run`:                       put([]byte("cp12"), []byte("x")),
		`store: the key "cz" is of no base`:                        put([]byte("cz"), []byte("x")),
		`store: a piece of base "abcdefgh", which there is not`:    put([]byte("czabcdefghijklmnopqrstuvw"), []byte("x")),
		"store: base abcdefgh is kept, and not counted":            put([]byte("zabcdefghijk"), []byte("x")),
		`store: no store has a key like "w"`:                       put([]byte("w"), []byte("x")),
		`store: no store has a key like "irun 1"`:                  put([]byte("irun 1"), []byte("x")), // as of an earlier format
		`store: no store has a key like "gdigest"`:                 put([]byte("gdigest"), []byte("x")),
		`store: no store has a key like "mother"`:                  put([]byte("mother"), []byte("x")),
		"store: run number 3 is there, and is to be removed":       func(t *testing.T, s *badgerstore.Store) { put(badgerstore.DeletedKey(s, 3), []byte("x"))(t, s) },
		"the number of the next run":                               put([]byte("mnext"), []byte("x")), // which the next Open would refuse, as the four that follow
		"the store's seal":                                         put([]byte("mseal"), []byte("x")),
		"the store's name":                                         put([]byte("mstore"), []byte("x")),
		"does not say of which store":                              put([]byte("mstore"), nil),
		"the mark of a trimmed run": func(t *testing.T, s *badgerstore.Store) {
			put(of("t", badgerstore.NumberOf(t, s, "run 1"), ""), []byte("x"))(t, s)
		},
		"is counted 7 times, and 2 runs refer to it": func(t *testing.T, s *badgerstore.Store) { recount(t, s, 7) },
		"is not counted, and 2 runs refer to it":     func(t *testing.T, s *badgerstore.Store) { recount(t, s, 0) },
	} {
		t.Run(want, func(t *testing.T) {
			s := shelvedLibrary(t)
			plant(t, s)
			all := verified(t, s)
			if len(all) > 4 {
				t.Errorf("found %d things", len(all))
			}
			if !slices.ContainsFunc(all, func(f string) bool { return strings.Contains(f, want) }) {
				t.Errorf("found %q, want %q", all, want)
			}
		})
	}
}

// Of a log Verify finds every append that is damaged, however it is kept: one that can't be read
// does not hide the next.
func TestVerifyFindsEveryDamagedAppend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o     badgerstore.Options
		delta string
	}{
		"plain":      {small, "a"},
		"compressed": {small, strings.Repeat("a", 4<<10)},
		"sealed":     {sealedBy(t, keyOf(t, "k1", 1)), "a"},
		"in pieces":  {small, noise(700 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			s := openWith(t, t.TempDir(), c.o)
			l := acquire(t, s, 1)[0]
			var head checkpoint.Head
			for range 6 {
				var err error
				if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", c.delta)}}); err != nil {
					t.Fatal(err)
				}
			}
			values, num := valuesOf(t, s), badgerstore.NumberOf(t, s, l.Run)
			for _, seq := range []uint64{1, 3, 5} {
				key := badgerstore.LogKey(num, seq)
				value := values[string(key)]
				value[len(value)-9] ^= 1
				put(t, s, key, value)
			}
			var found []uint64
			for f, err := range checkpoint.Verify(t.Context(), s, l.Run) {
				if err != nil || f.Part != checkpoint.PartLog {
					t.Fatalf("Verify finds %v, %v", f, err)
				}
				found = append(found, f.Seq)
			}
			if want := []uint64{1, 3, 5}; !slices.Equal(found, want) {
				t.Errorf("Verify finds damage at the entries %d, want %d", found, want)
			}
			if err := checkpoint.Export(t.Context(), s, l.Run, io.Discard); !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Errorf("Export = %v, want ErrCorrupt", err)
			}
		})
	}
}

// Keys of a kind that stores of another format have are found.
func TestVerifyKnowsTheKeysOfItsFormat(t *testing.T) {
	t.Parallel()
	for format, kinds := range map[int]string{1: "xvyz", 2: "ivyz", 3: "igdb"} {
		s := openFormat(format)(t, t.TempDir())
		for _, kind := range kinds {
			put(t, s, append([]byte(string(kind)), "12345678"...), []byte("x"))
		}
		all := verified(t, s)
		for _, kind := range kinds {
			want := fmt.Sprintf(`store: no store has a key like "%c12345678"`, kind)
			if !slices.ContainsFunc(all, func(f string) bool { return strings.Contains(f, want) }) {
				t.Errorf("format %d: found %q, want %q", format, all, want)
			}
		}
	}
}

// of is a key of that kind of a run.
func of(kind string, run uint64, rest string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte(kind), run), rest...)
}

// ghost gives another id the number of a run.
func ghost(t *testing.T, s *badgerstore.Store, run string) {
	key := badgerstore.IDKey("ghost")
	num := badgerstore.NumberOf(t, s, run)
	if err := s.Put(t.Context(), key, badgerstore.Frame(key, badgerstore.RowKey(num)[1:])); err != nil {
		t.Fatal(err)
	}
}

// recount changes how often the base of the forks is counted; 0 is not at all.
func recount(t *testing.T, s *badgerstore.Store, n byte) {
	info, err := s.Stat(t.Context(), "fork 0")
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("n" + info.Base)
	value := badgerstore.Frame(key, []byte{0, 0, 0, 0, 0, 0, 0, n})
	if n == 0 {
		value = nil
	}
	if err := s.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// A loop ends with its context, with the store, and at what its caller leaves.
func TestVerifyEnds(t *testing.T) {
	t.Parallel()
	s := shelvedLibrary(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for f, err := range s.Verify(ctx, nil) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("found %v, %v, want the end of the context", f, err)
		}
	}
	recount(t, s, 7)
	for range s.Verify(t.Context(), func(badgerstore.Progress) { t.Error("a loop that was left goes on") }) {
		break
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range s.Verify(t.Context(), nil) {
		if n++; !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("of a closed store: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("a closed store is told of %s", fmt.Sprint(n, " times"))
	}
}

// Runs that are deleted, made again and forked meanwhile are no damage.
func TestVerifyBesideChanges(t *testing.T) {
	t.Parallel()
	s := shelvedLibrary(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 3 {
		run := fmt.Sprint("passing ", i)
		all.Go(func() {
			for ctx.Err() == nil {
				f := forkstoreFork(forkstoreBase(i), 1, run)
				if err := s.Fork(ctx, f); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				if err := s.Delete(ctx, run); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for range 40 {
		if found := verified(t, s); len(found) > 0 {
			t.Errorf("found %q", found)
			break
		}
	}
	cancel()
	all.Wait()
}
