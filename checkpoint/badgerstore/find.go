package badgerstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
)

// A found is a run as a view sees it.
type found struct {
	info  checkpoint.Info
	num   uint64
	run   *run // nil if it was not in memory
	inbox *inbox
}

// look opens a view and finds the run of that id in it. If there is no error the caller
// closes the view.
func (s *Store) look(ctx context.Context, id string) (*view, found, error) {
	if err := checkpoint.CheckRunID(id); err != nil {
		return nil, found{}, err
	}
	if err := s.called(ctx); err != nil {
		return nil, found{}, err
	}
	for {
		v, f, r, err := s.tryLook(id)
		if err != nil {
			return nil, found{}, err
		}
		if r != nil { // somebody doubts an append: who reads finds out
			err := s.onceSettled(ctx, r, func() error { return nil })
			s.leave(r)
			if err != nil {
				return nil, found{}, err
			}
			continue
		}
		if f.num == 0 {
			err = v.orClose(func() (err error) {
				f, err = v.find(id)
				return err
			})
		}
		if err != nil {
			return nil, found{}, err
		}
		return v, f, nil
	}
}

// tryLook opens a view and says what is in memory of the run at that moment. It returns the
// run instead, pinned, if it has to be settled first.
func (s *Store) tryLook(id string) (*view, found, *run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.enterLocked(); err != nil {
		return nil, found{}, nil, err
	}
	r := s.runs[id]
	switch {
	case r == nil || !r.ready():
		return s.viewLocked(), found{}, nil, nil
	case r.doubts > 0:
		r.users++
		return nil, found{}, r, nil
	case !r.exists():
		s.exitLocked()
		return nil, found{}, nil, checkpoint.NotFound(id)
	}
	return s.viewLocked(), found{r.info, r.num, r, r.inbox}, nil, nil
}

// ready reports whether r is loaded. The store's mutex is held.
func (r *run) ready() bool {
	select {
	case <-r.loaded:
		return r.loadErr == nil
	default:
		return false
	}
}

// find loads what the disk knows of a run. It is called by calls that have entered.
func (s *Store) find(id string) (found, error) {
	v := s.viewWithin()
	defer v.close()
	return v.find(id)
}

func (v *view) find(id string) (found, error) {
	num, err := v.number(id)
	if err != nil {
		return found{}, err
	}
	key := runKey(rowKey, num)
	value, err := v.get(key)
	if err != nil {
		return found{}, err
	}
	if value == nil {
		return found{}, checkpoint.Corrupt(id, 0, checkpoint.Damage("its row is missing"))
	}
	w, err := decodeRow(key, value)
	if err == nil && w.info.Run != id {
		err = checkpoint.Damage(fmt.Sprintf("the row of run %q stands in its place", w.info.Run))
	}
	if err != nil {
		return found{}, checkpoint.Corrupt(id, 0, err)
	}
	return v.complete(w, num)
}

// lookBehind opens a view and finds the number of a run that must exist in it, to list what is
// behind it: if the number is damaged, by its row.
func (s *Store) lookBehind(ctx context.Context, id string) (*view, uint64, error) {
	v, err := s.view(ctx)
	if err != nil {
		return nil, 0, err
	}
	var num uint64
	err = v.orClose(func() (err error) {
		if num, err = v.number(id); errors.Is(err, checkpoint.ErrCorrupt) {
			num, err = v.rowOf(ctx, id, err)
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return v, num, nil
}

// rowOf returns the number of the row that says it is that of a run, or the error if there is none.
// It reads the rows of all runs.
func (v *view) rowOf(ctx context.Context, id string, none error) (uint64, error) {
	it, err := v.iterator([]byte{rowKey}, false)
	if err != nil {
		return 0, err
	}
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		key := it.Item().KeyCopy(nil)
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			return 0, fmt.Errorf("checkpoint: reading the store: %w", err)
		}
		if w, err := decodeRow(key, value); err == nil && w.info.Run == id {
			return runOf(key), nil
		}
	}
	return 0, none
}

// number returns the number of the run of that id.
func (v *view) number(id string) (num uint64, err error) {
	key := nameKey(v.s.kinds.id, id)
	value, err := v.get(key)
	if err != nil {
		return 0, err
	}
	if value == nil {
		return 0, checkpoint.NotFound(id)
	}
	if num, err = unframeNumber(key, value, "the number of the run can't be read"); err != nil {
		return 0, checkpoint.Corrupt(id, 0, err)
	}
	return num, nil
}

// complete finds the head and the epoch of the run of a row: those of its last append.
func (v *view) complete(w row, num uint64) (found, error) {
	f := found{info: w.info, num: num}
	last, err := v.envelope(f, 0)
	if err == nil {
		f.info.Head, f.info.Epoch = last.Head(), last.Epoch
		err = v.belongs(w, f, last)
	}
	if err != nil {
		return found{}, checkpoint.Corrupt(w.info.Run, w.info.Head.Seq, err)
	}
	return f, nil
}

// belongs returns an error unless the row is that of the log: the log must hold the append that the
// row was written with, and the last append must not have written another. Appends between the two
// are not read: what they say of the row Verify finds.
func (v *view) belongs(w row, f found, last checkpoint.Envelope) error {
	marked := f.info.Head
	if last.First > w.first {
		if err := w.outdatedBy(last); err != nil {
			return err
		}
		e, err := v.envelope(f, w.first)
		if err != nil {
			return err
		}
		marked = e.Head()
	}
	if marked != w.info.Head {
		return checkpoint.Damage("the log is not the one that the row was written with")
	}
	return nil
}
