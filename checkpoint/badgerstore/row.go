package badgerstore

import (
	"maps"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A row is what is kept of a run beside its log. It is written with the run's first append
// and with every append that changes its status, in the same transaction.
type row struct {
	info checkpoint.Info // without Epoch and Owner; Head is that of the append in first
	// first is the first entry of the append that the row was written with. The log holds
	// that append, or it is damaged: the row is the witness of its length.
	first uint64
}

func (w *row) encode(key []byte) []byte {
	i := &w.info
	var b writer
	b.string(string(i.Status))
	b.uint(uint64(i.Created.UnixMilli()))
	b.uint(uint64(i.Updated.UnixMilli()))
	b.uint(w.first)
	b.uint(i.Head.Seq)
	b.b = append(b.b, i.Head.Digest[:]...)
	b.string(i.Run)
	b.string(i.Graph)
	b.string(i.Digest)
	b.uint(uint64(len(i.Labels)))
	for _, label := range slices.Sorted(maps.Keys(i.Labels)) {
		b.string(label)
		b.string(i.Labels[label])
	}
	b.string(i.Correlation)
	b.uint(uint64(i.Turn))
	return frame(key, b.b)
}

func decodeRow(key, value []byte) (row, error) {
	payload, err := unframe(key, value)
	if err != nil {
		return row{}, err
	}
	r := reader{b: payload}
	var w row
	i := &w.info
	i.Status = checkpoint.Status(r.string())
	i.Created = time.UnixMilli(int64(r.uint())).UTC()
	i.Updated = time.UnixMilli(int64(r.uint())).UTC()
	w.first = r.uint()
	i.Head.Seq = r.uint()
	copy(i.Head.Digest[:], r.bytes(len(i.Head.Digest)))
	i.Run = r.string()
	i.Graph = r.string()
	i.Digest = r.string()
	if n := r.count(); n > 0 {
		i.Labels = make(map[string]string, n)
		for range n {
			label := r.string()
			i.Labels[label] = r.string()
		}
	}
	i.Correlation = r.string()
	i.Turn = int(r.uint())
	if !r.end() || w.first == 0 || w.first > i.Head.Seq {
		return row{}, checkpoint.Damage("the row of a run can't be read")
	}
	return w, nil
}
