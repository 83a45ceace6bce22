package main

import (
	"context"
	"encoding/binary"
	"strconv"
	"sync"

	"github.com/dgraph-io/badger/v4"
)

// A ledger does by hand what runs do, one after the other, whose supersteps are stored and not
// synced.
type ledger struct {
	*bare
	diary
	slab
	// ended: it gives a single value its version, and there are no marks of a transaction in
	// Badger's log
	stamp    *badger.WriteBatch
	text     []byte
	run, seq uint64
	done     []uint64  // a bit for each superstep of the run
	since    int       // bytes written behind the newest snapshot
	size     int       // of that
	newest   [2]uint64 // where it was made, behind the one before it

	writing sync.WaitGroup // of a snapshot
	failed  error          // of that, known behind writing.Wait
}

// runs has so many runs of unsyncedLength supersteps each, each of which writes that text.
func (l *ledger) runs(times int, writes string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.stamp = l.db.NewManagedWriteBatch()
	l.stamp.Cancel()
	defer l.writing.Wait()
	for range times {
		if err := l.begin(); err != nil {
			return err
		}
		for i := range unsyncedLength {
			if err := l.superstep(ctx, i, writes); err != nil {
				return err
			}
		}
	}
	l.writing.Wait()
	return l.failed
}

// begin makes a run that is found by its id and can be listed.
func (l *ledger) begin() error {
	l.run, l.seq, l.since, l.size, l.newest = l.run+1, 0, 0, 0, [2]uint64{}
	l.done = make([]uint64, unsyncedLength/64+1)
	number := binary.BigEndian.AppendUint64(nil, l.run)
	return l.put([]byte("xrun-"+strconv.FormatUint(l.run, 10)), number, l.key('r', 0), []byte("{}"))
}

// superstep is a function with a draft and a context, whose outcome is committed as JSON with a
// digest and a checksum, and now and then where the run stands: as often as a store does it, when
// four times the state and 64 KiB were written since.
func (l *ledger) superstep(ctx context.Context, i int, writes string) (err error) {
	if err = l.next(ctx, new(plain)).tryout(); err != nil {
		return err
	}
	if l.text, err = say(l.text[:0], i, writes); err != nil {
		return err
	}
	l.diary.log = l.diary.log[:0] // what it had is stored
	data := l.seal(l.text)
	l.done[i/64] |= 1 << (i % 64)
	l.seq++
	if err := l.put(l.key('l', l.seq), data); err != nil {
		return err
	}
	if l.since += len(data); l.since <= 4*l.size+64<<10 {
		return nil
	}
	return l.snapshot(writes)
}

// snapshot has another goroutine write where the run stands, and remove what was written so before
// the last time.
func (l *ledger) snapshot(state string) error {
	data, err := sayStands(state, l.done)
	if err != nil {
		return err
	}
	l.writing.Wait()
	if l.failed != nil {
		return l.failed
	}
	pairs := [][]byte{l.key('s', l.seq), data}
	if l.newest[0] > 0 {
		pairs = append(pairs, l.key('s', l.newest[0]), nil)
	}
	l.newest, l.since, l.size = [2]uint64{l.newest[1], l.seq}, 0, len(data)
	l.writing.Go(func() { l.failed = l.put(pairs...) })
	return nil
}

func (l *ledger) key(kind byte, seq uint64) []byte {
	key := append(make([]byte, 0, keySize), kind)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(key, l.run), seq)
}

// put commits keys and what they are to have, nil for nothing more, as one transaction.
func (l *ledger) put(pairs ...[]byte) (err error) {
	ts := l.ts.Add(1)
	txn := l.db.NewTransactionAt(ts, true)
	defer txn.Discard()
	for i := 0; i < len(pairs) && err == nil; i += 2 {
		if pairs[i+1] == nil {
			err = txn.Delete(pairs[i])
		} else {
			e := badger.NewEntry(pairs[i], pairs[i+1])
			if err = txn.SetEntry(e); len(pairs) == 2 {
				_ = l.stamp.SetEntryAt(e, ts)
			}
		}
	}
	if err != nil {
		return err
	}
	return txn.CommitAt(ts, nil)
}

func badgerFloor(s session) ([]row, error) {
	var rows []row
	for _, x := range []struct{ name, writes string }{
		{"floor/badger-to-bare", text[:85]}, {"floor/badger-1KB-to-bare", text},
	} {
		said, err := say(nil, unsyncedLength/2, x.writes)
		if err != nil {
			return rows, err
		}
		size := keySize + len(new(diary).seal(said))
		all, err := s.alike(s.long, [2]stage{
			freshBare(s, size, false, func(b *bare, n int) error { return (&ledger{bare: b}).runs(n, x.writes) }),
			freshBare(s, size, false, func(b *bare, n int) error { return b.groups(1)(n * unsyncedLength) }),
		})
		if err != nil {
			return rows, err
		}
		rows = append(rows, shown(x.name, all[0].over(all[1]), "ratio",
			"for badger: runs that are found by their ids, of %d functions, each with a draft and a context of its own, JSON written by hand, a digest, a checksum, and a "+
				"transaction of %d bytes without marks, not synced; beside them, every %d KiB and four states, where the run stands: %.3g µs, to the transaction alone",
			unsyncedLength, size, 64, all[0].times(1.0/unsyncedLength).median()*1e-3))
	}
	return rows, nil
}
