package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// PutSnapshot implements [checkpoint.Store]. It returns once the snapshot is durable. Its pieces
// travel with the appends of others, few of them beside each, so it takes its time but little of
// theirs. The newest two snapshots are kept. ErrConflict if the run never stood at s.Head.
func (s *Store) PutSnapshot(
	ctx context.Context, l checkpoint.Lease, snap checkpoint.Snapshot,
) error {
	r, err := s.enterHeld(ctx, l)
	if err != nil {
		return err
	}
	defer s.leave(r)
	if len(snap.Data) > MaxSnapshot {
		return fmt.Errorf("%w: run %q: a snapshot of %d bytes, the limit is %d",
			checkpoint.ErrTooLarge, l.Run, len(snap.Data), MaxSnapshot)
	}
	// One at a time, for each removes what the one before it has left.
	if err := s.beginTurn(ctx, &r.snapping); err != nil {
		return err
	}
	defer s.endTurn(&r.snapping)
	left := r.snapshots
	r.snapshots = series{} // nobody knows, if this fails
	if s.goesOn(r, left, snap.Head) {
		left.add(snap.Head.Seq)
	} else if left, err = s.findSnapshots(ctx, l.Run, snap.Head); err != nil {
		return err
	}
	if !slices.Contains(left.kept, snap.Head.Seq) { // two are newer
		return nil
	}
	q := newRequest()
	q.rule, q.run, q.lease = held, r, l
	x, err := s.pack(place{l.Run, seqKey(snapshotKey, left.num, snap.Head.Seq), snap.Head.Digest[:]}, snap.Data)
	if err == nil {
		err = s.putParcel(ctx, q, x)
	}
	if err != nil {
		return err
	}
	n := 0 // the keys of snapshots come first, and then their pieces
	for ; n < min(len(left.stale), deleteMost) && q.bytes+len(left.stale[n])+perKey <= s.maxBytes; n++ {
		q.delete(left.stale[n])
	}
	if err := s.submitBulk(ctx, q); err != nil {
		return err
	}
	for some := range slices.Chunk(left.stale[n:], deleteMost) {
		if err := s.remover(ctx)(some); err != nil {
			return nil // the snapshot is there; the next one removes what is left
		}
	}
	if len(x.data) <= inlineMost && !left.more {
		left.stale = nil
		r.snapshots = left
	}
	return nil
}

// A series is what there is of the snapshots of a run.
type series struct {
	num   uint64   // of the run; 0 if nothing is known
	kept  []uint64 // the positions of the newest two, in order
	more  bool     // some of these are in pieces
	stale [][]byte // keys of what is superfluous
}

// add makes the position at one of those, and what falls out of them stale.
func (l *series) add(at uint64) {
	if !slices.Contains(l.kept, at) {
		l.kept = append(l.kept, at)
		slices.Sort(l.kept)
	}
	for ; len(l.kept) > 2; l.kept = l.kept[1:] {
		if l.kept[0] != at {
			l.stale = append(l.stale, seqKey(snapshotKey, l.num, l.kept[0]))
		}
	}
}

// goesOn reports whether a snapshot at head, where r stands, is behind all of those that the last
// one has left: then nothing has to be looked for. A Trim may have removed one of them since, which
// does no harm.
func (s *Store) goesOn(r *run, left series, head checkpoint.Head) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return left.num > 0 && left.num == r.num && r.info.Head == head
}

// findSnapshots checks that the run stood at head, and finds its snapshots, and what a snapshot of
// that position makes superfluous beside older ones: chunks of these, of snapshots that never were,
// and of one of the same position.
func (s *Store) findSnapshots(ctx context.Context, id string, head checkpoint.Head) (l series, err error) {
	v, f, err := s.look(ctx, id) // when it is known what became of the one before
	if err != nil {
		return l, err
	}
	defer v.close()
	if f.info.Head != head {
		if err := v.passed(f, head); err != nil {
			return l, err
		}
	}
	snapshots, err := v.keys(runKey(snapshotKey, f.num))
	if err != nil {
		return l, err
	}
	chunks, err := v.keys(append([]byte{chunkKey}, runKey(snapshotKey, f.num)...))
	if err != nil {
		return l, err
	}
	l.num = f.num
	for _, key := range snapshots {
		l.add(seqOf(key))
	}
	l.add(head.Seq)
	for _, key := range chunks {
		if seq := seqOf(key[1:]); seq == head.Seq || !slices.Contains(l.kept, seq) {
			l.stale = append(l.stale, key)
		} else {
			l.more = true
		}
	}
	return l, nil
}

// passed returns ErrConflict unless the run has ended an append at that position.
func (v *view) passed(f found, at checkpoint.Head) error {
	if at.Seq >= f.info.First && at.Seq < f.info.Head.Seq {
		e, err := v.envelope(f, at.Seq)
		if err != nil {
			return checkpoint.Corrupt(f.info.Run, at.Seq, err)
		}
		if e.Head() == at {
			return nil
		}
	}
	return fmt.Errorf("%w: run %q never ended an append at entry %d with that digest",
		checkpoint.ErrConflict, f.info.Run, at.Seq)
}

// keys returns all keys with that prefix.
func (v *view) keys(prefix []byte) ([][]byte, error) {
	it, err := v.iterator(prefix, false)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var keys [][]byte
	for it.Rewind(); it.Valid(); it.Next() {
		keys = append(keys, it.Item().KeyCopy(nil))
	}
	return keys, nil
}

// Snapshot implements [checkpoint.Store]. It checks that the log still holds the position
// that the snapshot was taken at.
func (s *Store) Snapshot(
	ctx context.Context, id string, upTo uint64,
) (checkpoint.Snapshot, error) {
	v, f, err := s.look(ctx, id)
	if err != nil {
		return checkpoint.Snapshot{}, err
	}
	defer v.close()
	key, err := v.lastKey(snapshotKey, f.num, upTo)
	if err != nil {
		return checkpoint.Snapshot{}, err
	}
	if key == nil || seqOf(key) < f.info.First { // one that a Trim has dropped may still be there
		return checkpoint.Snapshot{}, fmt.Errorf("%w: snapshot of run %q",
			checkpoint.ErrNotFound, id)
	}
	snap, err := v.snapshot(f, key)
	if err != nil {
		return checkpoint.Snapshot{}, checkpoint.Corrupt(id, seqOf(key), err)
	}
	return snap, nil
}

func (v *view) snapshot(f found, key []byte) (checkpoint.Snapshot, error) {
	value, err := v.get(key)
	if err != nil {
		return checkpoint.Snapshot{}, err
	}
	snap := checkpoint.Snapshot{Head: checkpoint.Head{Seq: seqOf(key)}}
	about, data, err := v.blob(f.info.Run, key, value, len(snap.Head.Digest))
	if err != nil {
		return checkpoint.Snapshot{}, err
	}
	copy(snap.Head.Digest[:], about)
	snap.Data = data
	if snap.Head == f.info.Head {
		return snap, nil
	}
	e, err := v.envelope(f, snap.Head.Seq)
	if err == nil && e.Head() != snap.Head {
		err = checkpoint.Damage("a snapshot is not of this log")
	}
	return snap, err
}

// PutGraph implements [checkpoint.Store]. A graph that is kept and damaged is written anew.
func (s *Store) PutGraph(ctx context.Context, digest string, graph []byte) error {
	if err := checkpoint.CheckDigest(digest); err != nil {
		return err
	}
	if kept, err := s.keepsGraph(ctx, digest, graph); kept || err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.exit()
	if len(graph) > MaxAppend {
		return fmt.Errorf("%w: graph %q: %d bytes, the limit is %d",
			checkpoint.ErrTooLarge, digest, len(graph), MaxAppend)
	}
	// One at a time, so that of two that differ the later one finds the other.
	if err := s.beginTurn(ctx, &s.graphing); err != nil {
		return err
	}
	defer s.endTurn(&s.graphing)
	if kept, err := s.keepsGraph(ctx, digest, graph); kept || err != nil {
		return err
	}
	q := newRequest()
	if err := s.putBlob(ctx, q, place{key: nameKey(s.kinds.graph, digest)}, graph); err != nil {
		return err
	}
	return s.submit(ctx, q)
}

// keepsGraph reports whether the graph is kept. It is ErrConflict if another one is, and of one
// that is damaged it is not.
func (s *Store) keepsGraph(ctx context.Context, digest string, graph []byte) (bool, error) {
	old, err := s.Graph(ctx, digest)
	switch {
	case errors.Is(err, checkpoint.ErrCorrupt), errors.Is(err, checkpoint.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case string(old) != string(graph):
		return false, fmt.Errorf("%w: another graph is kept under digest %q", checkpoint.ErrConflict, digest)
	}
	return true, nil
}

// Graph implements [checkpoint.Store].
func (s *Store) Graph(ctx context.Context, digest string) ([]byte, error) {
	v, err := s.view(ctx)
	if err != nil {
		return nil, err
	}
	defer v.close()
	key := nameKey(s.kinds.graph, digest)
	value, err := v.get(key)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, fmt.Errorf("%w: graph %q", checkpoint.ErrNotFound, digest)
	}
	_, graph, err := v.blob("", key, value, 0)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: graph %q: %w", digest, err)
	}
	return graph, nil
}
