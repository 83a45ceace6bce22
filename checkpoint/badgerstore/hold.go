package badgerstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
)

// A hold is the bases that a request changes something about, until its outcome is known.
type hold struct {
	s      *Store
	bases  []*base
	making []*base
	marks  [][]byte // of pieces that were written
	gone   [][]byte // marks of pieces that the request leaves to nobody; the committer adds them
}

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
		change.large, change.pieces = true, h.s.newAttempt()
		mark := piecesKeyOf(digest, change.pieces)
		h.marks = append(h.marks, mark)
		err := h.s.putChunks(ctx, x, change.pieces, func(part *request) {
			part.set(mark, frame(mark))
		})
		if err != nil {
			return err
		}
		q.set(key, frame(key, x.chunkedEnd(change.pieces)))
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
