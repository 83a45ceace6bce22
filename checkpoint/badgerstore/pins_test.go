package badgerstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// pinned trims a run that nobody holds behind its last entry, and pins a checkpoint with each base.
// The first of them is that which the run goes on from; as many as are held it refers to already.
func pinned(ctx context.Context, s *badgerstore.Store, run string, bases [][]byte, held int) error {
	l, err := s.Acquire(ctx, run, "owner")
	if err != nil {
		return err
	}
	defer func() { _ = s.Release(context.WithoutCancel(ctx), l) }()
	info, err := s.Stat(ctx, run)
	if err != nil {
		return err
	}
	t := checkpoint.Trimming{First: info.Head.Seq + 1, Base: checkpoint.BaseDigest(bases[0])}
	for _, base := range bases[1:] {
		t.Pins = append(t.Pins, checkpoint.Pin{Seq: 1, Base: checkpoint.BaseDigest(base)})
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = s.Trim(ctx, l, info.Head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, bases[held:]...)
	return err
}

// basesOf are so many bases of about that many bytes, which are not compressed.
func basesOf(n, size int) (bases [][]byte) {
	for i := range n {
		bases = append(bases, fmt.Appendf(nil, "{\"n\":%d,\"text\":%q}", i, noise(size)))
	}
	return bases
}

func wantBases(t *testing.T, s *badgerstore.Store, run string, bases [][]byte) {
	t.Helper()
	for i, base := range bases {
		if got, err := s.Base(t.Context(), run, checkpoint.BaseDigest(base)); err != nil || !bytes.Equal(got, base) {
			t.Errorf("base %d of %q = %d bytes, %v", i, run, len(got), err)
		}
	}
}

// However many checkpoints are pinned when a run is trimmed, their machines need not be one
// transaction: it is trimmed, exported and imported, also if they are just not too large to be kept
// in one piece.
func TestManyPinsOfSomeSize(t *testing.T) {
	t.Parallel()
	const more = 60 // together they are larger than a transaction
	s := openUnsynced(t, t.TempDir())
	bases := basesOf(more, 50<<10)
	for _, run := range []string{"at once", "one by one"} {
		if err := forkstoreGrow(t.Context(), s, run, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := pinned(t.Context(), s, "at once", bases, 0); err != nil {
		t.Errorf("Trim with %d pins = %v", more, err)
	} else {
		wantBases(t, s, "at once", bases)
	}
	forkstoreAudit(t, s)
	if err := s.Delete(t.Context(), "at once"); err != nil {
		t.Fatal(err)
	}
	for n := range bases {
		if err := pinned(t.Context(), s, "one by one", bases[:n+1], n); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), s, "one by one", &file); err != nil {
		t.Fatal(err)
	}
	into := openUnsynced(t, t.TempDir())
	if _, err := checkpoint.Import(t.Context(), into, &file, checkpoint.ImportOptions{}); err != nil {
		t.Fatalf("Import = %v", err)
	}
	wantBases(t, into, "one by one", bases)
	for _, s := range []*badgerstore.Store{s, into} {
		forkstoreAudit(t, s)
		if err := s.Delete(t.Context(), "one by one"); err != nil {
			t.Fatal(err)
		}
		if keys := keysOf(s); len(keys) > 0 {
			t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
		}
	}
}
