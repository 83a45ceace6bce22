package badgerstore

import (
	"context"
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

// List implements [checkpoint.Store]. If a run is damaged it returns, with the error, the
// runs before it; a listing after the damaged one goes on behind it. ErrNotFound if there
// is no run Filter.After.
func (s *Store) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	start := seqKey(rowKey, ^uint64(0), 0)
	var v *view
	var err error
	if f.After == "" {
		v, err = s.view(ctx)
	} else {
		var last uint64
		v, last, err = s.lookNumber(ctx, f.After)
		start = runKey(rowKey, last-1)
	}
	if err != nil {
		return nil, err
	}
	defer v.close()
	var page []checkpoint.Info
	it := v.iterator([]byte{rowKey}, true)
	defer it.Close()
	for it.Seek(start); it.Valid() && len(page) < f.Page(); it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key := it.Item().KeyCopy(nil)
		var info checkpoint.Info
		var ok bool
		err := it.Item().Value(func(value []byte) (err error) {
			info, ok, err = v.selected(f, key, value)
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
	f checkpoint.Filter, key, value []byte,
) (checkpoint.Info, bool, error) {
	w, err := decodeRow(key, value)
	if err != nil {
		run := fmt.Sprintf("number %d", runOf(key))
		return checkpoint.Info{}, false, checkpoint.Corrupt(run, 0, err)
	}
	if info, ok := v.s.remembered(w.info.Run, runOf(key)); ok {
		return info, f.Matches(info), nil
	}
	if !f.Matches(w.info) {
		return checkpoint.Info{}, false, nil
	}
	found, err := v.complete(w, runOf(key))
	return found.info, true, err
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
