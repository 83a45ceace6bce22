package badgerstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// An auditor looks at one moment of the store.
type auditor struct {
	*view
	ctx   context.Context
	yield func(checkpoint.Finding, error) bool
	runs  map[string]uint64 // numbers by id
	known map[uint64]bool   // numbers of runs, also of those that are being removed
	refs  map[string]uint64 // how many runs refer to a base
	bases map[string]bool   // that are counted
}

// audit returns the runs that there are, in the order of their ids, and whether the loop goes on.
func (s *Store) audit(ctx context.Context, yield func(checkpoint.Finding, error) bool) (runs []string, ok bool) {
	v, err := s.view(ctx)
	if err != nil {
		yield(checkpoint.Finding{}, err)
		return nil, false
	}
	defer v.close()
	a := auditor{v, ctx, yield, map[string]uint64{}, map[uint64]bool{}, map[string]uint64{}, map[string]bool{}}
	ok = a.kinds() && a.own() && a.ids() && a.rows() && a.strays() && a.counts() && a.uncounted()
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

// each calls do for the keys of a kind, which may move the iterator on by a seek, until it returns
// false.
func (a *auditor) each(kind byte, do func(it *badger.Iterator, key []byte) bool) bool {
	ofRun := bytes.IndexByte([]byte{logKey, rowKey, postKey, snapshotKey, a.s.kinds.deleted, trimmedKey}, kind) >= 0
	return a.eachWith([]byte{kind}, func(it *badger.Iterator, key []byte) bool {
		if ofRun && len(key) < len(runKey(kind, 0)) {
			return a.found("", checkpoint.PartStore, fmt.Sprintf("the key %q is of no run", key))
		}
		return do(it, key)
	})
}

// eachWith is each for the keys of any prefix. They rise: a table whose bytes have changed since it
// was opened may lead back to where the iterator has been.
func (a *auditor) eachWith(prefix []byte, do func(it *badger.Iterator, key []byte) bool) bool {
	it, err := a.iterator(prefix, false)
	if err != nil {
		a.yield(checkpoint.Finding{}, err)
		return false
	}
	defer it.Close()
	var last []byte
	for it.Rewind(); it.Valid(); {
		if err := a.ctx.Err(); err != nil {
			a.yield(checkpoint.Finding{}, err)
			return false
		}
		key := it.Item().KeyCopy(nil)
		if bytes.Compare(key, last) <= 0 {
			return a.found("", checkpoint.PartStore, fmt.Sprintf("the key %.80q comes behind %.80q", key, last))
		}
		last = key
		if !do(it, key) {
			return false
		}
		if it.Valid() && slices.Equal(it.Item().Key(), key) {
			it.Next()
		}
	}
	return true
}

// kinds finds keys of a kind that there is not.
func (a *auditor) kinds() bool {
	known := []byte{
		logKey, rowKey, a.s.kinds.id, postKey, snapshotKey, a.s.kinds.graph, chunkKey, a.s.kinds.deleted, trimmedKey, a.s.kinds.base, countKey, piecesKey,
	}
	return a.eachWith(nil, func(it *badger.Iterator, key []byte) bool {
		if bytes.IndexByte(known, key[0]) >= 0 {
			it.Seek([]byte{key[0] + 1}) // a look at one of each kind
			return true
		}
		ours := slices.ContainsFunc([][]byte{storeKey, sealKey, nextKey}, func(k []byte) bool { return slices.Equal(k, key) })
		return ours || a.found("", checkpoint.PartStore, fmt.Sprintf("no store has a key like %.80q", key))
	})
}

// own finds values of the store's own that refuse the next Open.
func (a *auditor) own() bool {
	name, err := a.get(storeKey)
	if err == nil && name == nil {
		err = checkpoint.Damage("the database does not say of which store it is")
	} else if err == nil {
		if _, err = unframe(storeKey, name); err != nil {
			err = fmt.Errorf("the store's name: %w", err)
		}
	}
	_, _, sealed := a.seal()
	_, next := a.lastRun()
	for _, err := range []error{err, sealed, next} {
		if err != nil && !a.damaged("", checkpoint.PartStore, err) {
			return false
		}
	}
	return a.each(trimmedKey, func(it *badger.Iterator, mark []byte) bool {
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			a.yield(checkpoint.Finding{}, fmt.Errorf("checkpoint: reading the store: %w", err))
			return false
		}
		if _, _, err := readTrimmed(mark, value); err != nil {
			return a.damaged("", checkpoint.PartStore, err)
		}
		return true
	})
}

// ids reads the index of runs.
func (a *auditor) ids() bool {
	return a.each(a.s.kinds.id, func(_ *badger.Iterator, key []byte) bool {
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

// strays finds what belongs to no run, not even to one that is being removed. Pieces of an append
// may: they are there before the first append of a run is.
func (a *auditor) strays() bool {
	ok := a.each(a.s.kinds.deleted, func(_ *badger.Iterator, key []byte) bool {
		num := runOf(key)
		if a.known[num] && !a.found("", checkpoint.PartStore, fmt.Sprintf("run number %d is there, and is to be removed", num)) {
			return false
		}
		a.known[num] = true
		return true
	})
	for _, k := range []struct {
		prefix []byte
		what   string
	}{
		{[]byte{logKey}, "an append"}, {[]byte{postKey}, "a post"}, {[]byte{snapshotKey}, "a snapshot"},
		{[]byte{trimmedKey}, "the mark of a trim"},
		{[]byte{chunkKey, postKey}, "a piece of a post"}, {[]byte{chunkKey, snapshotKey}, "a piece of a snapshot"},
	} {
		ok = ok && a.ofRuns(k.prefix, k.what)
	}
	return ok
}

// ofRuns finds keys with that prefix, behind which the number of a run stands, whose run there is
// not.
func (a *auditor) ofRuns(prefix []byte, what string) bool {
	end := len(prefix) + 8
	return a.eachWith(prefix, func(it *badger.Iterator, key []byte) bool {
		if len(key) < end {
			return a.found("", checkpoint.PartStore, fmt.Sprintf("the key %q is of no run", key))
		}
		num := binary.BigEndian.Uint64(key[len(prefix):])
		defer it.Seek(append(key[:end:end], bytes.Repeat([]byte{0xff}, 256)...)) // behind all of the run
		return a.known[num] || a.found("", checkpoint.PartStore, fmt.Sprintf("%s of run number %d, which there is not", what, num))
	})
}

// counts compares how often bases are referred to with what is kept of that.
func (a *auditor) counts() bool {
	ok := a.each(countKey, func(_ *badger.Iterator, key []byte) bool {
		digest := string(key[1:])
		refs := a.refs[digest]
		delete(a.refs, digest)
		a.bases[digest] = true
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

// uncounted finds bases that nobody refers to and nobody is to remove, and pieces of such.
func (a *auditor) uncounted() bool {
	return a.each(a.s.kinds.base, func(_ *badger.Iterator, key []byte) bool {
		digest := string(key[1:])
		return a.bases[digest] || a.found("", checkpoint.PartStore, fmt.Sprintf("base %.8s is kept, and not counted", digest))
	}) && a.pieces()
}

// pieces finds pieces of bases that are in no base, and that no mark says to be written or removed.
func (a *auditor) pieces() bool {
	kept := map[string]bool{} // digests with the attempt
	ok := a.each(piecesKey, func(_ *badger.Iterator, key []byte) bool {
		kept[string(key[1:])] = true
		return true
	}) && a.each(a.s.kinds.base, func(_ *badger.Iterator, key []byte) bool {
		if in, large, err := a.piecesOf(key); err == nil && large { // a base that can't be read is found with its runs
			kept[string(in.append(key[1:]))] = true
		}
		return true
	})
	const number = 4 // bytes, of the piece
	prefix := []byte{chunkKey, a.s.kinds.base}
	return ok && a.eachWith(prefix, func(it *badger.Iterator, key []byte) bool {
		if len(key) < len(prefix)+number {
			return a.found("", checkpoint.PartStore, fmt.Sprintf("the key %q is of no base", key))
		}
		of := key[len(prefix) : len(key)-number]
		defer it.Seek(append(key[:len(key)-number:len(key)-number], 0xff, 0xff, 0xff, 0xff, 0xff)) // behind all of them
		return kept[string(of)] || a.found("", checkpoint.PartStore, fmt.Sprintf("a piece of base %.8q, which there is not", of))
	})
}
