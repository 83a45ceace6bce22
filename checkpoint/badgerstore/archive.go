package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/pawlgo/pawl/checkpoint"
)

var _ checkpoint.Archiver = (*Store)(nil)

// Envelopes implements [checkpoint.Archiver]. [Store.Close] waits for the loop to end.
func (s *Store) Envelopes(ctx context.Context, id string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		v, f, err := s.look(ctx, id)
		if err != nil {
			yield(nil, err)
			return
		}
		defer v.close()
		v.appends(ctx, f, f.info.First)(yield)
	}
}

// Restore implements [checkpoint.Archiver]. The log is written in pieces that share the
// transactions of others, under a number that is marked as that of a deleted run; the last
// transaction takes the mark away and gives the number its row and its id. What a Restore
// that failed has left, the next Open removes if Restore itself can't.
func (s *Store) Restore(
	ctx context.Context, l checkpoint.Lease, a checkpoint.Archive,
) (checkpoint.Info, error) {
	r, err := s.enterHeld(ctx, l)
	if err != nil {
		return checkpoint.Info{}, err
	}
	defer s.leave(r)
	x, err := s.beginRestore(ctx, r, l)
	if err != nil {
		return checkpoint.Info{}, err
	}
	if a.Envelopes != nil {
		err = x.appends(ctx, a.Envelopes)
	}
	if err == nil {
		err = a.Complete(x.log)
	}
	if err == nil {
		err = x.messages(ctx, a.Posts)
	}
	if err == nil {
		err = x.end(ctx, a.Bases)
	}
	if err != nil {
		s.unmark(ctx, x.num, err)
		return checkpoint.Info{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.info.Own(), nil
}

// A restoration is a run that is being restored.
type restoration struct {
	s     *Store
	r     *run
	lease checkpoint.Lease
	num   uint64
	log   *checkpoint.Log
	first uint64 // entry of the last append
	parts packer
}

// beginRestore gives the run a number, and marks it as that of a deleted run.
func (s *Store) beginRestore(
	ctx context.Context, r *run, l checkpoint.Lease,
) (*restoration, error) {
	s.mu.Lock()
	exists := r.exists()
	s.lastRun++
	x := &restoration{s: s, r: r, lease: l, num: s.lastRun, log: checkpoint.NewLog(l.Run)}
	s.mu.Unlock()
	if exists {
		return nil, alreadyThere(l.Run)
	}
	x.parts = packer{s: s, fresh: x.request}
	mark := runKey(x.s.kinds.deleted, x.num)
	if err := x.parts.set(ctx, mark, frame(mark, []byte(l.Run))); err != nil {
		return nil, err
	}
	return x, x.parts.write(ctx)
}

// request returns a request under the lease.
func (x *restoration) request() *request {
	q := numbering()
	q.rule, q.run, q.lease = held, x.r, x.lease
	return q
}

func (x *restoration) appends(ctx context.Context, envelopes iter.Seq2[[]byte, error]) error {
	for data, err := range envelopes {
		if err != nil {
			return err
		}
		before := x.log.Info().Head.Seq
		if err := x.log.Add(data); err != nil {
			return checkpoint.Corrupt(x.lease.Run, before+1, err)
		}
		if len(data) > MaxAppend {
			return fmt.Errorf("%w: run %q: %d bytes, the limit is %d",
				checkpoint.ErrTooLarge, x.lease.Run, len(data), MaxAppend)
		}
		e, _ := checkpoint.Unseal(data) // as Add has
		x.first = e.First
		at := place{run: x.lease.Run, key: seqKey(logKey, x.num, x.first)}
		if err := x.parts.blob(ctx, at, data); err != nil {
			return err
		}
	}
	return nil
}

func (x *restoration) messages(ctx context.Context, posts []checkpoint.Post) error {
	for _, p := range posts {
		key := append(runKey(postKey, x.num), p.ID...)
		data, err := encodePost(x.lease.Run, p)
		if err != nil {
			return err
		}
		if err := x.parts.blob(ctx, place{run: x.lease.Run, key: key}, data); err != nil {
			return err
		}
	}
	return x.parts.write(ctx)
}

// end makes the run exist.
func (x *restoration) end(ctx context.Context, bases [][]byte) error {
	for {
		if err := x.tryEnd(ctx, bases); !errors.Is(err, errBaseMoved) {
			return err
		}
	}
}

func (x *restoration) tryEnd(ctx context.Context, bases [][]byte) (err error) {
	info := x.log.Info()
	h := hold{s: x.s}
	err = errPanics // unless it returns
	defer func() { h.end(ctx, err) }()
	q := newRequest()
	q.rule, q.run, q.lease, q.info, q.restored = atHead, x.r, x.lease, info, x.num
	if err := q.setRow(x.num, row{info: info, first: x.first}); err != nil {
		return err
	}
	x.s.setNumber(q, info.Run, x.num)
	q.delete(runKey(x.s.kinds.deleted, x.num))
	if err := h.replace(ctx, q, nil, info.Bases(), bases, 1); err != nil {
		return err
	}
	err = x.s.submit(ctx, q)
	if errors.Is(err, checkpoint.ErrConflict) { // it came to be meanwhile
		return alreadyThere(info.Run)
	}
	return err
}
