package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/pawlgo/pawl/checkpoint"
)

// Read implements [checkpoint.Store]. It reads the log as it is durable when the loop
// begins. [Store.Close] waits for the loop to end.
func (s *Store) Read(
	ctx context.Context, id string, from, to uint64,
) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		v, f, err := s.look(ctx, id)
		if err != nil {
			yield(checkpoint.Entry{}, err)
			return
		}
		defer v.close()
		s.loops.Add(1)
		defer s.loops.Add(-1)
		span := checkpoint.Span{Run: id, Head: f.info.Head, First: f.info.First}.Between(from, to)
		appends := func(seq uint64) iter.Seq2[[]byte, error] { return v.appends(ctx, f, seq) }
		span.Entries(ctx, appends)(yield)
	}
}

// Stat implements [checkpoint.Store].
func (s *Store) Stat(ctx context.Context, id string) (checkpoint.Info, error) {
	v, f, err := s.look(ctx, id)
	if err != nil {
		return checkpoint.Info{}, err
	}
	v.close()
	return f.info.Own(), nil
}

// List implements [checkpoint.Store]. If a run is damaged, or sealed with a key that was not given,
// it returns, with the error, the runs before it; a listing after that one goes on behind it. Of a
// run whose row and number are both damaged nobody knows the id: the error names none, and nothing
// leads behind it. ErrNotFound if there is no run Filter.After.
func (s *Store) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	start := seqKey(rowKey, ^uint64(0), 0)
	var v *view
	var err error
	if f.After == "" {
		v, err = s.view(ctx)
	} else {
		var last uint64
		v, last, err = s.lookBehind(ctx, f.After)
		start = runKey(rowKey, last-1)
	}
	if err != nil {
		return nil, err
	}
	defer v.close()
	var page []checkpoint.Info
	it, err := v.iterator([]byte{rowKey}, true)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.Seek(start); it.Valid() && len(page) < f.Page(); it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key := it.Item().KeyCopy(nil)
		var info checkpoint.Info
		var ok bool
		err := it.Item().Value(func(value []byte) (err error) {
			info, ok, err = v.selected(ctx, f, key, value)
			return err
		})
		if err != nil {
			return page, err
		}
		if ok {
			page = append(page, info)
		}
	}
	return page, nil
}

// selected returns what is known of the run of a row, and whether f selects it.
func (v *view) selected(
	ctx context.Context, f checkpoint.Filter, key, value []byte,
) (checkpoint.Info, bool, error) {
	num := runOf(key)
	w, err := decodeRow(key, value)
	if err != nil {
		return checkpoint.Info{}, false, v.blame(ctx, num, "", err)
	}
	if info, ok := v.s.remembered(w.info.Run, num); ok {
		return info, f.Matches(info), nil
	}
	if !f.Matches(w.info) {
		return checkpoint.Info{}, false, nil
	}
	found, err := v.complete(w, num)
	if err != nil {
		return checkpoint.Info{}, false, v.blame(ctx, num, w.info.Run, err)
	}
	return found.info, true, nil
}

// blame returns err, which was found in what is stored under a number, as that of the run whose
// number it is: a listing goes on behind that one. said is the id in its row, which may be
// another run's; "" if the row can't be read.
func (v *view) blame(ctx context.Context, num uint64, said string, err error) error {
	id := said
	at, unread := v.number(said)
	if said == "" || !errors.Is(unread, checkpoint.ErrCorrupt) && (unread != nil || at != num) {
		var none error
		if id, none = v.idOf(ctx, num); none != nil {
			return none
		}
	}
	reason, seq := err.Error(), uint64(0)
	var known *checkpoint.CorruptError
	if errors.As(err, &known) {
		reason, seq = known.Reason, known.Seq
	}
	if id == "" {
		reason = fmt.Sprintf("run number %d, to which no id leads: %s", num, reason)
		err = fmt.Errorf("run number %d, to which no id leads: %w", num, err)
	}
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return &checkpoint.CorruptError{Run: id, Seq: seq, Reason: reason}
	}
	return checkpoint.Corrupt(id, 0, err)
}

// idOf returns the id that leads to a number, "" if none does that can be read. It reads the
// numbers of all runs.
func (v *view) idOf(ctx context.Context, num uint64) (string, error) {
	it, err := v.iterator([]byte{v.s.kinds.id}, false)
	if err != nil {
		return "", err
	}
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		id := string(it.Item().Key()[1:])
		if at, err := v.number(id); err == nil && at == num {
			return id, nil
		}
	}
	return "", nil
}

// remembered returns what is in memory of a run that has that number.
func (s *Store) remembered(id string, num uint64) (checkpoint.Info, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil || !r.ready() || r.num != num || !r.exists() {
		return checkpoint.Info{}, false
	}
	return r.info.Own(), true
}
