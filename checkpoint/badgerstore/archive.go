package badgerstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"

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
		for data, err := range v.appends(ctx, f.num, 1) {
			if err != nil {
				yield(nil, checkpoint.Corrupt(id, 0, err))
				return
			}
			if !yield(data, nil) {
				return
			}
		}
	}
}

// Restore implements [checkpoint.Archiver]. The log is written in pieces that share the
// transactions of others, under a number that is marked as that of a deleted run; the last
// transaction takes the mark away and gives the number its row and its id. What a Restore
// that failed has left, the next Open removes if Restore itself can't.
func (s *Store) Restore(
	ctx context.Context, l checkpoint.Lease, posts []checkpoint.Post,
	envelopes iter.Seq2[[]byte, error],
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
	err = x.log(ctx, envelopes)
	if err == nil {
		err = x.messages(ctx, posts)
	}
	if err == nil {
		err = x.end(ctx)
	}
	if err != nil {
		x.undo(ctx, err)
		return checkpoint.Info{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	info := r.info
	info.Labels = maps.Clone(info.Labels)
	return info, nil
}

// A restoration is a run that is being restored.
type restoration struct {
	s     *Store
	r     *run
	lease checkpoint.Lease
	num   uint64
	next  []byte // a number that no run has had yet, encoded
	info  checkpoint.Info
	first uint64   // entry of the last append
	part  *request // keys that are not yet written
}

// What a piece of a log that is restored may have before it is written.
const (
	partBytes = 128 << 10
	partKeys  = 256
)

// beginRestore gives the run a number, and marks it as that of a deleted run.
func (s *Store) beginRestore(
	ctx context.Context, r *run, l checkpoint.Lease,
) (*restoration, error) {
	s.mu.Lock()
	exists := r.exists()
	s.lastRun++
	x := &restoration{s: s, r: r, lease: l, num: s.lastRun, info: checkpoint.Info{Run: l.Run}}
	s.mu.Unlock()
	if exists {
		return nil, fmt.Errorf("%w: run %q", checkpoint.ErrExists, l.Run)
	}
	x.next = binary.BigEndian.AppendUint64(nil, x.num+1)
	x.part = x.request()
	mark := runKey(deletedKey, x.num)
	x.part.set(mark, frame(mark, []byte(l.Run)))
	return x, x.write(ctx)
}

// request returns a request under the lease, which sets a key whatever else it does.
func (x *restoration) request() *request {
	q := newRequest()
	q.rule, q.run, q.lease = held, x.r, x.lease
	q.set(nextKey, frame(nextKey, x.next))
	return q
}

// write submits what has been gathered.
func (x *restoration) write(ctx context.Context) error {
	q := x.part
	x.part = x.request()
	return x.s.submitBulk(ctx, q)
}

// room writes what has been gathered, if a value of that size can't join it.
func (x *restoration) room(ctx context.Context, size int) error {
	if x.part.keys() > 1 && (x.part.bytes+size > partBytes || x.part.keys() >= partKeys) {
		return x.write(ctx)
	}
	return nil
}

func (x *restoration) log(ctx context.Context, envelopes iter.Seq2[[]byte, error]) error {
	for data, err := range envelopes {
		if err != nil {
			return err
		}
		next, err := x.info.Sealed(data)
		if err != nil {
			return checkpoint.Corrupt(x.info.Run, x.info.Head.Seq+1, err)
		}
		if len(data) > MaxAppend {
			return fmt.Errorf("%w: run %q: %d bytes, the limit is %d",
				checkpoint.ErrTooLarge, x.info.Run, len(data), MaxAppend)
		}
		x.first = x.info.Head.Seq + 1
		key := seqKey(logKey, x.num, x.first)
		if err := x.room(ctx, len(data)); err != nil {
			return err
		}
		if len(data) <= inlineMost {
			x.part.set(key, append([]byte(nil), data...))
		} else if err := x.s.putBlob(ctx, x.part, key, nil, data); err != nil {
			return err
		}
		x.info = next
	}
	if x.info.Head.Seq == 0 {
		return checkpoint.Corrupt(x.info.Run, 1, checkpoint.Damage("there is no append"))
	}
	return nil
}

func (x *restoration) messages(ctx context.Context, posts []checkpoint.Post) error {
	for _, p := range posts {
		if err := p.Check(); err != nil {
			return err
		}
		data := encodePost(p)
		if err := x.room(ctx, len(data)); err != nil {
			return err
		}
		if err := x.s.putBlob(ctx, x.part, append(runKey(postKey, x.num), p.ID...), nil, data); err != nil {
			return err
		}
	}
	return x.write(ctx)
}

// end makes the run exist.
func (x *restoration) end(ctx context.Context) error {
	q := newRequest()
	q.rule, q.run, q.lease, q.info, q.restored = atHead, x.r, x.lease, x.info, x.num
	key := runKey(rowKey, x.num)
	w := row{info: x.info, first: x.first}
	value := w.encode(key)
	if len(value) > inlineMost {
		return fmt.Errorf("%w: run %q: %d bytes of names and labels, the limit is %d",
			checkpoint.ErrTooLarge, x.info.Run, len(value), inlineMost)
	}
	q.set(key, value)
	name := nameKey(idKey, x.info.Run)
	q.set(name, frame(name, key[1:]))
	q.delete(runKey(deletedKey, x.num))
	return x.s.submit(ctx, q)
}

// undo removes what was written, unless it is not known what was.
func (x *restoration) undo(ctx context.Context, err error) {
	if errors.Is(err, checkpoint.ErrCommitUnknown) {
		return
	}
	_ = x.s.sweep(ctx, x.num, func(remove [][]byte) error {
		q := x.request()
		for _, key := range remove {
			q.delete(key)
		}
		return x.s.submitBulk(ctx, q)
	})
}
