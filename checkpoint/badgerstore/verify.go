package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// A Progress says how far a [Store.Verify] has come.
type Progress struct {
	Run  string // that was verified last
	Done int    // runs that were verified
	Of   int    // runs there were when it began
}

// Verify reads the whole store and yields what is wrong with it: first with what tells which runs
// there are and who refers to what, of all of them as of one moment, then with each run, as
// checkpoint.Verify does. It changes nothing, takes no lease and keeps nobody waiting. progress is told of
// every run, by the goroutine of the loop; it may be nil.
//
// The error that a loop may end with is not about what is stored: ErrClosed, ctx's, or a version
// that this program does not know. Verify holds the ids of all runs in memory.
func (s *Store) Verify(ctx context.Context, progress func(Progress)) iter.Seq2[checkpoint.Finding, error] {
	return func(yield func(checkpoint.Finding, error) bool) {
		if ctx == nil {
			yield(checkpoint.Finding{}, &checkpoint.ArgumentError{Call: "Verify", Argument: "context",
				Reason: "is nil: use context.Background() if nothing is to end the loop"})
			return
		}
		runs, ok := s.audit(ctx, yield)
		for i, run := range runs {
			if !ok {
				return
			}
			for f, err := range checkpoint.Verify(ctx, s, run) {
				if errors.Is(err, checkpoint.ErrNotFound) || errors.Is(err, checkpoint.ErrTrimmed) {
					break // it was deleted or trimmed meanwhile
				}
				if ok = yield(f, err) && err == nil; !ok {
					return
				}
			}
			if progress != nil {
				progress(Progress{run, i + 1, len(runs)})
			}
		}
	}
}

// An auditor looks at one moment of the store.
type auditor struct {
	*view
	ctx   context.Context
	yield func(checkpoint.Finding, error) bool
	runs  map[string]uint64 // numbers by id
	known map[uint64]bool   // numbers of runs, also of those that are being removed
	refs  map[string]uint64 // how many runs refer to a base
}

// audit returns the runs that there are, in the order of their ids, and whether the loop goes on.
func (s *Store) audit(ctx context.Context, yield func(checkpoint.Finding, error) bool) (runs []string, ok bool) {
	v, err := s.view(ctx)
	if err != nil {
		yield(checkpoint.Finding{}, err)
		return nil, false
	}
	defer v.close()
	a := auditor{v, ctx, yield, map[string]uint64{}, map[uint64]bool{}, map[string]uint64{}}
	ok = a.ids() && a.rows() && a.strays() && a.counts()
	return slices.Sorted(maps.Keys(a.runs)), ok
}

func (a *auditor) found(run string, part checkpoint.Part, reason string) bool {
	return a.yield(checkpoint.Finding{Run: run, Part: part, Reason: reason}, nil)
}

// damaged is found for an error, which ends the loop if it is not about what is stored.
func (a *auditor) damaged(run string, part checkpoint.Part, err error) bool {
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return a.found(run, part, err.Error())
	}
	a.yield(checkpoint.Finding{}, err)
	return false
}

// each calls do for the keys of a kind, which may move the iterator on by a seek, until it returns false.
func (a *auditor) each(kind byte, do func(it *badger.Iterator, key []byte) bool) bool {
	it := a.iterator([]byte{kind}, false)
	defer it.Close()
	for it.Rewind(); it.Valid(); {
		if err := a.ctx.Err(); err != nil {
			a.yield(checkpoint.Finding{}, err)
			return false
		}
		key := it.Item().KeyCopy(nil)
		if ofRun := kind != idKey && kind != countKey; ofRun && len(key) < len(runKey(kind, 0)) {
			if !a.found("", checkpoint.PartStore, fmt.Sprintf("the key %q is of no run", key)) {
				return false
			}
		} else if !do(it, key) {
			return false
		}
		if it.Valid() && slices.Equal(it.Item().Key(), key) {
			it.Next()
		}
	}
	return true
}

// ids reads the index of runs.
func (a *auditor) ids() bool {
	return a.each(idKey, func(_ *badger.Iterator, key []byte) bool {
		id := string(key[1:])
		num, err := a.number(id)
		if err != nil {
			return a.damaged(id, checkpoint.PartInfo, err)
		}
		if a.known[num] {
			return a.found(id, checkpoint.PartInfo, fmt.Sprintf("another run has its number, %d", num))
		}
		a.runs[id], a.known[num] = num, true
		return true
	})
}

// rows compares the index with the rows of runs.
func (a *auditor) rows() bool {
	rows := map[uint64]bool{}
	ok := a.each(rowKey, func(it *badger.Iterator, key []byte) bool {
		num := runOf(key)
		rows[num], a.known[num] = true, true
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			a.yield(checkpoint.Finding{}, fmt.Errorf("checkpoint: reading the store: %w", err))
			return false
		}
		w, err := decodeRow(key, value)
		if err != nil {
			return a.damaged("", checkpoint.PartStore, fmt.Errorf("the row of run number %d: %w", num, err))
		}
		for _, digest := range w.info.Bases() {
			a.refs[digest]++
		}
		if at, there := a.runs[w.info.Run]; !there || at != num {
			return a.found(w.info.Run, checkpoint.PartInfo, fmt.Sprintf("the index does not lead to its row, number %d", num))
		}
		return true
	})
	for _, id := range slices.Sorted(maps.Keys(a.runs)) {
		if ok && !rows[a.runs[id]] {
			ok = a.found(id, checkpoint.PartInfo, fmt.Sprintf("it has no row, number %d", a.runs[id]))
		}
	}
	return ok
}

// strays finds what belongs to no run, not even to one that is being removed.
func (a *auditor) strays() bool {
	ok := a.each(deletedKey, func(_ *badger.Iterator, key []byte) bool {
		a.known[runOf(key)] = true
		return true
	})
	for _, kind := range []byte{logKey, postKey, snapshotKey} {
		what := map[byte]string{logKey: "an append", postKey: "a post", snapshotKey: "a snapshot"}[kind]
		ok = ok && a.each(kind, func(it *badger.Iterator, key []byte) bool {
			num := runOf(key)
			defer it.Seek(append(runKey(kind, num), bytes.Repeat([]byte{0xff}, 256)...)) // behind all of the run
			return a.known[num] || a.found("", checkpoint.PartStore, fmt.Sprintf("%s of run number %d, which there is not", what, num))
		})
	}
	return ok
}

// counts compares how often bases are referred to with what is kept of that.
func (a *auditor) counts() bool {
	ok := a.each(countKey, func(_ *badger.Iterator, key []byte) bool {
		digest := string(key[1:])
		refs := a.refs[digest]
		delete(a.refs, digest)
		n, err := a.count(digest)
		if err != nil {
			return a.damaged("", checkpoint.PartStore, fmt.Errorf("the count of base %.8s: %w", digest, err))
		}
		if n != refs {
			return a.found("", checkpoint.PartStore, fmt.Sprintf("base %.8s is counted %d times, and %d runs refer to it", digest, n, refs))
		}
		return true
	})
	for _, digest := range slices.Sorted(maps.Keys(a.refs)) {
		ok = ok && a.found("", checkpoint.PartStore, fmt.Sprintf("base %.8s is not counted, and %d runs refer to it", digest, a.refs[digest]))
	}
	return ok
}
