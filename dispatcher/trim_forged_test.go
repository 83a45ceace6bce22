package dispatcher_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// P9. An append that somebody has changed, who made its checksum fit, is found by what would make a
// machine of it that nobody can verify any more: a Trim that drops it, and a Fork that folds it.
// Neither changes anything.
func TestForgedAppendIsNotTrimmed(t *testing.T) {
	t.Parallel()
	var w witness
	store := new(memory.Faulty)
	d := callsDispatcher(t, rewindLine(t, &w, "a", "b", "c", "d", "e"), checkpoint.Store(store), dispatcher.Options{InterruptBefore: []string{"e"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "e")
	const forged = 3 // an entry of the append
	sealed, err := store.Sealed(run, forged)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(sealed, []byte(`"path":"a"`))
	if at < 0 {
		t.Fatalf("the append is %q", sealed)
	}
	sealed[at+8] = 'b'
	end := len(sealed) - 4
	binary.BigEndian.PutUint32(sealed[end:], crc32.Checksum(sealed[:end], crc32.MakeTable(crc32.Castagnoli)))
	if err := store.Damage(run, forged, sealed); err != nil {
		t.Fatal(err)
	}
	before, err := store.Stat(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var damage *checkpoint.CorruptError
	if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); !errors.As(err, &damage) || damage.Reason != "its digest is not that of what stands in it" {
		t.Errorf("Trim = %v", err)
	}
	if _, err := d.Fork(t.Context(), run, "4", dispatcher.ForkOptions[Tale]{}); !errors.As(err, &damage) {
		t.Errorf("Fork = %v", err)
	}
	if after, err := store.Stat(t.Context(), run); err != nil || after.Head != before.Head || after.First != before.First {
		t.Errorf("the run is at %d and begins at %d, %v; it was at %d", after.Head.Seq, after.First, err, before.Head.Seq)
	}
	for id, err := range checkpoint.Runs(t.Context(), store, checkpoint.Filter{}) {
		if err != nil || id.Run != run {
			t.Errorf("there is a run %q, %v", id.Run, err)
		}
	}
}
