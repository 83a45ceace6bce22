package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A base is what is kept in memory of a machine that runs begin at, while who refers to it
// changes. All of it is guarded by the store's mutex.
//
// Its shelf is what the disk will say of it once all that the committer has admitted is durable. So
// of two deletions in one transaction one is the last; and what does not become durable is undone
// by putting back the shelf that there was before, the last change first.
type base struct {
	digest string
	shelf

	loaded   chan struct{} // closed once the shelf is known, or loadErr
	loadErr  error
	making   turn
	users    int // calls that change who refers to it
	inFlight int
	writing  int // of these, those that write the base itself
	undone   int // of those that have ended, those that were not made durable
	doubts   int
}

// A shelf is how a base is kept. How many runs refer to it stands beside it under a key of its own,
// and both are written and removed with what makes a run refer to it, or no longer. The pieces of a
// large base are marked while they are written, and again when they are to be removed: what nobody
// has finished, the next Open removes.
type shelf struct {
	count  uint64 // runs that refer to it; nothing is kept if there is none
	large  bool   // it is in these pieces:
	pieces attempt
	damage error // of its own value: whether it is in pieces, and in which, nobody knows
}

// pinBase returns what is known of the base of that digest, whether it is kept or not. It is
// called by calls that have entered, and ended by leaveBase.
func (s *Store) pinBase(ctx context.Context, digest string) (*base, error) {
	s.mu.Lock()
	b := s.bases[digest]
	first := b == nil
	if first {
		b = &base{digest: digest, loaded: make(chan struct{})}
		s.bases[digest] = b
	}
	b.users++
	s.mu.Unlock()
	pinned := false
	defer func() {
		if !pinned { // also if the database panics
			s.leaveBase(b)
		}
	}()
	if first {
		s.loadBase(b)
	}
	select {
	case <-b.loaded:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b.loadErr != nil {
		return nil, b.loadErr
	}
	pinned = true
	return b, nil
}

func (s *Store) leaveBase(b *base) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.users--
	s.forget(b)
}

// forget forgets a base that nobody uses: what is known of it then is what the disk says. The
// store's mutex is held.
func (s *Store) forget(b *base) {
	if b.users+b.inFlight+b.doubts == 0 && s.bases[b.digest] == b {
		delete(s.bases, b.digest)
	}
}

// loadBase finds what the disk knows of b, which nobody else uses yet.
func (s *Store) loadBase(b *base) {
	is, err := shelf{}, errPanicked
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer close(b.loaded)
		b.shelf, b.loadErr = is, err
	}()
	is, err = s.findBase(b.digest)
}

// findBase loads what the disk knows of a base.
func (s *Store) findBase(digest string) (is shelf, err error) {
	v := s.viewWithin()
	defer v.close()
	is.count, err = v.count(digest)
	counted := err == nil
	if counted && is.count > 0 {
		is.pieces, is.large, err = v.piecesOf(nameKey(s.kinds.base, digest))
	}
	if err != nil {
		err = fmt.Errorf("checkpoint: base %s: %w", digest, err)
	}
	if counted && errors.Is(err, checkpoint.ErrCorrupt) {
		is.damage, err = err, nil // who has the base heals it
	}
	return is, err
}

// count returns how many runs refer to the base.
func (v *view) count(digest string) (uint64, error) {
	key := nameKey(countKey, digest)
	value, err := v.get(key)
	if err != nil || value == nil {
		return 0, err
	}
	return unframeNumber(key, value, "the number of its runs can't be read")
}

// piecesOf tells which pieces a blob is in, if it is in any.
func (v *view) piecesOf(key []byte) (a attempt, large bool, err error) {
	value, err := v.get(key)
	if err != nil {
		return a, false, err
	}
	payload, err := unframe(key, value)
	if err == nil && len(payload) > 0 && payload[0]&^ways != 0 {
		err = fmt.Errorf("%w: a value is packed in the way %#x", checkpoint.ErrVersion, payload[0])
	}
	if err != nil || len(payload) != 1+chunkedEndLen || payload[0]&(chunked|cut) == 0 {
		return a, false, err
	}
	return decodeAttempt(payload[13:]), true, nil
}

// piecesLeft returns the marks of all pieces of the base that there are.
func (v *view) piecesLeft(digest string) (marks [][]byte, err error) {
	prefix := append([]byte{chunkKey}, nameKey(v.s.kinds.base, digest)...)
	it, err := v.iterator(prefix, false)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().Key()
		if len(key) != len(prefix)+16 { // an attempt and a number
			continue
		}
		mark := append([]byte{piecesKey}, key[2:len(key)-4]...)
		if n := len(marks); n == 0 || !bytes.Equal(marks[n-1], mark) {
			marks = append(marks, mark)
		}
	}
	return marks, nil
}

// Base implements [checkpoint.Store].
func (s *Store) Base(ctx context.Context, id, digest string) ([]byte, error) {
	v, f, err := s.look(ctx, id)
	if err != nil {
		return nil, err
	}
	defer v.close()
	if !slices.Contains(f.info.Bases(), digest) {
		return nil, fmt.Errorf("%w: base %.80q of run %q", checkpoint.ErrNotFound, digest, id)
	}
	data, err := v.base(digest)
	if err != nil {
		return nil, checkpoint.Corrupt(id, 0, err)
	}
	return data, nil
}

// base returns a base that is counted, having checked that it is the one.
func (v *view) base(digest string) ([]byte, error) {
	key := nameKey(v.s.kinds.base, digest)
	value, err := v.get(key)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, checkpoint.Damage("base " + digest + " is missing")
	}
	_, data, err := v.blob("", key, value, 0)
	if err == nil && checkpoint.BaseDigest(data) != digest {
		err = checkpoint.Damage("it is another one")
	}
	if err != nil {
		return nil, fmt.Errorf("base %s: %w", digest, err)
	}
	return data, nil
}

// sweepPieces removes the pieces of a base that a mark names, and last the mark.
func (s *Store) sweepPieces(
	ctx context.Context, mark []byte, remove func(keys [][]byte) error,
) error {
	prefix := append([]byte{chunkKey, s.kinds.base}, mark[1:]...)
	if err := s.sweepPrefix(ctx, prefix, nil, nil, remove); err != nil {
		return err
	}
	return remove([][]byte{mark})
}
