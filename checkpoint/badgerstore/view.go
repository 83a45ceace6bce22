package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// A view is what is durable at one moment. While it is open the database forgets nothing
// of that, and the store does not close.
type view struct {
	s    *Store
	txn  *badger.Txn
	ts   uint64
	back *badger.Iterator // see seekBack
}

// view opens a view, which the caller closes.
func (s *Store) view(ctx context.Context) (*view, error) {
	if err := s.called(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enterLocked(); err != nil {
		return nil, err
	}
	return s.viewLocked(), nil
}

// viewWithin opens a view for a call that has entered already, or while nobody else has the store.
func (s *Store) viewWithin() *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return s.viewLocked()
}

func (s *Store) viewLocked() *view {
	s.readers[s.durable]++
	return &view{s: s, txn: s.db.NewTransactionAt(s.durable, false), ts: s.durable}
}

func (v *view) close() {
	if v.back != nil {
		v.back.Close()
	}
	v.txn.Discard()
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[v.ts]--; s.readers[v.ts] == 0 {
		delete(s.readers, v.ts)
	}
	s.exitLocked()
}

// orClose calls find, and closes the view if that fails, or the database panics in it.
func (v *view) orClose(find func() error) error {
	ok := false
	defer func() {
		if !ok {
			v.close()
		}
	}()
	err := find()
	ok = err == nil
	return err
}

// oldestReader returns the transaction up to which the database may forget what was
// overwritten. The store's mutex is held.
func (s *Store) oldestReader() uint64 {
	oldest := s.durable
	for ts := range s.readers {
		oldest = min(oldest, ts)
	}
	return oldest
}

// envelope returns the append of a run that holds the entry seq, or its last one if seq is 0.
func (v *view) envelope(f found, seq uint64) (checkpoint.Envelope, error) {
	it, err := v.seekBack(f.num, seq)
	if err != nil {
		return checkpoint.Envelope{}, err
	}
	if it == nil {
		return checkpoint.Envelope{}, checkpoint.Damage("the log is missing")
	}
	key := it.Item().KeyCopy(nil)
	value, err := it.Item().ValueCopy(nil)
	if err != nil {
		return checkpoint.Envelope{}, fmt.Errorf("checkpoint: reading the store: %w", err)
	}
	if value, err = v.wholeAppend(f.info.Run, key, value); err != nil {
		return checkpoint.Envelope{}, err
	}
	e, err := checkpoint.Unseal(value)
	if err == nil && (e.First != seqOf(key) || e.Last() < seq) {
		err = checkpoint.Damage("the entry is missing")
	}
	return e, err
}

// seekBack returns the view's backward iterator over all logs, at the last append of a run
// that begins at or before seq, or at its last one if seq is 0. It returns nil if there is
// none. A view has one such iterator because making one costs more than a page of seeks.
func (v *view) seekBack(num, seq uint64) (_ *badger.Iterator, err error) {
	if v.back == nil {
		if v.back, err = v.iterator([]byte{logKey}, true); err != nil {
			return nil, err
		}
	}
	if seq == 0 {
		seq--
	}
	if key := seqKey(logKey, num, seq); !stepBack(v.back, key) {
		v.back.Seek(key)
	}
	if !v.back.ValidForPrefix(runKey(logKey, num)) {
		return nil, nil
	}
	return v.back, nil
}

// fewSteps is how many appends back cost about as much as a seek, which looks into every table.
const fewSteps = 8

// stepBack takes it, which goes backward, to the last key at or before key, if that is a few steps
// from where it stands: the runs of a page stand side by side, and most logs are short. Else it
// reports false, and it stands anywhere.
func stepBack(it *badger.Iterator, key []byte) bool {
	for step := range fewSteps {
		if !it.Valid() {
			return false
		}
		if bytes.Compare(it.Item().Key(), key) <= 0 {
			return step > 0 // else there may be another one between
		}
		it.Next()
	}
	return false
}

// appends yields the envelopes of a run, from the one that should hold the entry seq. Each
// stands in memory of the iterator, which the next one overwrites: the iterator has copied it
// from the database's own, which is a map of its files. Whether they follow one another is for
// the caller to check, and whether to go on behind one that can't be read.
func (v *view) appends(ctx context.Context, f found, seq uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		start := seqKey(logKey, f.num, seq)
		if seq > 1 {
			it, err := v.seekBack(f.num, seq)
			if err != nil {
				yield(nil, err)
				return
			}
			if it != nil {
				start = it.Item().KeyCopy(nil)
			}
		}
		it, err := v.iterator(runKey(logKey, f.num), false)
		if err != nil {
			yield(nil, err)
			return
		}
		defer it.Close()
		more := true
		each := func(value []byte) error {
			key := it.Item().Key()
			data, err := v.wholeAppend(f.info.Run, key, value)
			if err != nil {
				err = checkpoint.Corrupt(f.info.Run, max(seqOf(key), seq), err)
			}
			more = yield(data, err)
			return nil
		}
		for it.Seek(start); it.Valid(); it.Next() {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if err := it.Item().Value(each); err != nil {
				yield(nil, fmt.Errorf("checkpoint: reading the store: %w", err))
				return
			}
			if !more {
				return
			}
		}
	}
}

// lastKey returns the last key of that kind of a run at or before seq, or of all if seq is
// 0, or nil if there is none.
func (v *view) lastKey(kind byte, num, seq uint64) ([]byte, error) {
	if seq == 0 {
		seq--
	}
	it, err := v.iterator(runKey(kind, num), true)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	it.Seek(seqKey(kind, num, seq))
	if !it.Valid() {
		return nil, nil
	}
	return it.Item().KeyCopy(nil), nil
}

// iterator returns an iterator that the caller closes.
func (v *view) iterator(prefix []byte, reverse bool) (it *badger.Iterator, err error) {
	defer v.caught(&err)
	return v.txn.NewIterator(badger.IteratorOptions{Prefix: prefix, Reverse: reverse}), nil
}

// get returns the value of a key as the view sees it, copied, or nil.
func (v *view) get(key []byte) (value []byte, err error) {
	defer v.caught(&err)
	item, err := v.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: reading the store: %w", err)
	}
	return item.ValueCopy(nil)
}

// caught recovers the panic of a database that has nowhere left to write to: when it can't begin
// another log of what is in memory it can't be read either, already before the commit that it fails
// in has stopped the store. Any other panic goes on.
func (v *view) caught(err *error) {
	p := recover()
	if p == nil {
		return
	}
	s := v.s
	*err = s.stoppedError()
	if *err == nil {
		s.committing.Lock() // until such a commit has ended
		*err = s.stoppedError()
		s.committing.Unlock()
	}
	if *err == nil {
		panic(p)
	}
	v.txn = s.db.NewTransactionAt(v.ts, false) // one that has no iterator which can't be closed
}
