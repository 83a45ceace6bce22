package badgerstore_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// kindsOfRuns are those of keys that a run, or a base, has.
const kindsOfRuns = "lrxpszn"

// ofEachKind are two keys of each of these.
func ofEachKind(values map[string][]byte) (kinds map[string][]string) {
	kinds = make(map[string][]string)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if kind := key[:1]; strings.Contains(kindsOfRuns, kind) && len(kinds[kind]) < 2 {
			kinds[kind] = append(kinds[kind], key)
		}
	}
	return kinds
}

// A value of one key is not read as that of another of its kind, though nothing of it was altered.
func TestValuesStayUnderTheirKeys(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	s.ForgetIdle()
	stock(t, s, 1<<12)
	for i, runs := range [][]string{{"fork 0"}, {"fork 1", "fork 2"}} {
		if err := s.Fork(t.Context(), forkstoreFork(forkstoreBase(i), 1, runs...)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	values := valuesOf(t, s)
	all := ofEachKind(values)
	if len(all) != len(kindsOfRuns) {
		t.Fatalf("there are keys of %d kinds", len(all))
	}
	for kind, keys := range all {
		if len(keys) < 2 {
			t.Fatalf("the store has %d keys of kind %s", len(keys), kind)
		}
		if err := s.Put(t.Context(), []byte(keys[0]), values[keys[1]]); err != nil {
			t.Fatal(err)
		}
		if found := verified(t, s); len(found) == 0 {
			t.Errorf("Verify does not find %q under %q", keys[1], keys[0])
		}
		if got, err := contents(t, s); err != nil && !damaged(err) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q under %q: %v, want ErrCorrupt or the same", keys[1], keys[0], err)
		}
		if err := s.Put(t.Context(), []byte(keys[0]), values[keys[0]]); err != nil {
			t.Fatal(err)
		}
	}
}

// A value whose checksum is right and whose payload ends anywhere is damaged, and nothing worse.
func TestValuesThatEndAnywhere(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	s.ForgetIdle()
	stock(t, s, 1<<20)
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	values := valuesOf(t, s)
	shortest := make(map[string]string) // key of each kind, whose value is in pieces if any is
	for key, value := range values {
		kind := key[:1]
		if old, ok := values[shortest[kind]]; strings.HasPrefix(string(value), "pawr") && (!ok || len(value) < len(old)) {
			shortest[kind] = key
		}
	}
	const head = 14
	for _, kind := range []string{"l", "r", "x", "s"} {
		key := shortest[kind]
		payload := values[key][head:]
		for n := range payload {
			cut := badgerstore.Frame([]byte(key), payload[:n])
			if err := withValue(t, s, key, cut, values[key], want); !damaged(err) {
				t.Errorf("%q cut off at %d of %d: %v, want ErrCorrupt", key, n, len(payload), err)
			}
		}
	}
	// Where a message ends only its frame says: what is cut behind its head is another message.
	run := "run 0"
	key := of("p", badgerstore.NumberOf(t, s, run), "post")
	for n := range values[string(key)][head:] {
		if err := s.Put(t.Context(), key, badgerstore.Frame(key, values[string(key)][head:][:n])); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Posts(t.Context(), run); err != nil && !damaged(err) {
			t.Errorf("%q cut off at %d: %v", key, n, err)
		}
	}
}

// Of a large value no piece is written any more when its lease is lost, and of a first append none
// is left.
func TestPiecesEndWithTheLease(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	l := acquire(t, s, 1)[0]
	commits, chunks := 0, 0
	s.CommitWith(func(next func() error) error {
		if commits++; commits == 1 {
			if err := s.Release(context.Background(), l); err != nil {
				t.Error(err)
			}
		}
		err := next()
		written := 0
		for _, key := range keysOf(s) {
			if key[0] == 'c' {
				written++
			}
		}
		chunks = max(chunks, written)
		return err
	})
	large := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: []byte(`"` + noise(2<<20) + `"`)}}
	if _, err := s.Append(t.Context(), l, checkpoint.Head{}, large); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("Append = %v, want ErrFenced", err)
	}
	if chunks != badgerstore.ChunksAtOnce {
		t.Errorf("%d chunks were written, want the %d of the piece before the lease was lost", chunks, badgerstore.ChunksAtOnce)
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
	}
}
