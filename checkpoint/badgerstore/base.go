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
// How many runs refer to a base stands beside it under a key of its own, and both are written
// and removed with what makes a run refer to it, or no longer: the committer counts, so that of
// two deletions in one transaction one is the last. The pieces of a large base are marked while
// they are written, and again when they are to be removed: what nobody has finished, the next
// Open removes.
type base struct {
	digest string
	count  uint64 // runs that refer to it; what the committer has admitted counts
	pieces attempt
	large  bool  // it is in pieces
	damage error // of its own value: whether it is in pieces, and in which, nobody knows

	loaded   chan struct{} // closed once the above is known, or loadErr
	loadErr  error
	making   turn
	users    int // calls that change who refers to it
	inFlight int
	writing  int // of these, those that write the base itself
	undone   int // of those that have ended, those that were not made durable
	doubts   int
}

// A ref is a change of the number of runs that refer to a base.
type ref struct {
	hold  *hold // that it belongs to
	base  *base
	by    int
	makes bool // the request writes the base, which is not there before
	heals bool // the request writes the base over one that can't be read
	large bool // in these pieces:
	in    attempt
	done  int // by how much the count was changed

	wasLarge  bool // what the base was that is healed
	was       attempt
	wasDamage error

	undone int // as many of the base's as there were when it was found to be kept
}

// writes reports whether the request writes the base.
func (r *ref) writes() bool { return r.makes || r.heals }

// errBaseMoved: a base has come or gone since the request was made. The call makes it anew.
var errBaseMoved = errors.New("badgerstore: a base has come or gone")

const (
	// baseInline is the largest base that is kept in one piece: it shares a transaction with all
	// runs of a Fork, and with the other bases of a Trim or Restore.
	baseInline = 64 << 10
	// baseLeast is a base that takes no less of that transaction if it is in pieces.
	baseLeast = 128
)

// inlineBeside returns how large a base may be to go with what q has: together they take half of
// a transaction, and leave the other half to what is said of those that are in pieces.
func (s *Store) inlineBeside(q *request) int {
	return min(baseInline, max(baseLeast, s.maxBytes/2-q.bytes))
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
	is, err := base{}, errPanicked
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer close(b.loaded)
		b.count, b.pieces, b.large, b.damage, b.loadErr = is.count, is.pieces, is.large, is.damage, err
	}()
	is, err = s.findBase(b.digest)
}

// findBase loads what the disk knows of a base.
func (s *Store) findBase(digest string) (b base, err error) {
	v := s.viewWithin()
	defer v.close()
	b.count, err = v.count(digest)
	counted := err == nil
	if counted && b.count > 0 {
		b.pieces, b.large, err = v.piecesOf(nameKey(s.kinds.base, digest))
	}
	if err != nil {
		err = fmt.Errorf("checkpoint: base %s: %w", digest, err)
	}
	if counted && errors.Is(err, checkpoint.ErrCorrupt) {
		b.damage, err = err, nil // who has the base heals it
	}
	return b, err
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

// A hold is the bases that a request changes something about, until its outcome is known.
type hold struct {
	s      *Store
	bases  []*base
	making []*base
	marks  [][]byte // of pieces that were written
	gone   [][]byte // marks of pieces that the request leaves to nobody; the committer adds them
}

// refer adds to q that n more runs refer to the base, having written its pieces if it is not
// kept yet, or can't be read: those that stand on it are healed with that. Only one call at a time
// writes a base. What else q writes it has before.
func (h *hold) refer(ctx context.Context, q *request, digest string, data []byte, n int) error {
	b, err := h.s.pinBase(ctx, digest)
	if err != nil {
		return err
	}
	h.bases = append(h.bases, b)
	change := ref{base: b, by: n}
	kept, err := h.s.kept(&change)
	if kept && err == nil {
		h.change(q, change)
		return nil
	}
	if kept && (data == nil || !errors.Is(err, checkpoint.ErrCorrupt) && !errors.Is(err, checkpoint.ErrKey)) {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if data == nil {
		return checkpoint.Damage("base " + digest + " is missing")
	}
	if len(data) > MaxSnapshot {
		return fmt.Errorf("%w: a base of %d bytes, the limit is %d",
			checkpoint.ErrTooLarge, len(data), MaxSnapshot)
	}
	if err := h.s.beginTurn(ctx, &b.making); err != nil {
		return err
	}
	h.making = append(h.making, b)
	if kept, err = h.s.kept(&change); kept && err == nil {
		h.change(q, change)
		return nil
	}
	change.makes, change.heals = !kept, kept
	if err := h.abandonAll(q, b); err != nil {
		return err
	}
	key := nameKey(h.s.kinds.base, digest)
	x, err := h.s.pack(place{key: key}, data)
	if err != nil {
		return err
	}
	if len(x.data) <= h.s.inlineBeside(q) {
		q.set(key, x.value())
	} else {
		change.large, change.in = true, h.s.newAttempt()
		mark := piecesKeyOf(digest, change.in)
		h.marks = append(h.marks, mark)
		err := h.s.putChunks(ctx, x, change.in, func(part *request) {
			part.set(mark, frame(mark))
		})
		if err != nil {
			return err
		}
		q.set(key, frame(key, x.chunkedEnd(change.in)))
		q.delete(mark)
	}
	h.change(q, change)
	return nil
}

// kept reports whether the base of r is kept, and with an error that it can't be read: a run that
// came to stand on it would be lost with it. What is being written is sound, unless that is undone:
// counts finds out.
func (s *Store) kept(r *ref) (bool, error) {
	b := r.base
	s.mu.Lock()
	r.undone = b.undone
	if b.count == 0 || b.writing > 0 {
		defer s.mu.Unlock()
		return b.count > 0, nil
	}
	s.calls++
	v := s.viewLocked()
	s.mu.Unlock()
	defer v.close()
	_, err := v.base(b.digest)
	return true, err
}

// abandonAll adds to q the marks of all pieces that there are of a base whose turn the hold has, if
// it is not known which it was in: q leaves them to nobody.
func (h *hold) abandonAll(q *request, b *base) error {
	s := h.s
	s.mu.Lock()
	sound := b.damage == nil
	s.mu.Unlock()
	if sound {
		return nil
	}
	v := s.viewWithin()
	defer v.close()
	marks, err := v.piecesLeft(b.digest)
	for _, mark := range marks {
		q.set(mark, frame(mark))
		h.gone = append(h.gone, mark)
	}
	return err
}

// drop adds to q that a run does not refer to the bases any more.
func (h *hold) drop(ctx context.Context, q *request, digests []string) error {
	for _, digest := range digests {
		b, err := h.s.pinBase(ctx, digest)
		if err != nil {
			return err
		}
		h.bases = append(h.bases, b)
		h.change(q, ref{base: b, by: -1})
	}
	return nil
}

// change adds r to q, and counts what the committer adds for it at most: by then it is too late to
// find that it is more than a transaction can be.
func (h *hold) change(q *request, r ref) {
	h.s.mu.Lock()
	large, mark := r.base.large, piecesKeyOf(r.base.digest, r.base.pieces)
	h.s.mu.Unlock()
	key := 1 + len(r.base.digest) + perKey
	if r.by > 0 {
		q.later++
		q.bytes += key + frameHead + 8 // the count
	} else {
		q.later += 2
		q.bytes += 2 * key // of the last run the count and the base, both removed
	}
	if large && (r.by < 0 || r.heals) {
		q.later++
		q.bytes += len(mark) + frameHead + perKey
	}
	r.hold = h
	q.refs = append(q.refs, r)
}

// errPanics is the outcome of a call that the database panics in.
var errPanics = errors.New("the database panics")

// end ends the hold once the outcome of the request is known. What was written for nothing, and
// bases that nobody refers to any more, are removed.
func (h *hold) end(ctx context.Context, err error) {
	s := h.s
	for _, b := range h.making {
		s.endTurn(&b.making)
	}
	defer func() { // also if the database panics in the sweep
		for _, b := range h.bases {
			s.leaveBase(b)
		}
	}()
	marks := h.marks
	if err == nil {
		s.mu.Lock()
		marks = h.gone
		s.mu.Unlock()
	} else if errors.Is(err, checkpoint.ErrCommitUnknown) || errors.Is(err, errPanics) {
		marks = nil // the next Open sees to them
	}
	for _, mark := range marks {
		_ = s.sweepPieces(ctx, mark, s.remover(ctx)) // what it can't finish, the next Open does
	}
}

// counts changes what q changes of the bases' counts, and adds the keys that say so. It returns
// errBaseMoved, and changes nothing, if a base is not as q takes it to be, and its damage if q
// gives up a base of which nobody knows how it is kept. The store's mutex is held.
func (q *request) counts() error {
	for _, r := range q.refs {
		if r.by > 0 && (r.makes != (r.base.count == 0) || !r.writes() && r.undone != r.base.undone) {
			return errBaseMoved
		}
		if r.by < 0 && r.base.damage != nil { // what would be left of it nobody knows
			return r.base.damage
		}
	}
	q.later = 0 // they are among the others now
	for i := range q.refs {
		r := &q.refs[i]
		b := r.base
		r.done = max(r.by, -int(b.count)) // a damaged store may count too few
		b.inFlight++
		if b.count += uint64(r.done); b.count > 0 {
			key := nameKey(countKey, b.digest)
			q.set(key, frameNumber(key, b.count))
			if r.heals {
				r.wasLarge, r.was, r.wasDamage = b.large, b.pieces, b.damage
				q.abandon(r)
			}
			if r.writes() {
				b.large, b.pieces, b.damage = r.large, r.in, nil
				b.writing++
			}
			continue
		}
		q.delete(nameKey(countKey, b.digest))
		q.delete(nameKey(r.hold.s.kinds.base, b.digest))
		q.abandon(r)
	}
	return nil
}

// abandon adds to q the mark of the pieces that the base has so far.
func (q *request) abandon(r *ref) {
	if b := r.base; b.large {
		mark := piecesKeyOf(b.digest, b.pieces)
		q.set(mark, frame(mark))
		r.hold.gone = append(r.hold.gone, mark)
	}
}

// counted ends what counts began, of the last request first. The store's mutex is held.
func (q *request) counted(durable bool) {
	for i := range q.refs {
		r := &q.refs[i]
		b := r.base
		b.inFlight--
		if r.writes() {
			b.writing--
		}
		if !durable {
			b.count -= uint64(r.done)
			if r.writes() {
				b.undone++
			}
			if r.heals {
				b.large, b.pieces, b.damage = r.wasLarge, r.was, r.wasDamage
			}
		}
	}
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
