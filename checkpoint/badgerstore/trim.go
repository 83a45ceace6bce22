package badgerstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Trim implements [checkpoint.Store]. One transaction appends the entry and makes the run begin
// later for who reads. The keys of what was dropped are removed after that; what Trim can't
// finish, the next Open does.
func (s *Store) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry,
	bases ...[]byte,
) (checkpoint.Head, error) {
	var before checkpoint.Info
	r, num, err := s.enterAppend(ctx, l, after, &before)
	if err != nil {
		return checkpoint.Head{}, err
	}
	defer s.leave(r)
	t, err := before.Trimming(entry, bases)
	if err != nil {
		return checkpoint.Head{}, err
	}
	// One at a time, for each removes what it has dropped and then its mark.
	if err := s.beginTurn(ctx, &r.trimming); err != nil {
		return checkpoint.Head{}, err
	}
	defer s.endTurn(&r.trimming)
	if err := s.stillAt(l, after); err != nil { // the one before it may have dropped what this one looks at
		return checkpoint.Head{}, err
	}
	x := trimmer{s: s, run: r, lease: l, before: before, num: num, first: t.First}
	previous, err := x.locate(ctx)
	if err != nil {
		return checkpoint.Head{}, cmp.Or(s.stillAt(l, after), err) // or the run is gone, without its lease
	}
	x.entry = t.Entry(before, entry, previous)
	for {
		head, err := x.try(ctx, bases)
		if errors.Is(err, errBaseMoved) {
			continue
		}
		if err == nil {
			// It is trimmed, whatever comes now.
			if s.sweepTrimmed(ctx, x.mark(), x.markValue(), s.sweptOf(r), s.remover(ctx)) == nil {
				s.swept(r, x.num, x.from)
			}
			_ = s.sweepDrained(ctx, r) // or the next Trim does, or Delete
		}
		return head, err
	}
}

// A trimmer trims one run.
type trimmer struct {
	s      *Store
	run    *run
	lease  checkpoint.Lease
	before checkpoint.Info
	num    uint64
	first  uint64 // the oldest entry that stays
	from   uint64 // first entry of the append that holds it
	entry  checkpoint.Entry
}

// locate finds the append that holds the oldest entry that stays, and returns the digest of the
// one before it.
func (x *trimmer) locate(ctx context.Context) (checkpoint.Digest, error) {
	if x.first > x.before.Head.Seq {
		x.from = x.first
		return x.before.Head.Digest, nil
	}
	v, err := x.s.view(ctx)
	if err != nil {
		return checkpoint.Digest{}, err
	}
	defer v.close()
	e, err := v.envelope(found{info: x.before, num: x.num}, x.first)
	if err != nil {
		return checkpoint.Digest{}, checkpoint.Corrupt(x.before.Run, x.first, err)
	}
	x.from = e.First
	return e.Previous, nil
}

func (x *trimmer) try(ctx context.Context, bases [][]byte) (_ checkpoint.Head, err error) {
	now, entries := time.Now(), []checkpoint.Entry{x.entry}
	data, head, err := checkpoint.Seal(nil, x.before.Head, now, x.lease.Epoch, entries)
	if err != nil {
		return checkpoint.Head{}, err
	}
	info, err := x.before.Appended(now, head, entries)
	if err != nil {
		return checkpoint.Head{}, err
	}
	if len(data) > inlineMost {
		return checkpoint.Head{}, fmt.Errorf("%w: run %q: %d bytes of labels and pins, the limit is %d",
			checkpoint.ErrTooLarge, x.lease.Run, len(data), inlineMost)
	}
	packed, err := x.s.pack(place{run: x.lease.Run, key: seqKey(logKey, x.num, x.before.Head.Seq+1)}, data)
	if err != nil {
		return checkpoint.Head{}, err
	}
	h := hold{s: x.s}
	err = errPanics // unless it returns
	defer func() { h.end(ctx, err) }()
	q := newRequest()
	q.rule, q.run, q.lease, q.after, q.info = atHead, x.run, x.lease, x.before.Head, info
	q.set(packed.key, packed.value())
	q.set(x.mark(), x.markValue())
	if err := x.s.describe(q, x.before.Status, x.num, entries); err != nil {
		return checkpoint.Head{}, err
	}
	if err := h.replace(ctx, q, x.before.Bases(), info.Bases(), bases, 1); err != nil {
		return checkpoint.Head{}, err
	}
	if err := x.s.submit(ctx, q); err != nil {
		return checkpoint.Head{}, err
	}
	return head, nil
}

// replace adds to q that runs, n of them, refer to the bases of after, and no longer to those of
// before. Both are in order.
func (h *hold) replace(
	ctx context.Context, q *request, before, after []string, bases [][]byte, n int,
) error {
	given := make(map[string][]byte, len(bases))
	for _, base := range bases {
		given[checkpoint.BaseDigest(base)] = base
	}
	among := func(digest string, all []string) bool {
		_, there := slices.BinarySearch(all, digest)
		return there
	}
	for _, digest := range after { // in order: who holds two turns has taken the lesser first
		if among(digest, before) {
			continue
		}
		if err := h.refer(ctx, q, digest, given[digest], n); err != nil {
			return err
		}
	}
	return h.drop(ctx, q, slices.DeleteFunc(slices.Clone(before), func(digest string) bool { return among(digest, after) }))
}

// The mark of a run that was trimmed says from which append and from which entry on its keys
// stay, until the others are removed.
func (x *trimmer) mark() []byte { return runKey(trimmedKey, x.num) }

func (x *trimmer) markValue() []byte {
	stay := binary.BigEndian.AppendUint64(nil, x.from)
	return frame(x.mark(), binary.BigEndian.AppendUint64(stay, x.first))
}

// readTrimmed reads what a mark of a trimmed run says.
func readTrimmed(mark, value []byte) (from, first uint64, err error) {
	payload, err := unframe(mark, value)
	if err == nil && len(payload) != 16 {
		err = checkpoint.Damage("it can't be read")
	}
	if err != nil {
		return 0, 0, fmt.Errorf("checkpoint: the mark of a trimmed run: %w", err)
	}
	return binary.BigEndian.Uint64(payload), binary.BigEndian.Uint64(payload[8:]), nil
}

// sweepTrimmed removes the keys that a mark of a trimmed run says are dropped, and last the mark.
// Those before entry begin are removed already: an iterator that began before them would step over
// each.
func (s *Store) sweepTrimmed(
	ctx context.Context, mark, value []byte, begin uint64, remove func(keys [][]byte) error,
) error {
	from, first, err := readTrimmed(mark, value)
	if err != nil {
		return err
	}
	num := runOf(mark)
	for kind, first := range map[byte]uint64{logKey: from, snapshotKey: first} {
		prefix, begin, end := runKey(kind, num), seqKey(kind, num, begin), seqKey(kind, num, first)
		if err := s.sweepPrefix(ctx, prefix, begin, end, remove); err != nil {
			return err
		}
		chunk := []byte{chunkKey}
		prefix, begin, end = slices.Concat(chunk, prefix), slices.Concat(chunk, begin), slices.Concat(chunk, end)
		if err := s.sweepPrefix(ctx, prefix, begin, end, remove); err != nil {
			return err
		}
	}
	return remove([][]byte{mark})
}

// swept remembers that no key of the run is left that a Trim has dropped before that entry.
func (s *Store) swept(r *run, num, before uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.num == num { // else it was deleted meanwhile
		r.swept = before
	}
}

func (s *Store) sweptOf(r *run) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.swept
}

// sweepDrained removes the pieces of large messages that a run does not have any more, or that were
// given up before it had them.
func (s *Store) sweepDrained(ctx context.Context, r *run) error {
	if err := s.beginTurn(ctx, &r.posting); err != nil { // nobody writes any meanwhile
		return err
	}
	defer s.endTurn(&r.posting)
	keys, err := s.drained(ctx, r.id)
	for some := range slices.Chunk(keys, deleteMost) {
		err = cmp.Or(err, s.remover(ctx)(some))
	}
	return err
}

// drained returns the keys of pieces whose message is not there.
func (s *Store) drained(ctx context.Context, run string) (keys [][]byte, err error) {
	v, f, err := s.look(ctx, run) // when it is known what became of those that were given up
	if err != nil {
		return nil, err
	}
	defer v.close()
	prefix := append([]byte{chunkKey}, runKey(postKey, f.num)...)
	it, err := v.iterator(prefix, false)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var message []byte // of the last piece
	there := false
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().Key()
		if len(key) < len(prefix)+16 { // an attempt and a number
			continue // Verify finds it, and Delete removes it
		}
		if of := messageOf(key); !bytes.Equal(of, message) {
			message = bytes.Clone(of)
			value, err := v.get(message)
			if err != nil {
				return nil, err
			}
			there = value != nil
		}
		if !there {
			keys = append(keys, bytes.Clone(key))
		}
	}
	return keys, nil
}
