package badgerstore

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

func someRow() row {
	at := time.UnixMilli(1_795_262_400_000).UTC()
	return row{first: 7, info: checkpoint.Info{
		Run: "run ü", Status: checkpoint.StatusInterrupted, Graph: "graph", Digest: "digest",
		Labels: map[string]string{"a": "1", "": "empty", "b": ""}, Correlation: "order 7", Turn: 3, First: 1,
		Head:    checkpoint.Head{Seq: 9, Digest: checkpoint.Digest{1, 2, 31: 3}},
		Created: at, Updated: at.Add(time.Hour),
	}}
}

// forkstoreRow is the row of a fork that was trimmed.
func forkstoreRow() row {
	w := someRow()
	w.info.First, w.info.Base = 5, "base"
	w.info.Pins = []checkpoint.Pin{{Seq: 3, Base: "pinned"}, {Seq: 4, Base: "base"}}
	w.info.Origin = &checkpoint.Origin{Run: "parent", Seq: 300, Base: "another", Turn: 2}
	return w
}

func TestRowRoundTrip(t *testing.T) {
	key := runKey(rowKey, 5)
	for _, want := range []row{
		someRow(), forkstoreRow(),
		{first: 1, info: checkpoint.Info{First: 1, Head: checkpoint.Head{Seq: 1}, Created: time.UnixMilli(0).UTC(), Updated: time.UnixMilli(0).UTC()}},
	} {
		value := want.encode(key)
		got, err := decodeRow(key, value)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("decodeRow = %+v, %v, want %+v", got, err, want)
		}
		for i := range len(value) * 8 {
			flipped := bytes.Clone(value)
			flipped[i/8] ^= 1 << (i % 8)
			_, err := decodeRow(key, flipped)
			if !errors.Is(err, checkpoint.ErrCorrupt) && !errors.Is(err, checkpoint.ErrVersion) {
				t.Fatalf("bit %d flipped: %v", i, err)
			}
		}
		if _, err := decodeRow(runKey(rowKey, 6), value); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("the row of another run: %v", err)
		}
	}
}

// A payload is no row, or is the row of the payload that it is encoded to.
func FuzzRow(f *testing.F) {
	key := runKey(rowKey, 5)
	w := someRow()
	f.Add(w.encode(key)[frameHead:])
	w = forkstoreRow()
	f.Add(w.encode(key)[frameHead:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		w, err := decodeRow(key, frame(key, payload))
		if err != nil {
			return
		}
		again, err := decodeRow(key, w.encode(key))
		if err != nil || !reflect.DeepEqual(again, w) {
			t.Errorf("%+v is read again as %+v, %v", w, again, err)
		}
	})
}

// All but pieces of large values stands behind the appends: see keys.go.
func TestAppendsStandFirst(t *testing.T) {
	is := kindsOf[newestFormat]
	for _, kind := range []byte{
		metaKey, countKey, postKey, rowKey, snapshotKey, trimmedKey, piecesKey, is.id, is.graph, is.deleted, is.base,
	} {
		if kind <= logKey {
			t.Errorf("keys that begin with %q stand before those of appends", kind)
		}
	}
}

// Keys of a kind stand in the order of their numbers, and those of one run together.
func TestKeysAreInOrder(t *testing.T) {
	var last []byte
	for _, run := range []uint64{0, 1, 255, 256, 1 << 40, 1<<64 - 1} {
		for _, seq := range []uint64{0, 1, 255, 256, 1 << 40, 1<<64 - 1} {
			key := seqKey(logKey, run, seq)
			if bytes.Compare(last, key) >= 0 || runOf(key) != run || seqOf(key) != seq ||
				!bytes.HasPrefix(key, runKey(logKey, run)) {
				t.Errorf("the key of run %d, entry %d is %x", run, seq, key)
			}
			last = key
		}
	}
}
