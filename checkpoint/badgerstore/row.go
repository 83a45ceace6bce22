package badgerstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A row is what is kept of a run beside its log. It is written with the run's first append
// and with every append that changes its status, or what Info tells beside its head, in the same
// transaction.
type row struct {
	info checkpoint.Info // without Epoch and Owner; Head is that of the append in first
	// first is the first entry of the append that the row was written with. The log holds
	// that append, or it is damaged: the row is the witness of its length.
	first uint64
}

// renames reports whether an append with an entry of that kind writes the row of its run, whatever
// becomes of the status.
func renames(k checkpoint.Kind) bool {
	switch k {
	case checkpoint.Opened, checkpoint.Migrated, checkpoint.TurnBegun, checkpoint.Trimmed, checkpoint.Rewound:
		return true
	}
	return false
}

// outdatedBy returns an error if that append, a later one than the row was written with, has
// written another row.
func (w *row) outdatedBy(e checkpoint.Envelope) error {
	status := w.info.Status
	for entry, err := range e.Entries() {
		if err != nil {
			return err
		}
		if renames(entry.Kind) {
			return checkpoint.Damage(fmt.Sprintf("its row is older than its log, which goes on with %s", entry.Kind))
		}
		status = status.After(entry.Kind)
	}
	if status != w.info.Status {
		return checkpoint.Damage(fmt.Sprintf("its row is older than its log: it says %s, and the log %s", w.info.Status, status))
	}
	return nil
}

// firstRowMost is the largest row of a run that comes to be. A later one may have up to inlineMost:
// for a longer status, higher numbers, and the base of a run that is trimmed.
const firstRowMost = inlineMost - 1<<10

// setRow adds to q the row of the run of that number. ErrTooLarge if it is more than a row may be.
func (q *request) setRow(num uint64, w row) error {
	most := inlineMost
	if w.first == 1 { // a log of one append is to come to rest yet
		most = firstRowMost
	}
	key := runKey(rowKey, num)
	value := w.encode(key)
	if len(value) > most {
		return fmt.Errorf("%w: run %q: %d bytes of names and labels, the limit is %d",
			checkpoint.ErrTooLarge, w.info.Run, len(value), most)
	}
	q.set(key, value)
	return nil
}

// setNumber adds to q that the run of that id has that number.
func (s *Store) setNumber(q *request, id string, num uint64) {
	key := nameKey(s.kinds.id, id)
	q.set(key, frameNumber(key, num))
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
	if i.First > 1 || i.Base != "" || i.Origin != nil {
		b.beginning(i)
	}
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
	i.Turn, i.First = int(r.uint()), 1
	if len(r.b) > 0 {
		r.beginning(i)
	}
	if !r.end() || w.first == 0 || w.first > i.Head.Seq {
		return row{}, checkpoint.Damage("the row of a run can't be read")
	}
	return w, nil
}

// beginning writes what a row says of a run that begins at a base, or has an origin.
func (w *writer) beginning(i *checkpoint.Info) {
	w.uint(i.First)
	w.string(i.Base)
	w.uint(uint64(len(i.Pins)))
	for _, p := range i.Pins {
		w.uint(p.Seq)
		w.string(p.Base)
	}
	if i.Origin != nil {
		origin, err := json.Marshal(i.Origin)
		if err != nil {
			panic("badgerstore: an origin is made of strings and numbers: " + err.Error())
		}
		w.b = append(w.b, origin...)
	}
}

func (r *reader) beginning(i *checkpoint.Info) {
	i.First = r.uint()
	i.Base = r.string()
	for range r.count() {
		i.Pins = append(i.Pins, checkpoint.Pin{Seq: r.uint(), Base: r.string()})
	}
	if len(r.b) > 0 {
		i.Origin = new(checkpoint.Origin)
		if json.Unmarshal(r.b, i.Origin) != nil {
			r.fail()
		}
		r.b = nil
	}
	if i.First == 0 || i.First == 1 && i.Base == "" && i.Origin == nil {
		r.fail() // it would not have been written
	}
}
